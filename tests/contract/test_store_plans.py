"""The statements that look for due work go by the indexes made for them, so that they stay quick among many threads."""

import pytest
from sqlalchemy import Select, text

from bot.store import claims
from bot.store.engine import engine_for
from bot.store.tables import metadata


@pytest.mark.parametrize(
    ("statement", "indexes"),
    [
        (claims._WATCHES, ["ix_watches_due_at"]),
        (claims._REQUESTS, ["ix_requests_due_at", "ix_requests_thread_id"]),
        (claims._NOTICES, ["ix_notices_due_at", "ix_notices_thread_id"]),
    ],
    ids=["watches", "requests", "notices"],
)
async def test_due_work_is_found_by_index_and_in_order(
    database: str, statement: Select[int], indexes: list[str]
) -> None:
    engine = engine_for(database)
    values = {"now": 1e9, "limit": 10, "held_channels": ["C1"]}
    sql = statement.params(values).compile(dialect=engine.dialect, compile_kwargs={"literal_binds": True})
    explain = "EXPLAIN QUERY PLAN"
    async with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            explain = "EXPLAIN"
            # Of tables that are known to be empty any index would do; of new ones nothing is known.
            await connection.execute(text(f"TRUNCATE {', '.join(metadata.tables)}"))
            # Where there is a choice, it is to be as with many rows.
            for choice in ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin"):
                await connection.execute(text(f"SET LOCAL {choice} = off"))
        plan = "\n".join(str(row[-1]) for row in await connection.exec_driver_sql(f"{explain} {sql}"))
    await engine.dispose()
    for index in indexes:
        assert index in plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan
