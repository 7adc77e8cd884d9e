"""A job's pull request, from its link to its end: what the card shows, and what is posted once."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.postgres import PostgresServer
from support.worlds.core_world import ANA, BEN, CoreWorld, stored

from bot.cli.backup import mark_all_in_doubt
from bot.codehosts.pull_request import Check, CheckOutcome, Preview, Reason, Review, Unreadable, Verdict
from bot.domain.commands import ThreadWord
from bot.domain.people import HomeContent
from bot.domain.projects import ChannelSettings, PostMode, Project, Projects
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.requests.request import Reply, RequestKind
from bot.domain.threads.thread import Thread
from bot.notices.notice import NoticeContent
from bot.notices.pull_requests import (
    ChangesRequested,
    ChecksFailed,
    FollowUpAfterEnd,
    PullRequestClosed,
    PullRequestMerged,
    PullRequestNews,
)
from bot.scheduler.retention import DAY, RetentionSweeper
from bot.slack.rendering.home import home_view
from bot.slack.rendering.message_context import MessageContext
from bot.store.store import open_store

LINK, OTHER = "https://git.example/acme/docs/pull/1", "https://git.example/acme/docs/pull/2"
PASSED, FAILED, RUNNING = CheckOutcome.PASSED, CheckOutcome.FAILED, CheckOutcome.RUNNING
LINT = Check(name="lint", outcome=FAILED)
BUILD = Check(name="build", outcome=RUNNING)
ASKED = Review(author="rae", verdict=Verdict.CHANGES_REQUESTED, comments=2, head="a1")


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=(pytest.mark.postgres, pytest.mark.full))))
def server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """None: SQLite. It is started before any event loop runs."""
    return request.getfixturevalue("postgres") if request.param == "postgres" else None


@pytest.fixture
async def world(server: PostgresServer | None, sqlite_template: Path) -> AsyncIterator[CoreWorld]:
    """The use cases and the workers over both databases."""
    world = CoreWorld()
    if server is None:
        async with stored(world, sqlite_template):
            yield world
        return
    async with server.database() as url:
        store = await open_store(url, clock=world.clock)
        yield world.on(store, world.clock)
        await store.close()


async def opened(world: CoreWorld, link: str = LINK, *, key: str = "k1", **told: Any) -> str:
    """A job that finished with an open pull request; returns its card's ts."""
    ts = await world.started(key=key)
    world.code_hosts.show(link, **told)
    world.job_api.show(f"job-{len(world.job_api.jobs)}", "completed", link)
    await world.pass_time(60)
    return ts


async def pass_days(world: CoreWorld, days: float, *, steps: int = 1) -> None:
    """Advances the time, working once a step."""
    for _ in range(steps):
        world.clock.advance(days * DAY / steps)
        await world.settle()


def news(world: CoreWorld) -> list[NoticeContent]:
    return [each.message for each in world.chat.messages if isinstance(each.message, PullRequestNews)]


async def shown(world: CoreWorld, ts: str) -> FollowedPullRequest:
    """What the card shows."""
    followed = world.chat.cards[(await world.thread(ts)).id].pull_request
    assert followed is not None
    return followed


async def test_a_merge_is_told_once_and_shown(world: CoreWorld) -> None:
    ts = await opened(world)
    assert news(world) == []
    world.code_hosts.show(LINK, state="merged", ended_by="rae")
    await world.pass_time(300)
    await pass_days(world, 8, steps=2)
    assert news(world) == [PullRequestMerged(LINK, "rae")]
    followed = await shown(world, ts)
    assert followed.found is not None
    assert (followed.found.pull_request.ended_by, followed.ended) == ("rae", True)


