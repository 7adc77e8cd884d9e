"""The job server's tables. A change here needs a migration; a test compares the two.

Times are texts in UTC (`records.as_text`), so that they sort like times.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    Table,
    TextClause,
    func,
    text,
)
from sqlalchemy.schema import SchemaItem

from bot.queue.columns import CleanText, KeyText, named_metadata

metadata = named_metadata()


def _text(name: str, *more: SchemaItem, **options: Any) -> Column[str]:
    return Column(name, CleanText, *more, **{"nullable": False} | options)


def _perhaps(name: str) -> Column[str]:
    return Column(name, CleanText, nullable=True)


def _number(name: str, default: int) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text(str(default)))


def _tokens(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), nullable=False, **options)


def _partial(name: str, condition: TextClause, *columns: Column[Any], unique: bool = False) -> TextClause:
    """Adds an index of the rows for which a condition holds: a query that has the condition word for word uses it."""
    Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)
    return condition


jobs = Table(
    "jobs",
    metadata,
    _text("id", primary_key=True),
    _text("project_id"),
    _text("status"),
    _text("repository"),
    _text("ref"),
    _text("model"),
    _text("branch"),
    _perhaps("pr_link"),
    _perhaps("failure"),
    _text("created_at"),
    _perhaps("finished_at"),
    _perhaps("archived_at"),
    _number("branch_number", 1),
    # The branch that `pr_link` is for.
    _perhaps("pr_branch"),
    _perhaps("session"),
    # `JobDetails` as JSON.
    _text("details", server_default=text("'{}'")),
    # The work of a failed instruction: a commit that is not pushed anywhere, and the number of files it changes.
    _perhaps("partial_commit"),
    _number("partial_files", 0),
    # In `files`, for other machines: that commit, and what its programs' HOME was after the newest instruction. Only an
    # id without a file, if it could not be stored.
    _perhaps("partial_file"),
    _perhaps("home"),
    # The use of its model: tokens, and money if it was reported.
    _tokens("tokens_sent", server_default=text("0")),
    _tokens("tokens_answered", server_default=text("0")),
    Column("money", Double, nullable=False, server_default=text("0")),
    _text("currency", server_default=text("''")),
    # Its usage when somebody last let it continue, and when a person was asked that.
    _tokens("tokens_agreed", server_default=text("0")),
    _perhaps("asked_at"),
    # An agent's open question, as JSON.
    _perhaps("open_question"),
    # Where its folder is: the place of the worker that had it last.
    _perhaps("place"),
    # What the newest instruction is for.
    _text("mode", server_default=text("'edit'")),
    # The newest plan that was proposed, as JSON, with its state; and the tree of the files from which it was made.
    *map(_perhaps, ("proposal", "proposal_state", "proposal_tree")),
)
NOT_ARCHIVED = _partial("jobs_to_archive", text("archived_at IS NULL"), jobs.c.finished_at)
ARCHIVED = _partial("jobs_to_delete", text("archived_at IS NOT NULL"), jobs.c.archived_at)
HAS_PARTIAL_WORK = _partial("jobs_with_partial_work", text("partial_commit IS NOT NULL"), jobs.c.id)

instructions = Table(
    "instructions",
    metadata,
    Column("number", Integer, primary_key=True),
    _text("job_id", ForeignKey("jobs.id", ondelete="CASCADE")),
    _text("project_id"),
    _text("prompt"),
    _text("state"),
    _text("created_at"),
    _number("attempts", 0),
    # What was pushed.
    _perhaps("commit_id"),
    _perhaps("stop_reason"),
    _text("answer", server_default=text("''")),
    _perhaps("requester_name"),
    _perhaps("requester_id"),
    _perhaps("requester_url"),
    # The running instruction whose question a message answers.
    Column("answers", Integer, nullable=True),
    # By which its lines are found in the log; a client may have chosen it.
    _text("request_id", server_default=text("''")),
    # The part of the prompt that is the person's own words; NULL if all of it is.
    _perhaps("words"),
    # The id of its log in `files`.
    _perhaps("log"),
    # The worker that runs it, or had begun it, and how long nobody else may.
    _perhaps("claimed_by"),
    _perhaps("claimed_until"),
    _text("mode", server_default=text("'edit'")),
    # Wanted for it; empty: the settings'.
    *(_text(name, server_default=text("''")) for name in ("model", "effort")),
    # The id of the plan that it carries out.
    _perhaps("accepts"),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'stopped')", name="state"),
    sqlite_autoincrement=True,  # numbers are never used again
)
WAITING = _partial(
    "instructions_waiting", text("state IN ('queued', 'running')"), instructions.c.project_id, instructions.c.state
)
# By which the first of a job is found, and that of a project.
_partial("instructions_in_order", WAITING, instructions.c.job_id, instructions.c.number)
_partial("instructions_in_turn", WAITING, instructions.c.project_id, instructions.c.number)
IS_REPLY = _partial("instructions_that_answer", text("answers IS NOT NULL"), instructions.c.answers)
Index("instructions_of_job", instructions.c.job_id, instructions.c.number)
Index("instructions_of_project", instructions.c.project_id, instructions.c.created_at)
WORDS = func.coalesce(instructions.c.words, instructions.c.prompt).label("words")
"""A person's own words."""

