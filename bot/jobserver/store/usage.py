"""What jobs took of their models, within somebody's transaction."""

from datetime import datetime, timedelta

import aiosqlite

from bot.jobserver.store.records import Instruction, as_text, spent_from_row
from bot.jobserver.usage import Spent

_KEPT = timedelta(days=2)
_NO = frozenset({"no", "no thanks", "no thank you", "nope", "stop"})


async def read_spent(connection: aiosqlite.Connection, job_id: str) -> Spent:
    cursor = await connection.execute(
        "SELECT tokens_sent, tokens_answered, money, currency FROM jobs WHERE id = ?", (job_id,)
    )
    row = await cursor.fetchone()
    return spent_from_row(row) if row else Spent()


async def record_spent(connection: aiosqlite.Connection, job_id: str, spent: Spent, now: datetime) -> None:
    """Adds it to what the job took, and to what all jobs took on this day."""
    total = await read_spent(connection, job_id) + spent
    money, currency = (total.money.amount, total.money.currency) if total.money else (0.0, "")
    await connection.execute(
        "UPDATE jobs SET tokens_sent = ?, tokens_answered = ?, money = ?, currency = ? WHERE id = ?",
        (total.sent, total.answered, money, currency, job_id),
    )
    await connection.execute(
        "INSERT INTO spending (day, tokens) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET tokens = tokens + ?",
        (day_of(now), spent.tokens, spent.tokens),
    )
    await connection.execute("DELETE FROM spending WHERE day < ?", (day_of(now - _KEPT),))


async def spent_since_asked(connection: aiosqlite.Connection, instruction: Instruction) -> int:
    """Whoever writes after it was asked lets the job go on, and what it took till then counts no more."""
    cursor = await connection.execute(
        "SELECT tokens_sent + tokens_answered AS tokens, tokens_agreed, prompt, "
        "asked_at < instructions.created_at AS is_reply "
        "FROM jobs JOIN instructions ON job_id = jobs.id WHERE number = ?",
        (instruction.number,),
    )
    row = await cursor.fetchone()
    if row is None:
        return 0
    if row["is_reply"] and not says_no(row["prompt"]):
        await connection.execute(
            "UPDATE jobs SET tokens_agreed = ?, asked_at = NULL WHERE id = ?", (row["tokens"], instruction.job_id)
        )
        return 0
    return int(row["tokens"] - row["tokens_agreed"])


async def tokens_of_day(connection: aiosqlite.Connection, now: datetime) -> int:
    cursor = await connection.execute("SELECT tokens FROM spending WHERE day = ?", (day_of(now),))
    row = await cursor.fetchone()
    return int(row["tokens"]) if row else 0


def says_no(reply: str) -> bool:
    """Whether a reply is a no and nothing else."""
    return " ".join("".join(c if c.isalpha() else " " for c in reply.casefold()).split()) in _NO


def day_of(moment: datetime) -> str:
    """Returns the day, of UTC, as the table has it."""
    return as_text(moment)[:10]
