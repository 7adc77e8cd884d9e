"""All tables. A database that had the migrations 0001 to 0017, which this one replaces, is at this version."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = None
branch_labels = None
depends_on = None


def _create_index(name: str, table: str, columns: list[str], condition: str) -> None:
    """Creates an index of the rows that meet the condition."""
    where = sa.text(condition)
    op.create_index(name, table, columns, postgresql_where=where, sqlite_where=where)


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("way_in", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("at BETWEEN 0 AND 100000000000", name=op.f("ck_audit_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at", "id"])
    op.create_index(op.f("ix_audit_channel_id"), "audit", ["channel_id", "at"])
    op.create_index(op.f("ix_audit_person_id"), "audit", ["person_id", "at"])
    op.create_table(
        "channel_ids",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("known_as", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.CheckConstraint("changed_at BETWEEN 0 AND 100000000000", name=op.f("ck_channel_ids_changed_at")),
        sa.CheckConstraint("recorded_at BETWEEN 0 AND 100000000000", name=op.f("ck_channel_ids_recorded_at")),
        sa.PrimaryKeyConstraint("channel_id", name=op.f("pk_channel_ids")),
    )
    op.create_index(op.f("ix_channel_ids_known_as"), "channel_ids", ["known_as", "changed_at"])
    op.create_index(op.f("ix_channel_ids_recorded_at"), "channel_ids", ["recorded_at"])
    op.create_table(
        "counted_requests",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.CheckConstraint("at BETWEEN 0 AND 100000000000", name=op.f("ck_counted_requests_at")),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_counted_requests")),
    )
    op.create_index(op.f("ix_counted_requests_at"), "counted_requests", ["at"])
    op.create_index(op.f("ix_counted_requests_person_id"), "counted_requests", ["person_id", "at"])
    op.create_table(
        "drafts",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.CheckConstraint("updated_at BETWEEN 0 AND 100000000000", name=op.f("ck_drafts_updated_at")),
        sa.PrimaryKeyConstraint("person_id", "place", name=op.f("pk_drafts")),
    )
    op.create_index(op.f("ix_drafts_updated_at"), "drafts", ["updated_at"])
    op.create_table(
        "early_replies",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("message_ts", sa.Text(), nullable=False),
        sa.Column("thread_ts", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.Column("mentions_us", sa.Boolean(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("channel_id", "message_ts", name=op.f("pk_early_replies")),
    )
    op.create_index(op.f("ix_early_replies_person_id"), "early_replies", ["person_id"])
    op.create_table(
        "homes",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.Double(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_homes_claim")),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name=op.f("ck_homes_claimed_is_due")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_homes_claimed_until")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_homes_due_at")),
        sa.CheckConstraint("opened_at BETWEEN 0 AND 100000000000", name=op.f("ck_homes_opened_at")),
        sa.CheckConstraint("page >= 0", name=op.f("ck_homes_page")),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_homes")),
    )
    _create_index(op.f("ix_homes_due_at"), "homes", ["due_at"], "due_at IS NOT NULL")
    op.create_index(op.f("ix_homes_opened_at"), "homes", ["opened_at"])
    op.create_table(
        "message_versions",
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("message_ts", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("noted_at", sa.Double(), nullable=False),
        sa.Column("answered", sa.Text(), nullable=True),
        sa.CheckConstraint("noted_at BETWEEN 0 AND 100000000000", name=op.f("ck_message_versions_noted_at")),
        sa.PrimaryKeyConstraint("channel_id", "message_ts", name=op.f("pk_message_versions")),
    )
    op.create_index(op.f("ix_message_versions_noted_at"), "message_versions", ["noted_at"])
    op.create_index(op.f("ix_message_versions_person_id"), "message_versions", ["person_id"])
    op.create_table(
        "preferences",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("quiet", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_preferences")),
    )
    op.create_table(
        "slack_calls",
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("tat", sa.Double(), nullable=False),
        sa.CheckConstraint("tat BETWEEN 0 AND 100000000000", name=op.f("ck_slack_calls_tat")),
        sa.PrimaryKeyConstraint("method", "channel_id", name=op.f("pk_slack_calls")),
    )
    op.create_index(op.f("ix_slack_calls_tat"), "slack_calls", ["tat"])
    op.create_table(
        "threads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("channel_id", sa.Text(), nullable=False),
        sa.Column("ts", sa.Text(), nullable=True),
        sa.Column("card_ts", sa.Text(), nullable=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("requester_id", sa.Text(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("root_ts", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("follows", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("updated_at", sa.Double(), nullable=False),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.CheckConstraint("origin IN ('card', 'request', 'conversation')", name=op.f("ck_threads_origin")),
        sa.CheckConstraint("created_at BETWEEN 0 AND 100000000000", name=op.f("ck_threads_created_at")),
        sa.CheckConstraint("number >= 0", name=op.f("ck_threads_number")),
        sa.CheckConstraint("revision >= 0", name=op.f("ck_threads_revision")),
        sa.CheckConstraint("updated_at BETWEEN 0 AND 100000000000", name=op.f("ck_threads_updated_at")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_threads")),
        sa.UniqueConstraint("channel_id", "card_ts", name="uq_threads_card"),
        sa.UniqueConstraint("channel_id", "ts", "number", name=op.f("uq_threads_channel_id")),
    )
    _create_index(op.f("ix_threads_follows"), "threads", ["follows"], "follows != ''")
    op.create_index(op.f("ix_threads_requester_id"), "threads", ["requester_id", "created_at"])
    op.create_index(op.f("ix_threads_updated_at"), "threads", ["updated_at"])
    op.create_table(
        "notices",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("without_blocks", sa.Boolean(), nullable=False),
        sa.Column("reactions_shown", sa.Text(), nullable=True),
        sa.Column("reaction_added", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("only_progress", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("posted_ts", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint(
            "(claimed_by IS NOT NULL) = (state = 'sending')", name=op.f("ck_notices_sending_is_claimed")
        ),
        sa.CheckConstraint(
            "(due_at IS NOT NULL) = (state IN ('waiting', 'sending'))", name=op.f("ck_notices_open_is_due")
        ),
        sa.CheckConstraint("delivery IN ('card', 'post', 'reaction', 'ephemeral')", name=op.f("ck_notices_delivery")),
        sa.CheckConstraint("state IN ('waiting', 'sending', 'done', 'given_up')", name=op.f("ck_notices_state")),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_notices_claim")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_notices_attempts")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_notices_claimed_until")),
        sa.CheckConstraint("created_at BETWEEN 0 AND 100000000000", name=op.f("ck_notices_created_at")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_notices_due_at")),
        sa.CheckConstraint("revision >= 0", name=op.f("ck_notices_revision")),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=op.f("fk_notices_thread_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notices")),
        sa.UniqueConstraint("key", name=op.f("uq_notices_key")),
        sqlite_autoincrement=True,
    )
    _create_index(op.f("ix_notices_delivery"), "notices", ["delivery", "due_at"], "due_at IS NOT NULL")
    _create_index(op.f("ix_notices_due_at"), "notices", ["due_at"], "due_at IS NOT NULL")
    _create_index(op.f("ix_notices_person_id"), "notices", ["person_id", "id"], "person_id IS NOT NULL")
    op.create_index(op.f("ix_notices_thread_id"), "notices", ["thread_id", "due_at"])
    op.create_table(
        "polls",
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_polls_claim")),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name=op.f("ck_polls_claimed_is_due")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_polls_claimed_until")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_polls_due_at")),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=op.f("fk_polls_thread_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("thread_id", name=op.f("pk_polls")),
    )
    _create_index(op.f("ix_polls_due_at"), "polls", ["due_at"], "due_at IS NOT NULL")
    op.create_table(
        "requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("thread_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("source_key", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("written_at", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("recorded_at", sa.Double(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("first_tried_at", sa.Double(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=False),
        sa.Column("edited_at", sa.Text(), nullable=False),
        sa.Column("latest_text", sa.Text(), nullable=True),
        sa.Column("uncertain", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.Column("requester", sa.Text(), nullable=True),
        sa.Column("team_id", sa.Text(), nullable=False),
        sa.Column("attachments", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=True),
        sa.Column("merged_into", sa.Text(), nullable=False),
        sa.Column("fetched", sa.Text(), nullable=True),
        sa.Column("way_in", sa.Text(), server_default="reply", nullable=False),
        sa.CheckConstraint(
            "(claimed_by IS NOT NULL) = (state IN ('preparing', 'sending'))",
            name=op.f("ck_requests_sending_is_claimed"),
        ),
        sa.CheckConstraint(
            "(due_at IS NOT NULL) = (state IN ('received', 'preparing', 'waiting', 'sending'))",
            name=op.f("ck_requests_open_is_due"),
        ),
        sa.CheckConstraint(
            "kind IN ('start', 'follow_up', 'stop', 'retry', 'discard', 'mute', 'unmute', 'show_status', "
            "'show_prompt', 'show_answer', 'show_job_id', 'send_again', 'send_new_words', 'send_held', "
            "'send_all_held', 'discard_held', 'choose_project')",
            name=op.f("ck_requests_kind"),
        ),
        sa.CheckConstraint(
            "state IN ('received', 'preparing', 'waiting', 'sending', 'accepted', 'rejected', 'uncertain', "
            "'withdrawn', 'awaiting_person')",
            name=op.f("ck_requests_state"),
        ),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_requests_claim")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_requests_attempts")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_requests_claimed_until")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_requests_due_at")),
        sa.CheckConstraint("first_tried_at BETWEEN 0 AND 100000000000", name=op.f("ck_requests_first_tried_at")),
        sa.CheckConstraint("recorded_at BETWEEN 0 AND 100000000000", name=op.f("ck_requests_recorded_at")),
        sa.ForeignKeyConstraint(["thread_id"], ["threads.id"], name=op.f("fk_requests_thread_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sa.UniqueConstraint("source_key", name=op.f("uq_requests_source_key")),
    )
    _create_index(op.f("ix_requests_due_at"), "requests", ["due_at"], "due_at IS NOT NULL")
    _create_index("ix_requests_held", "requests", ["recorded_at"], "state = 'awaiting_person'")
    _create_index(
        "ix_requests_in_order",
        "requests",
        ["thread_id", "kind", "written_at", "recorded_at", "id"],
        "due_at IS NOT NULL",
    )
    op.create_index(op.f("ix_requests_person_id"), "requests", ["person_id", "recorded_at"])
    op.create_index(op.f("ix_requests_thread_id"), "requests", ["thread_id", "due_at"])
    _create_index(
        "ix_requests_to_be_prepared",
        "requests",
        ["person_id", "thread_id", "due_at"],
        "state IN ('received', 'preparing')",
    )
    _create_index(
        "ix_requests_to_be_sent", "requests", ["person_id", "thread_id", "due_at"], "state IN ('waiting', 'sending')"
    )
    _create_index("ix_requests_under_way", "requests", ["thread_id", "claimed_until"], "claimed_until IS NOT NULL")
    op.create_table(
        "request_files",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("file", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("failing_since", sa.Double(), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.Double(), nullable=True),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.Double(), nullable=True),
        sa.CheckConstraint("(claimed_by IS NULL) = (claimed_until IS NULL)", name=op.f("ck_request_files_claim")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_request_files_attempts")),
        sa.CheckConstraint("claimed_by IS NULL OR due_at IS NOT NULL", name=op.f("ck_request_files_claimed_is_due")),
        sa.CheckConstraint("claimed_until BETWEEN 0 AND 100000000000", name=op.f("ck_request_files_claimed_until")),
        sa.CheckConstraint("due_at BETWEEN 0 AND 100000000000", name=op.f("ck_request_files_due_at")),
        sa.CheckConstraint("failing_since BETWEEN 0 AND 100000000000", name=op.f("ck_request_files_failing_since")),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_request_files_request_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "position", name=op.f("pk_request_files")),
    )
    _create_index(op.f("ix_request_files_due_at"), "request_files", ["due_at"], "due_at IS NOT NULL")
