"""The pull requests of jobs: what was last read of each, and when it is read next and by whom."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Double, Select, and_, bindparam, case, delete, exists, or_, select, update

from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import Thread
from bot.notices.notice import NoticeKey, in_database, within_thread
from bot.queue.claims import CLAIM, FREE, LIMIT, NOW, first_due
from bot.queue.transaction import upserting
from bot.store.claims import read_each
from bot.store.schema.rows import followed_from, json_of, thread_to_speak_in
from bot.store.schema.tables import NoticeState, notices, pull_requests, threads
from bot.store.session import Part, Session

_FOLLOW = upserting(
    pull_requests,
    lambda new: {
        "link": new.link,
        "followed": case((pull_requests.c.link == new.link, pull_requests.c.followed), else_=new.followed),
        "due_at": new.due_at,
        **FREE,
    },
    where=lambda new: or_(pull_requests.c.link != new.link, pull_requests.c.due_at.is_(None)),
)


def _with_threads() -> Select[Any]:
    return select(pull_requests, threads).join(threads, threads.c.id == pull_requests.c.thread_id)


_CANDIDATES = first_due(_with_threads(), pull_requests, of=pull_requests)
_CLAIM = (
    update(pull_requests)
    .where(pull_requests.c.thread_id.in_(bindparam("ids", expanding=True)))
    .values(not_before=CLAIM["claimed_until"], **CLAIM)
)
_EARLIEST = case((pull_requests.c.not_before > NOW, pull_requests.c.not_before), else_=NOW)
_MAKE_DUE = (
    update(pull_requests)
    .where(
        pull_requests.c.link.in_(bindparam("links", expanding=True)),
        pull_requests.c.due_at.is_not(None),
        or_(pull_requests.c.due_at > _EARLIEST, pull_requests.c.claimed_until > NOW),
    )
    .values(due_at=_EARLIEST)
)
_ASKED_FOR_AGAIN = pull_requests.c.due_at >= pull_requests.c.claimed_until
"""Of one that is being read, which was due before it was claimed: it has news meanwhile."""
_NEXT_AT, _NOT_BEFORE = bindparam("next_at", type_=Double), bindparam("earliest", type_=Double)
_SAVE = (
    update(pull_requests)
    .where(pull_requests.c.thread_id == bindparam("thread"))
    .values(
        followed=bindparam("now_followed"),
        due_at=case((and_(_ASKED_FOR_AGAIN, _NEXT_AT > _NOT_BEFORE), _NOT_BEFORE), else_=_NEXT_AT),
        not_before=_NOT_BEFORE,
        **FREE,
    )
)
_OF_THREAD = select(pull_requests.c.followed).where(pull_requests.c.thread_id == bindparam("thread"))
_HELD = (
    _with_threads()
    .where(
        pull_requests.c.thread_id == bindparam("thread"),
        pull_requests.c.link == bindparam("of_link"),
        pull_requests.c.claimed_by == bindparam("owner"),
    )
    .with_for_update(of=pull_requests)
)
_SIBLINGS = (
    select(threads.c.id)
    .where(
        or_(
            threads.c.id == bindparam("thread"),
            and_(threads.c.channel_id == bindparam("channel"), threads.c.ts == bindparam("slack_thread")),
        )
    )
    .order_by(threads.c.id)
    .with_for_update(key_share=True)
)
"""All jobs of a Slack thread, so that no two of them tell of the same link at once."""
_OTHERS = (
    select(pull_requests.c.followed, threads.c.number)
    .join(threads, threads.c.id == pull_requests.c.thread_id)
    .where(
        threads.c.channel_id == bindparam("channel"),
        threads.c.ts == bindparam("slack_thread"),
        threads.c.id != bindparam("thread"),
        pull_requests.c.link == bindparam("of_link"),
    )
)


_UNFOLLOWED = (
    select(threads)
    .where(
        threads.c.updated_at > bindparam("since"),
        threads.c.state.contains('"pr_link":"', autoescape=True),
        ~exists().where(pull_requests.c.thread_id == threads.c.id),
    )
    .order_by(threads.c.updated_at)
    .limit(LIMIT)
    .with_for_update(key_share=True, skip_locked=True)
)


async def follow(session: Session, links: Iterable[tuple[str, str]]) -> None:
    """Follows the newest link of each of these threads, by their ids: from its beginning if it is new, and again if
    following had ended. The threads are locked.
    """
    rows = [
        {"thread_id": thread_id, "link": link, "followed": json_of(FollowedPullRequest()), "due_at": session.now}
        for thread_id, link in links
    ]
    if rows:
        await session.execute(_FOLLOW, rows)


@dataclass(frozen=True)
class ClaimedPullRequest:
    """A pull request to read, with the thread of its job; `is_told_elsewhere`: a newer job in the same Slack thread has
    the same one.
    """

    thread: Thread
    link: str
    followed: FollowedPullRequest
    is_told_elsewhere: bool = False


class PullRequests(Part):
    """The pull requests of jobs."""

    async def claim(self, owner: str, *, lease: float, limit: int) -> Sequence[ClaimedPullRequest]:
        """Claims those that are due and unclaimed, the most overdue first."""
        session = self._session
        rows = await session.rows(_CANDIDATES, now=session.now, limit=limit)
        if rows:
            ids = [row[pull_requests.c.thread_id] for row in rows]
            await session.execute(_CLAIM, {"ids": ids, "owner": owner, "lease_end": session.now + lease})
            session.takeovers += sum(row[pull_requests.c.claimed_by] is not None for row in rows)
        return [_claimed(row) for row in rows]

    async def follow_unknown(self, *, since: float, limit: int) -> int:
        """Follows at most `limit` links that a process of a version recorded which follows none, and which are still
        those of jobs that changed later than `since`. Returns how many.
        """
        rows = await self._session.rows(_UNFOLLOWED, since=since, limit=limit)
        there, _ = read_each(((row[threads.c.id], row) for row in rows), thread_to_speak_in)
        links = [(each.id, each.state.job.pr_link) for each in there if each.state.job and each.state.job.pr_link]
        await follow(self._session, links)
        return len(links)

    async def of(self, thread_id: str) -> FollowedPullRequest:
        """Returns what was last read of a thread's pull request."""
        rows = await self._session.rows(_OF_THREAD, thread=thread_id)
        return followed_from(rows[0][pull_requests.c.followed]) if rows else FollowedPullRequest()

    async def held(self, claimed: ClaimedPullRequest, owner: str) -> ClaimedPullRequest | None:
        """Returns it as it is now, with all jobs of its Slack thread locked; None if `owner` has lost the claim, or the
        job has another link. What others in the same Slack thread told of the same link counts as told.
        """
        session, thread = self._session, claimed.thread
        place = {"channel": thread.channel_id, "slack_thread": thread.ts}
        locked = await session.rows(_SIBLINGS, thread=thread.id, **place)
        session.note_locked(row[threads.c.id] for row in locked)
        rows = await session.rows(_HELD, thread=thread.id, of_link=claimed.link, owner=owner)
        if not rows:
            return None
        now = _claimed(rows[0])
        others = await session.rows(_OTHERS, thread=thread.id, of_link=claimed.link, **place)
        told = now.followed.told.union(*(followed_from(row[pull_requests.c.followed]).told for row in others))
        elsewhere = any(row[threads.c.number] > now.thread.number for row in others)
        return replace(now, followed=replace(now.followed, told=told), is_told_elsewhere=elsewhere)

    async def save(
        self, thread_id: str, followed: FollowedPullRequest, *, next_read_in: float | None, rests_for: float = 0.0
    ) -> None:
        """Saves what was read, and frees the claim; it is due in this many seconds, or no more. Until `rests_for`
        seconds are over, nothing makes it due; then it is, if something tried to while it was being read.
        """
        now = self._session.now
        due = {"next_at": None if next_read_in is None else now + next_read_in, "earliest": now + rests_for}
        await self._session.execute(_SAVE, {"thread": thread_id, "now_followed": json_of(followed), **due})

    async def make_due(self, links: Sequence[str]) -> None:
        """Has those with these links read next as soon as they may be; again after that if they are being read now.
        Only due times change, so no thread is locked.
        """
        await self._session.execute(_MAKE_DUE, {"links": links, "now": self._session.now})

    async def withdraw(self, thread_id: str, keys: Iterable[NoticeKey]) -> frozenset[NoticeKey]:
        """Deletes news that no longer holds, unless it may have been posted, and returns its keys. The thread is
        locked.
        """
        stored = [in_database(thread_id, key) for key in sorted(keys)]
        if not stored:
            return frozenset()
        untried = (notices.c.state == NoticeState.WAITING, notices.c.attempts == 0)
        deleted = delete(notices).where(notices.c.key.in_(stored), *untried).returning(notices.c.key)
        return frozenset(within_thread(thread_id, key) for key in (await self._session.execute(deleted)).scalars())


def _claimed(row: Any) -> ClaimedPullRequest:
    followed = followed_from(row[pull_requests.c.followed])
    return ClaimedPullRequest(thread_to_speak_in(row), row[pull_requests.c.link], followed)