async def test_home_shows_what_became_of_it(world: CoreWorld) -> None:
    """A Home is due again after each change of its cards."""
    await opened(world)
    await world.store.transact(lambda tx: tx.homes.opened(ANA.id))
    await world.store.transact(lambda tx: tx.homes.claim("one", lease=30.0, limit=1))
    await world.store.transact(lambda tx: tx.homes.published(ANA.id, "one"))
    world.code_hosts.show(LINK, state="merged", ended_by="rae")
    await world.pass_time(300)
    due = await world.store.transact(lambda tx: tx.homes.claim("one", lease=30.0, limit=1))
    assert [home.person_id for home in due] == [ANA.id]
    jobs = await world.store.transact(lambda tx: tx.threads.of_person(ANA.id, offset=0, limit=1))
    home = home_view(HomeContent(ANA.id, jobs=jobs), {}, MessageContext())
    assert "Finished: the pull request is merged" in str(home)


async def test_a_pull_request_that_is_opened_again_can_be_merged(world: CoreWorld) -> None:
    await opened(world)
    for state in ("closed", "open", "merged"):
        world.code_hosts.show(LINK, state=state)
        await pass_days(world, 1)
    assert news(world) == [PullRequestClosed(LINK), PullRequestMerged(LINK)]


async def test_a_failed_check_is_told_once_for_each_head(world: CoreWorld) -> None:
    await opened(world, checks=(LINT,))
    world.code_hosts.show(LINK, checks=(LINT, Check(name="links", outcome=FAILED)))
    await world.pass_time(300)
    assert news(world) == [ChecksFailed(LINK, ("lint",))]
    world.code_hosts.show(LINK, head="b2")
    await world.pass_time(300)
    world.code_hosts.show(LINK, head="a1")
    await world.pass_time(300)
    assert news(world) == [ChecksFailed(LINK, ("lint",)), ChecksFailed(LINK, ("lint", "links"))]


async def test_checks_settle_before_a_failure_is_told(world: CoreWorld) -> None:
    """For ten minutes at most: one that hangs must not hide the others."""
    await opened(world, checks=(LINT, BUILD))
    await world.pass_time(450)
    assert news(world) == []
    await world.pass_time(300)
    assert news(world) == [ChecksFailed(LINK, ("lint",))]


async def test_what_the_base_fails_too_is_no_news(world: CoreWorld) -> None:
    await opened(world, checks=(LINT.model_copy(update={"fails_on_base": True}),))
    await world.pass_time(1_000)
    assert news(world) == []


async def test_a_reviewer_who_asks_for_changes_is_told_once(world: CoreWorld) -> None:
    await opened(world, reviews=(ASKED, Review(author="sam", verdict=Verdict.APPROVED, head="a1")))
    world.code_hosts.show(LINK, head="b2")
    await world.pass_time(300)
    assert news(world) == [ChangesRequested(LINK, "rae", 2)]
    world.code_hosts.show(LINK, reviews=(ASKED.model_copy(update={"head": "b2"}),))
    await world.pass_time(300)
    assert len(news(world)) == 2


async def test_a_stale_failure_is_never_told_after_the_merge(world: CoreWorld) -> None:
    """The failure is recorded, and cannot be posted before the merge is seen."""
    await opened(world, checks=(LINT, BUILD))
    world.code_hosts.show(LINK, checks=(LINT,))
    world.clock.advance(120)
    assert await world.step(world.pull_request_poller) == 1
    world.code_hosts.show(LINK, state="merged")
    world.clock.advance(120)
    assert await world.step(world.pull_request_poller) == 1
    await world.pass_time(60)
    assert news(world) == [PullRequestMerged(LINK)]


async def test_a_new_head_retires_what_was_not_posted_yet(world: CoreWorld) -> None:
    await opened(world, checks=(LINT, BUILD))
    for told in ({"checks": (LINT,)}, {"head": "b2", "checks": ()}):
        world.code_hosts.show(LINK, **told)
        world.clock.advance(120)
        assert await world.step(world.pull_request_poller) == 1
    await world.pass_time(60)
    assert news(world) == []


async def test_a_failure_that_passed_before_it_was_posted_can_come_back(world: CoreWorld) -> None:
    await opened(world, checks=(LINT, BUILD))
    for checks in ((LINT,), (), (LINT,)):
        world.code_hosts.show(LINK, checks=checks)
        world.clock.advance(120)
        assert await world.step(world.pull_request_poller) == 1
    await world.pass_time(60)
    assert news(world) == [ChecksFailed(LINK, ("lint",))]


async def test_a_muted_job_only_has_its_card_changed(world: CoreWorld) -> None:
    ts = await opened(world)
    await world.press(RequestKind.MUTE, ANA, "", key="mute", thread_id=(await world.thread(ts)).id)
    world.code_hosts.show(LINK, state="merged")
    await world.pass_time(300)
    await world.press(RequestKind.UNMUTE, ANA, "", key="unmute", thread_id=(await world.thread(ts)).id)
    await world.pass_time(300)
    assert news(world) == []
    followed = await shown(world, ts)
    assert followed.found is not None
    assert followed.found.pull_request.state == "merged"


async def test_a_channel_that_wants_ends_only_gets_no_checks_and_reviews(world: CoreWorld) -> None:
    world.projects = Projects((Project("docs"),), {"C1": ChannelSettings(posts=PostMode.ENDS)})
    world.assemble()
    await opened(world, checks=(LINT,), reviews=(ASKED,))
    world.code_hosts.show(LINK, state="closed", ended_by="rae")
    await world.pass_time(300)
    assert news(world) == [PullRequestClosed(LINK, "rae")]


async def test_the_card_shows_title_checks_reviews_and_previews_once_they_change(world: CoreWorld) -> None:
    preview = Preview(name="docs", link="https://preview.example/1")
    ts = await opened(world, checks=(BUILD,))
    edits = world.chat.calls.count("update_card")
    await world.pass_time(300)
    assert world.chat.calls.count("update_card") == edits, "nothing has changed"
    world.code_hosts.show(LINK, checks=(BUILD.model_copy(update={"outcome": PASSED}),), previews=(preview,))
    await world.pass_time(120)
    followed = await shown(world, ts)
    assert followed.found is not None
    assert followed.found.pull_request.previews == (preview,)
    assert world.chat.calls.count("update_card") == edits + 1
    world.code_hosts.show(LINK, title="Ports", previews=(preview,))
    await world.pass_time(120)
    assert world.chat.calls.count("update_card") == edits + 2
    assert news(world) == []


async def test_of_an_unknown_host_nothing_is_read_and_nothing_claimed(world: CoreWorld) -> None:
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert world.code_hosts.reads == [LINK], "once: there may be a million of these"
    assert (await shown(world, ts)).found is None


async def test_a_job_with_news_has_its_pull_request_read_again(world: CoreWorld) -> None:
    """Its host may be known by now, or following may have ended."""
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    world.code_hosts.show(LINK, state="merged")
    await world.reply(ts, "Once more", at="5.0")
    await world.pass_time(60)
    assert news(world) == [PullRequestMerged(LINK)]


async def test_what_cannot_be_read_is_shown_unless_it_passes(world: CoreWorld) -> None:
    ts = await opened(world)
    for reason, said in ((Reason.OUT_OF_REACH, None), (Reason.NOT_ALLOWED, Reason.NOT_ALLOWED)):
        world.code_hosts.refuses = Unreadable(reason)
        await world.pass_time(300)
        assert (await shown(world, ts)).unreadable is said
    world.code_hosts.refuses = None
    world.code_hosts.show(LINK, state="merged")
    await pass_days(world, 1)
    assert (await shown(world, ts)).unreadable is None
    assert news(world) == [PullRequestMerged(LINK)]


async def test_a_host_that_asks_to_wait_is_left_alone(world: CoreWorld) -> None:
    await opened(world)
    world.code_hosts.refuses = Unreadable(Reason.RATE_LIMITED, wait=1_800.0)
    await world.pass_time(120)
    reads = len(world.code_hosts.reads)
    await world.pass_time(1_500)
    assert len(world.code_hosts.reads) == reads