answers = Table(
    "answers",
    metadata,
    Column("project_id", KeyText, primary_key=True),
    Column("key", KeyText, primary_key=True),
    _text("fingerprint"),
    _text("answer"),
    _text("created_at"),
    _perhaps("job_id"),
)
Index("answers_of_job", answers.c.job_id)
Index("answers_by_age", answers.c.created_at)

old_branches = Table("old_branches", metadata, _text("name", primary_key=True), _text("project_id"), _text("left_at"))

# Those that expire are arriving, or no longer named.
files = Table("files", metadata, _text("id", primary_key=True), _perhaps("expires_at"))
EXPIRES = _partial("files_to_delete", text("expires_at IS NOT NULL"), files.c.expires_at)

chunks = Table(
    "chunks",
    metadata,
    _text("file", ForeignKey("files.id"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

uploads = Table(
    "uploads",
    metadata,
    Column("project_id", KeyText, primary_key=True),
    _text("id", primary_key=True),
    Column("size", Integer, nullable=False),
    _text("mimetype"),
    # The time of the last upload. A file is kept as long as an instruction names it.
    _text("used_at"),
    # Its id in `files`; NULL while it is in the folder of 1.0.0.
    _perhaps("file"),
)
Index("uploads_by_age", uploads.c.used_at)

attachments = Table(
    "attachments",
    metadata,
    Column("instruction", ForeignKey("instructions.number", ondelete="CASCADE"), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("project_id", KeyText, nullable=False),
    _text("upload_id"),
    _text("name"),
    _perhaps("mimetype"),
    ForeignKeyConstraint(["project_id", "upload_id"], ["uploads.project_id", "uploads.id"]),
)
Index("attachments_of_upload", attachments.c.project_id, attachments.c.upload_id)

# Changes that are pushed but not yet proposed, one row per job. `checks`: of the newest change, as JSON. `extras`:
# empty if there are none to add. `version` grows with each addition, so that settling an older version does not settle
# a newer one.
proposals = Table(
    "proposals",
    metadata,
    _text("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    _text("branch"),
    _text("title"),
    _text("description"),
    _text("checks"),
    _text("extras"),
    _perhaps("requester_name"),
    _perhaps("requester_id"),
    _perhaps("requester_url"),
    _number("version", 1),
    _number("failures", 0),
    _text("due_at"),
)
Index("proposals_due", proposals.c.due_at)

# The tokens of a project's jobs by day.
spending = Table(
    "spending",
    metadata,
    Column("project_id", KeyText, primary_key=True),
    _text("day", primary_key=True),
    _tokens("tokens"),
)

local_pull_requests = Table(
    "local_pull_requests",
    metadata,
    Column("number", Integer, primary_key=True),
    _text("project_id"),
    _text("branch"),
    _text("base"),
    _text("title"),
    _text("description"),
    _text("state"),
    _text("base_commit"),
    _text("head_commit"),
    _text("created_at"),
    _perhaps("ended_at"),
    _perhaps("ended_by"),
    _perhaps("requested_by"),
    _perhaps("request_url"),
    CheckConstraint("state IN ('open', 'merged', 'closed')", name="state"),
    sqlite_autoincrement=True,
)
_partial("one_open_a_branch", text("state = 'open'"), local_pull_requests.c.branch, unique=True)
Index("pull_requests_of_project", *local_pull_requests.c["project_id", "state", "number"])

# What a reviewer or a check says of a commit.
judgements = Table(
    "judgements",
    metadata,
    Column("number", ForeignKey("local_pull_requests.number", ondelete="CASCADE"), primary_key=True),
    _text("head", primary_key=True),
    _text("kind", primary_key=True),
    Column("author", KeyText, primary_key=True),
    _text("outcome"),
    _text("words"),
    _text("judged_at"),
)

# The processes that run agents: where, the projects with the agent of each (as JSON), and when they were last seen.
workers = Table(
    "workers",
    metadata,
    _text("place", primary_key=True),
    *map(_text, ("name", "projects", "seen_at")),
)
