"""The kinds of requests are no longer listed in the schema, so that a new one needs no migration."""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
compatible_with = "0018"


def upgrade() -> None:
    """Drops a CHECK constraint. To SQLite it is only words of the schema, which are cut out as its page about ALTER
    TABLE describes: to copy the table would delete what refers to it.
    """
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE requests DROP CONSTRAINT IF EXISTS ck_requests_kind")
        return
    op.execute("PRAGMA writable_schema = ON")
    op.execute(
        "UPDATE sqlite_master SET sql = substr(sql, 1, instr(sql, 'CONSTRAINT ck_requests_kind') - 1) || "
        "substr(substr(sql, instr(sql, 'CONSTRAINT ck_requests_kind')), "
        "instr(substr(sql, instr(sql, 'CONSTRAINT ck_requests_kind')), ')),') + 3) "
        "WHERE name = 'requests' AND sql LIKE '%CONSTRAINT ck_requests_kind%'"
    )
    op.execute("PRAGMA writable_schema = RESET")