async def test_reads_become_rarer(world: CoreWorld) -> None:
    await opened(world)
    counts = []
    for days, steps in ((1 / 48, 30), (1 / 24, 1), (1 / 24, 60), (1.0, 1), (1.0, 200)):
        reads = len(world.code_hosts.reads)
        await pass_days(world, days, steps=steps)
        counts.append(len(world.code_hosts.reads) - reads)
    in_half_an_hour, _, in_an_hour, _, in_a_day = counts
    assert 14 <= in_half_an_hour <= 30
    assert 4 <= in_an_hour <= 8
    assert 18 <= in_a_day <= 32


async def test_a_quiet_pull_request_is_followed_for_as_long_as_jobs_are_kept(world: CoreWorld) -> None:
    ts = await opened(world)
    await pass_days(world, 91, steps=3)
    assert (await shown(world, ts)).ended
    reads = len(world.code_hosts.reads)
    await pass_days(world, 2)
    assert len(world.code_hosts.reads) == reads


async def test_another_link_of_the_job_is_followed_instead(world: CoreWorld) -> None:
    ts = await opened(world, checks=(LINT,))
    await world.reply(ts, "Once more", at="5.0")
    await world.pass_time(30)
    world.code_hosts.show(OTHER)
    world.job_api.show("job-1", "completed", OTHER)
    await world.pass_time(120)
    world.code_hosts.show(LINK, state="closed")
    world.code_hosts.show(OTHER, state="merged")
    await world.pass_time(300)
    assert news(world) == [ChecksFailed(LINK, ("lint",)), PullRequestMerged(OTHER)]


async def test_two_jobs_of_a_thread_with_one_link_tell_it_once(world: CoreWorld) -> None:
    ts = await opened(world, checks=(LINT,))
    await world.service.receive(Reply(ANA, "C1", ts, "5.0", "Another one", word=ThreadWord.NEW))
    await world.settle()
    world.job_api.show("job-2", "completed", LINK)
    await world.pass_time(120)
    world.code_hosts.show(LINK, state="merged")
    await world.pass_time(300)
    assert news(world) == [ChecksFailed(LINK, ("lint",)), PullRequestMerged(LINK)]


async def test_two_threads_with_one_link_are_both_told(world: CoreWorld) -> None:
    await opened(world)
    await opened(world, key="k2")
    world.code_hosts.show(LINK, state="merged")
    await world.pass_time(300)
    assert news(world) == [PullRequestMerged(LINK)] * 2


@pytest.mark.first(opens_another=1)
@pytest.mark.parametrize("opens_another", [False, True])
async def test_a_follow_up_after_the_end_says_what_it_will_do(world: CoreWorld, opens_another: bool) -> None:  # noqa: FBT001 - a case
    world.configure(tells_pull_requests=opens_another)
    ts = await opened(world, state="merged")
    for at in ("5.0", "6.0"):
        await world.reply(ts, f"And that {at}", at=at, person=BEN)
        await world.pass_time(60)
    told = [each.message for each in world.chat.messages if isinstance(each.message, FollowUpAfterEnd)]
    assert told == [FollowUpAfterEnd(merged=True, opens_another=opens_another)]


async def test_after_a_backup_is_restored_the_first_reading_announces_nothing(world: CoreWorld) -> None:
    ts = await opened(world)
    world.code_hosts.show(LINK, state="merged")
    await mark_all_in_doubt(world.store)
    await world.pass_time(300)
    assert news(world) == []
    followed = await shown(world, ts)
    assert followed.found is not None
    assert followed.found.pull_request.state == "merged"


