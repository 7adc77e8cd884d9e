"""The tables. What a SQLite file of 1.0.0 has is copied into them, and its local pull requests from their own file."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NO_STEP = 1_000
"""What the file counts from now on: 1.0.0 refuses a file that has taken more steps than it knows."""
_PROJECT = "docs"
"""Its project by default."""
_EARLIER = ("jobs", "instructions", "answers", "old_branches", "uploads", "attachments", "proposals", "spending")
"""The tables of 1.0.0, those that others refer to first."""


def _text(name: str, *more: sa.schema.SchemaItem, nullable: bool = False, default: str | None = None) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), *more, nullable=nullable, server_default=default and sa.text(default))


def _perhaps(*names: str) -> list[sa.Column[str]]:
    return [_text(name, nullable=True) for name in names]


def _number(name: str, default: int | None = None, *, large: bool = False) -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite") if large else sa.Integer()
    return sa.Column(name, kind, nullable=False, server_default=None if default is None else sa.text(str(default)))


def _key(*names: str, table: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*names, name=op.f(f"pk_{table}"))


def _of(column: str, target: str, table: str, *, cascade: bool = True) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_{column}")
    return sa.ForeignKeyConstraint([column], [target], name=name, ondelete="CASCADE" if cascade else None)


def _table(name: str, *parts: sa.schema.SchemaItem, numbered: bool = False) -> None:
    op.create_table(name, *parts, **({"sqlite_autoincrement": True} if numbered else {}))


def _index(name: str, table: str, columns: Sequence[str], where: str | None = None, *, unique: bool = False) -> None:
    some = None if where is None else sa.text(where)
    op.create_index(name, table, columns, unique=unique, sqlite_where=some, postgresql_where=some)


def upgrade() -> None:
    """Creates the tables, and fills them with what there is."""
    op.add_column("pagehand_jobserver_schema", sa.Column("compatible_with", sa.Text(), nullable=True))
    steps = 0
    if op.get_bind().dialect.name == "sqlite":
        steps = op.get_bind().exec_driver_sql("PRAGMA user_version").scalar_one()
        op.execute(f"PRAGMA user_version = {_NO_STEP}")
    if steps:
        _put_aside()
    _jobs()
    _further()
    _pull_requests()
    if steps:
        _take_over()


def _jobs() -> None:
    _table(
        "jobs",
        *map(_text, ("id", "project_id", "status", "repository", "ref", "model", "branch")),
        *_perhaps("pr_link", "failure"),
        _text("created_at"),
        *_perhaps("finished_at", "archived_at"),
        _number("branch_number", 1),
        *_perhaps("pr_branch", "session"),
        _text("details", default="'{}'"),
        *_perhaps("partial_commit"),
        _number("partial_files", 0),
        *_perhaps("partial_file", "home"),
        _number("tokens_sent", 0, large=True),
        _number("tokens_answered", 0, large=True),
        sa.Column("money", sa.Double(), nullable=False, server_default=sa.text("0")),
        _text("currency", default="''"),
        _number("tokens_agreed", 0, large=True),
        *_perhaps("asked_at", "open_question", "place"),
        _text("mode", default="'edit'"),
        *_perhaps("proposal", "proposal_state", "proposal_tree"),
        _key("id", table="jobs"),
    )
    _index("jobs_to_archive", "jobs", ["finished_at"], "archived_at IS NULL")
    _index("jobs_to_delete", "jobs", ["archived_at"], "archived_at IS NOT NULL")
    _index("jobs_with_partial_work", "jobs", ["id"], "partial_commit IS NOT NULL")
    _table(
        "instructions",
        _number("number"),
        *map(_text, ("job_id", "project_id", "prompt", "state", "created_at")),
        _number("attempts", 0),
        *_perhaps("commit_id", "stop_reason"),
        _text("answer", default="''"),
        *_perhaps("requester_name", "requester_id", "requester_url"),
        sa.Column("answers", sa.Integer(), nullable=True),
        _text("request_id", default="''"),
        *_perhaps("words", "log", "claimed_by", "claimed_until"),
        _text("mode", default="'edit'"),
        *(_text(name, default="''") for name in ("model", "effort")),
        *_perhaps("accepts"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'stopped')", name=op.f("ck_instructions_state")
        ),
        _key("number", table="instructions"),
        _of("job_id", "jobs.id", "instructions"),
        numbered=True,
    )
    _index("instructions_waiting", "instructions", ["project_id", "state"], "state IN ('queued', 'running')")
    _index("instructions_in_order", "instructions", ["job_id", "number"], "state IN ('queued', 'running')")
    _index("instructions_in_turn", "instructions", ["project_id", "number"], "state IN ('queued', 'running')")
    _index("instructions_that_answer", "instructions", ["answers"], "answers IS NOT NULL")
    _index("instructions_of_job", "instructions", ["job_id", "number"])
    _index("instructions_of_project", "instructions", ["project_id", "created_at"])


def _further() -> None:
    names = ("project_id", "key", "fingerprint", "answer", "created_at")
    _table("answers", *map(_text, names), *_perhaps("job_id"), _key("project_id", "key", table="answers"))
    _index("answers_of_job", "answers", ["job_id"])
    _index("answers_by_age", "answers", ["created_at"])
    _table("old_branches", *map(_text, ("name", "project_id", "left_at")), _key("name", table="old_branches"))
    _table("files", _text("id"), *_perhaps("expires_at"), _key("id", table="files"))
    _index("files_to_delete", "files", ["expires_at"], "expires_at IS NOT NULL")
    _table(
        "chunks",
        _text("file"),
        _number("position"),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        _key("file", "position", table="chunks"),
        _of("file", "files.id", "chunks", cascade=False),
    )
    _table(
        "uploads",
        *map(_text, ("project_id", "id")),
        _number("size"),
        *map(_text, ("mimetype", "used_at")),
        *_perhaps("file"),
        _key("project_id", "id", table="uploads"),
    )
    _index("uploads_by_age", "uploads", ["used_at"])
    _table(
        "attachments",
        _number("instruction"),
        _number("position"),
        *map(_text, ("project_id", "upload_id", "name")),
        *_perhaps("mimetype"),
        _key("instruction", "position", table="attachments"),
        _of("instruction", "instructions.number", "attachments"),
        sa.ForeignKeyConstraint(
            ["project_id", "upload_id"], ["uploads.project_id", "uploads.id"], name=op.f("fk_attachments_project_id")
        ),
    )
    _index("attachments_of_upload", "attachments", ["project_id", "upload_id"])
    _table(
        "proposals",
        *map(_text, ("job_id", "branch", "title", "description", "checks", "extras")),
        *_perhaps("requester_name", "requester_id", "requester_url"),
        _number("version", 1),
        _number("failures", 0),
        _text("due_at"),
        _key("job_id", table="proposals"),
        _of("job_id", "jobs.id", "proposals"),
    )
    _index("proposals_due", "proposals", ["due_at"])
    _table("workers", *map(_text, ("place", "name", "projects", "seen_at")), _key("place", table="workers"))
    _table(
        "spending",
        *map(_text, ("project_id", "day")),
        _number("tokens", large=True),
        _key("project_id", "day", table="spending"),
    )


def _pull_requests() -> None:
    _table(
        "local_pull_requests",
        _number("number"),
        *map(
            _text,
            (
                "project_id",
                "branch",
                "base",
                "title",
                "description",
                "state",
                "base_commit",
                "head_commit",
                "created_at",
            ),
        ),
        *_perhaps("ended_at", "ended_by", "requested_by", "request_url"),
        sa.CheckConstraint("state IN ('open', 'merged', 'closed')", name=op.f("ck_local_pull_requests_state")),
        _key("number", table="local_pull_requests"),
        numbered=True,
    )
    _index("one_open_a_branch", "local_pull_requests", ["branch"], "state = 'open'", unique=True)
    _index("pull_requests_of_project", "local_pull_requests", ["project_id", "state", "number"])
    _table(
        "judgements",
        _number("number"),
        *map(_text, ("head", "kind", "author", "outcome", "words", "judged_at")),
        _key("number", "head", "kind", "author", table="judgements"),
        _of("number", "local_pull_requests.number", "judgements"),
    )


def _put_aside() -> None:
    inspected = sa.inspect(op.get_bind())
    for table in _EARLIER:
        for index in inspected.get_indexes(table):
            op.drop_index(str(index["name"]))
        op.rename_table(table, f"earlier_{table}")


def _take_over() -> None:
    """Copies everything, as the project's that was used last. The file of the pull requests stays as it is."""
    connection = op.get_bind()
    newest = "SELECT project_id FROM earlier_instructions ORDER BY number DESC LIMIT 1"
    owner = connection.exec_driver_sql(newest).scalar() or _PROJECT
    for table in _EARLIER:
        _copy(connection, f"earlier_{table}", table, owner)
    for table in reversed(_EARLIER):
        op.drop_table(f"earlier_{table}")
    file = Path(connection.engine.url.database or "").with_name("pull_requests.sqlite3")
    if file.exists():
        engine = sa.create_engine(sa.URL.create("sqlite", database=str(file)), poolclass=sa.NullPool)
        with engine.begin() as source:
            _copy(source, "pull_requests", "local_pull_requests", owner)
            _copy(source, "judgements", "judgements", owner)
    # The address of a page names the project now; a host's own ends with /pull/ and a number.
    own = sa.table("jobs", sa.column("pr_link", sa.Text()))
    new = sa.func.replace(own.c.pr_link, "/pulls/", f"/{quote(owner, safe='')}/pulls/")
    op.execute(own.update().where(sa.func.rtrim(own.c.pr_link, "0123456789").like("%/pulls/")).values(pr_link=new))


def _copy(source: sa.Connection, earlier: str, table: str, owner: str) -> None:
    """Copies a table's rows, if it was there, and the last number that it gave: none is used again."""
    if not sa.inspect(source).has_table(earlier):
        return
    names = [column["name"] for column in sa.inspect(source).get_columns(earlier)]
    known = {column["name"] for column in sa.inspect(op.get_bind()).get_columns(table)}
    more = {"project_id": owner} if "project_id" in known.difference(names) else {}
    target = sa.table(table, *map(sa.column, (*names, *more)))
    rows = source.execute(sa.select(sa.table(earlier, *map(sa.column, names)))).mappings()
    for batch in rows.partitions(500):
        op.get_bind().execute(target.insert(), [dict(row) | more for row in batch])
    numbers = sa.table("sqlite_sequence", sa.column("name"), sa.column("seq"))
    last = source.execute(sa.select(numbers.c.seq).where(numbers.c.name == earlier)).scalar()
    if last is not None:
        op.execute(numbers.delete().where(numbers.c.name == table))
        op.execute(numbers.insert().values(name=table, seq=last))
