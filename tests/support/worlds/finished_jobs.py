"""Fills a database with the history of finished jobs, quickly and in SQL alone, as after months of work."""

from collections.abc import Iterator

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from bot.queue.engine import DatabaseConnection

LONG_AGO = 1_600_000_000.0
PEOPLE, CHANNELS = 500, 50
"""How many people the jobs are by, and how many channels they are in."""
_KNOWN = '{"job": {"id": "j", "status": "completed"}, "round": 1, "announced": ["started", "r1/completed"]}'
_OPTIONS = '{"way_in": "command", "quiet": false, "project_said": "", "project_reason": "only_one"}'
_NUMBERS = "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < :count)"
_NOTICES = (
    # key, delivery, fields of the message, and its person, if any
    ("card", "card", '"kind":"card_changed"', ""),
    ("started/0", "post", '"kind":"job_started","job_id":"j"', ""),
    ("finished/0", "post", '"kind":"job_finished"', ""),
    ("mark", "reaction", '"kind":"reaction_changed","message_ts":"1.1","reaction":"eyes"', ""),
    ("told", "ephemeral", '"kind":"action_answered","answer":"other_workspace"', "requester_id"),
)


_RANDOM_IDS = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "md5(i::text)"}


def _statements(random_id: str) -> Iterator[str]:
    # In the order of time, as they came.
    yield f"""
        INSERT INTO threads (id, team_id, channel_id, ts, card_ts, number, origin, requester_id, prompt, project,
                             options, created_at, updated_at, job_id, state, revision)
        {_NUMBERS}, jobs AS (SELECT i, {random_id} AS id FROM numbers)
        SELECT id, 'T1', 'C' || (i % {CHANNELS}), i || '.0001', i || '.0001', 0, 'card', 'U' || (i % {PEOPLE}),
               'Please bring the guides in line with the latest release, and fix what you find on the way.', 'docs',
               '{_OPTIONS}',
               {LONG_AGO} + i, {LONG_AGO} + i, 'job-' || i, '{_KNOWN}', 4
        FROM jobs ORDER BY i"""  # noqa: S608 - the module's own words
    yield "INSERT INTO polls (thread_id) SELECT id FROM threads ORDER BY created_at"
    yield """
        INSERT INTO pull_requests (thread_id, link, followed)
        SELECT id, 'https://git.example/' || ts, '{"ended": true}' FROM threads ORDER BY created_at"""
    for kind, key in (("start", "command/"), ("follow_up", "message/")):
        yield f"""
            INSERT INTO requests (id, thread_id, kind, source_key, person_id, text, written_at, recorded_at, state,
                                  attempts, problem, edited_at, uncertain, team_id, attachments, merged_into)
            SELECT id || '{kind}', id, '{kind}', '{key}' || id, requester_id, prompt, ts, created_at, 'accepted',
                   1, '', '', 1 = 0, 'T1', '', ''
            FROM threads ORDER BY created_at"""  # noqa: S608 - the module's own words
    for key, delivery, fields, person in _NOTICES:
        of_person = f',"person_id":"\' || {person} || \'"' if person else ""
        yield f"""
            INSERT INTO notices ({"person_id, " if person else ""}key, thread_id, delivery, message, created_at, state,
                                 revision, attempts, uncertain, without_blocks, posted_ts, problem)
            SELECT {f"{person}, " if person else ""}id || '/{key}', id, '{delivery}', '{{{fields}{of_person}}}',
                   created_at, 'done', 0, 1, FALSE, FALSE, ts, ''
            FROM threads ORDER BY created_at"""  # noqa: S608 - the module's own words


async def fill(engine: AsyncEngine, count: int) -> None:
    """Adds this many finished jobs to an empty database; all their rows are done."""
    async with engine.connect() as connection:
        for statement in _statements(_RANDOM_IDS[engine.dialect.name]):
            values = {"count": count} if ":count" in statement else {}
            await connection.execute(text(statement), values)
            await connection.commit()


async def vacuum(engine: AsyncEngine) -> None:
    """Does on PostgreSQL what its autovacuum does after a while, which would disturb measurements."""
    if engine.dialect.name == "postgresql":
        async with engine.connect() as connection:
            everything = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await everything.execute(text("VACUUM ANALYZE"))