async def test_who_loses_the_claim_saves_nothing(world: CoreWorld) -> None:
    await opened(world)
    world.clock.advance(120)
    claimed_at = world.clock.monotonic()
    (late,) = await world.pull_request_poller.claim(10)
    world.code_hosts.show(LINK, state="merged")
    world.clock.advance(31)
    assert await world.step(world.pull_request_poller) == 1, "its lease is over, and another claims it"
    world.code_hosts.show(LINK, state="closed")
    await world.pull_request_poller.process(late, claimed_at + 60)
    await world.settle()
    assert news(world) == [PullRequestMerged(LINK)]


async def news_comes(world: CoreWorld, *links: str) -> None:
    """A webhook is taken."""
    await world.store.transact(lambda tx: tx.pull_requests.make_due(links))


async def test_a_webhook_has_news_told_at_once(world: CoreWorld) -> None:
    """Also of one that is read once an hour only."""
    await opened(world)
    await pass_days(world, 3, steps=20)
    world.code_hosts.show(LINK, state="merged")
    world.clock.advance(15)
    await world.settle()
    assert news(world) == []
    await news_comes(world, LINK, OTHER)
    await world.settle()
    assert news(world) == [PullRequestMerged(LINK)]


async def test_webhooks_twice_late_and_replayed_tell_once_and_keep_the_distance(world: CoreWorld) -> None:
    await opened(world, checks=(LINT,))
    reads = len(world.code_hosts.reads)
    for _ in range(60):
        await news_comes(world, LINK)
        await news_comes(world, LINK)
        await world.settle()
        world.clock.advance(1)
    assert 3 <= len(world.code_hosts.reads) - reads <= 5
    world.code_hosts.show(LINK, state="merged")
    await world.pass_time(120)
    await news_comes(world, LINK)
    await world.pass_time(120)
    assert news(world) == [ChecksFailed(LINK, ("lint",)), PullRequestMerged(LINK)]


async def test_news_of_a_webhook_while_its_host_is_read_is_not_lost(world: CoreWorld) -> None:
    await opened(world)
    await pass_days(world, 3, steps=20)
    world.clock.advance(15)
    await news_comes(world, LINK)
    reading = await world.claim(world.pull_request_poller)
    await news_comes(world, LINK)
    await reading.process()
    world.code_hosts.show(LINK, state="merged")
    await world.pass_time(20)
    assert news(world) == [PullRequestMerged(LINK)]


async def kept_by_its_link(world: CoreWorld) -> Thread:
    """A thread that is old enough to be deleted, but for its pull request, which moves."""
    await opened(world)
    for day in range(10):
        world.code_hosts.show(LINK, head=f"head {day}")
        await pass_days(world, 10)
    await RetentionSweeper(world.store, world.variables).sweep()
    assert news(world) == []
    (kept,) = await world.store.transact(lambda tx: tx.threads.newest_of("C1", limit=5))
    return kept


async def test_only_ids_and_link_outlive_a_jobs_texts(world: CoreWorld) -> None:
    """Once following ends, they are deleted, too."""
    kept = await kept_by_its_link(world)
    assert (kept.prompt, kept.state.job.pr_link if kept.state.job else None) == ("", LINK)
    world.code_hosts.show(LINK, state="merged")
    await pass_days(world, 12, steps=4)
    assert news(world) == [PullRequestMerged(LINK)]
    await RetentionSweeper(world.store, world.variables).sweep()
    assert not await world.store.transact(lambda tx: tx.threads.newest_of("C1", limit=5))


async def test_a_job_without_its_texts_takes_follow_ups_and_is_not_retried(world: CoreWorld) -> None:
    kept = await kept_by_its_link(world)
    await world.press(RequestKind.RETRY, ANA, "", key="retry", thread_id=kept.id)
    await world.reply(kept.ts or "", "Go on", at="9.0")
    await world.pass_time(30)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(60)
    assert world.job_api.messages["job-1"] == ["Go on"]
    assert len(world.job_api.created) == 1, "what it was asked is not known any more"
    keys = [each.key for each in world.chat.messages]
    assert len(keys) == len({*keys}), "rounds go on, so no key comes back"
