"""`pagehand backup` copies the database; `pagehand restored` marks as in doubt what was open when a copy was made."""

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from bot.app.settings.config import database_url
from bot.domain.jobs.poll_pace import Polling, next_poll_in
from bot.domain.requests.request import Request, RequestKind, RequestState
from bot.domain.requests.settle import Uncertain, settle
from bot.errors import StoreUnavailable, UnreadableRow
from bot.notices.answers import ActionAnswer, ActionAnswered
from bot.notices.notice import NewNotice, NoticeKey
from bot.queue.engine import existing_file
from bot.service.settle import record_result
from bot.store.backup import backup
from bot.store.files import is_in_use
from bot.store.store import Store, Transaction, open_store

_DATED = re.compile(r"pagehand-[0-9]{8}T[0-9]{6}Z\.sqlite3")


def back_up_database(environ: Mapping[str, str], named: str, keep: int | None, *, now: datetime) -> None:
    """Copies the database to a new file or, in a directory, to one that is named by date. Then deletes all but the
    `keep` newest of such files. Raises click.UsageError; ConfigError, StoreError.
    """
    target = Path(named)
    is_directory = target.is_dir()
    if keep is not None and not is_directory:
        raise click.UsageError(f"--keep needs a directory, and {target} is none.")
    file = target / f"pagehand-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}.sqlite3" if is_directory else target
    if file.exists():
        raise click.UsageError(f"{file} already exists: name a new file.")
    asyncio.run(back_up(database_url(environ), file))
    click.echo(f"Copied to {file}.")
    for each in _older(file)[keep - 1 :] if keep is not None else ():
        each.unlink()
        click.echo(f"Deleted {each}.")


def _older(newest: Path) -> list[Path]:
    """Returns the other files beside it that are named by date, the newest first."""
    dated = (each for each in newest.parent.iterdir() if _DATED.fullmatch(each.name) and each.name != newest.name)
    return sorted((each for each in dated if each.is_file() and not each.is_symlink()), reverse=True)


async def back_up(url: str, file: Path) -> None:
    """Copies a database to a new file, in which all open work is marked as in doubt. Raises ConfigError, StoreError."""
    await backup(url, file, mark_in_doubt=mark_in_doubt)


BATCH_SIZE = 2_000
"""Notices that one transaction examines."""
_NOT_REPEATABLE = (
    RequestKind.STOP,
    RequestKind.DISCARD,
    RequestKind.RETRY,
    RequestKind.SEND_AGAIN,
    RequestKind.SEND_NEW_WORDS,
    RequestKind.SEND_HELD,
    RequestKind.SEND_ALL_HELD,
    RequestKind.DISCARD_HELD,
    RequestKind.CHOOSE_PROJECT,
    RequestKind.ACCEPT_PROPOSAL,
)
"""Kinds that may have sent something, started a job, or stopped newer work. All others can safely be repeated."""
_WHY = "it was open when the backup was made"


def mark_restored_in_doubt(environ: Mapping[str, str]) -> str:
    """Marks open work in a restored database as in doubt, and returns a summary. Raises ConfigError, StoreError."""
    url = database_url(environ)
    existing_file(url)
    if asyncio.run(is_in_use(url)):
        raise StoreUnavailable(
            "an instance of Pagehand is using this database, or was less than a minute ago. Stop every instance, wait "
            "a minute, and try again."
        )
    requests, actions, notices = asyncio.run(mark_in_doubt(url))
    if not (requests or actions or notices):
        return "Nothing was open when this backup was made: nothing is in doubt."
    return (
        f"In doubt: {requests} for the agent, {actions} of buttons, words and stops, {notices} posts and reactions. "
        "Once the bot runs, it looks for them in Slack or asks in the thread."
    )


async def mark_in_doubt(url: str) -> tuple[int, int, int]:
    """Marks open work as in doubt in a database that no process uses. Raises ConfigError, StoreError."""
    store = await open_store(url)
    try:
        return await mark_all_in_doubt(store)
    finally:
        await store.close()


async def mark_all_in_doubt(store: Store) -> tuple[int, int, int]:
    """Does the same in a store, and returns the numbers of requests, of actions and of notices that may have been sent
    since the backup. After an interruption, it can be run again.
    """
    await store.transact(lambda tx: tx.gaps.restored())
    requests = await store.transact(lambda tx: tx.restoration.mark_requests_in_doubt())
    actions = await _end_actions(store)
    for thread_id in await store.transact(lambda tx: tx.restoration.open_threads()):
        await _mark_news_in_doubt(store, thread_id)
    notices = await store.transact(lambda tx: tx.restoration.mark_notices_in_doubt())
    await _mark_reactions_in_doubt(store)
    await store.transact(lambda tx: tx.restoration.mark_pull_requests_in_doubt())
    return requests, actions, notices


async def _mark_news_in_doubt(store: Store, thread_id: str) -> None:
    async def work(tx: Transaction) -> None:
        thread = await tx.threads.get(thread_id)
        if thread is not None:
            state = replace(thread.state, announcements=replace(thread.state.announcements, restored=True))
            poll_in = next_poll_in(state, tx.now, Polling(), jitter=0.5)
            await tx.threads.save_state(thread.id, state, poll_in=poll_in)

    with suppress(UnreadableRow):  # its next owner sets it aside and reports it
        await store.transact(work)


async def _mark_reactions_in_doubt(store: Store) -> None:
    done: int | None = 0
    while done is not None:
        mark = partial(lambda after, tx: tx.restoration.mark_reactions_in_doubt(after=after, limit=BATCH_SIZE), done)
        done = await store.transact(mark)


async def _end_actions(store: Store) -> int:
    ended = 0
    for request_id in await store.transact(lambda tx: tx.restoration.open_of_kinds(_NOT_REPEATABLE)):
        with suppress(UnreadableRow):  # its next owner sets it aside and reports it
            ended += await store.transact(partial(_end, request_id=request_id))
    return ended


async def _end(tx: Transaction, request_id: str) -> int:
    request = await tx.requests.get(request_id)
    if request is None:
        return 0
    if request.kind in {RequestKind.STOP, RequestKind.ACCEPT_PROPOSAL}:
        await _tell_of_doubt(tx, request)
    else:
        told = ActionAnswered(request.person_id, ActionAnswer.RESTORED)
        await tx.notices.add(request.thread_id, NewNotice(NoticeKey(request.source_key), told))
        await tx.requests.prepared(replace(request, state=RequestState.UNCERTAIN))
    return 1


async def _tell_of_doubt(tx: Transaction, request: Request) -> None:
    """A stop ends only work that started before it, and what is running now may be newer. A plan may have started."""
    thread = await tx.threads.get(request.thread_id)
    if thread is not None:
        tried = replace(request, attempts=request.attempts + 1)  # each attempt is reported once
        settlement = settle(tried, thread.state, Uncertain(_WHY), tx.now, Polling())
        await record_result(tx, thread, [request], settlement)