async def fill_request_files(connection: AsyncConnection) -> None:
    """Adds a file to each follow-up, as those that were handed back have."""
    statement = """
        INSERT INTO request_files (request_id, position, file, attempts)
        SELECT id, 0, '{"id": "F1", "name": "a.png"}', 9 FROM requests WHERE kind = 'follow_up'"""
    await connection.execute(text(statement))


async def fill_early_replies(connection: AsyncConnection, count: int) -> None:
    """Adds this many replies that wait for a card, by many people in many channels."""
    statement = f"""
        INSERT INTO early_replies (channel_id, message_ts, thread_ts, person_id, team_id, text, attachments,
                                   edited_at, withdrawn, mentions_us, word)
        {_NUMBERS}
        SELECT 'E' || (i % {CHANNELS}), i || '.2', i || '.1', 'U' || (i % {PEOPLE}), 'T1', 'More.', '', '',
               1 = 0, 1 = 0, ''
        FROM numbers"""  # noqa: S608 - the module's own words
    await connection.execute(text(statement), {"count": count})


async def fill_activity(connection: DatabaseConnection, count: int) -> None:
    """Adds this many audit entries, counted requests, versions, channel ids, Slack calls, drafts, preferences, Homes,
    last times and faults of the set-up.
    """
    people = f"{_NUMBERS} SELECT 'P' || i"
    for statement in (
        f"""
        INSERT INTO audit (at, action, person_id, team_id, channel_id, thread_id, job_id, project, way_in, reason)
        {_NUMBERS}
        SELECT {LONG_AGO} + i, 'steered', 'U' || (i % {PEOPLE}), 'T1', 'C' || (i % {CHANNELS}), 't', 'j', 'docs',
               'reply', '' FROM numbers ORDER BY i""",  # noqa: S608 - the module's own words
        f"""
        INSERT INTO counted_requests (request_id, person_id, at)
        {_NUMBERS} SELECT 'r' || i, 'U' || (i % {PEOPLE}), {LONG_AGO} + i FROM numbers""",  # noqa: S608 - the module's own words
        f"""
        INSERT INTO message_versions (channel_id, message_ts, person_id, edited_at, noted_at)
        {_NUMBERS} SELECT 'C' || (i % {CHANNELS}), i || '.1', 'U' || (i % {PEOPLE}), '', {LONG_AGO} + i FROM numbers""",  # noqa: S608 - the module's own words
        f"""
        INSERT INTO channel_ids (channel_id, known_as, changed_at, recorded_at)
        {_NUMBERS}
        SELECT 'N' || i, CASE i % 2 WHEN 0 THEN 'M' || i ELSE 'C' || (i % {CHANNELS}) END, {LONG_AGO} + i,
               {LONG_AGO} + i FROM numbers""",  # noqa: S608 - the module's own words
        f"""
        INSERT INTO slack_calls (method, channel_id, tat)
        {_NUMBERS} SELECT 'chat.postMessage', 'D' || i, {LONG_AGO} + i FROM numbers""",  # noqa: S608 - the module's own words
        f"INSERT INTO drafts (person_id, place, text, updated_at) {people}, 'C1', 'Do', {LONG_AGO} + i FROM numbers",
        f"INSERT INTO preferences (person_id, project, quiet) {people}, 'docs', 1 = 0 FROM numbers",
        f"INSERT INTO homes (person_id, page, opened_at) {people}, 0, {LONG_AGO} + i FROM numbers",
        f"INSERT INTO last_times (kind, at) {people}, {LONG_AGO} + i FROM numbers",
        "INSERT INTO stops_seen (thread_id, person_id) SELECT id, requester_id FROM threads LIMIT :count",
        f"""
        INSERT INTO gaps (channel_id, thread_ts, since, until, asks, first, newest, attempts)
        {people}, i || '.1', {LONG_AGO}, {LONG_AGO}, 1 = 0, 1 = 0, {LONG_AGO} + i, 0 FROM numbers""",
    ):
        await connection.execute(text(statement), {"count": count})
