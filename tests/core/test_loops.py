import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from core_world import ANA, BEN, EVA, World

from bot.domain.models import Mark, Thread
from bot.errors import (
    ChatBusy,
    ChatNotAllowed,
    ChatRefused,
    ChatUncertain,
    ChatUnreachable,
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRefused,
    JobApiUncertain,
    JobApiUnreachable,
    JobGone,
    NoSuchProject,
)
from bot.ports import Transaction

LINK = "https://example.org/pull/1"


async def test_a_job_from_command_to_pull_request(world: World) -> None:
    ts = await world.started('Replace "colour"')
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(5)
    assert world.job_api.created == ['Replace "colour"']
    assert [message.what for message in world.chat.messages] == ["card", "started", "finished"]
    job = (await world.thread(ts)).known.job
    assert job is not None
    assert job.pr_link == LINK
    shown = world.chat.cards[(await world.thread(ts)).id].known.job
    assert shown == job


async def test_a_redelivered_command_is_one_job(world: World) -> None:
    for _ in range(3):
        await world.service.start(ANA, "C1", "Do it", source_key="same")
    await world.settle()
    assert world.job_api.created == ["Do it"]
    assert [message.what for message in world.chat.messages].count("card") == 1


async def test_there_is_no_job_before_its_card(world: World) -> None:
    def down(call: str, thread: Thread | None) -> None:
        raise ChatUnreachable("no connection")

    world.chat.fault = down
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    await world.pass_time(10)
    assert world.job_api.created == []
    world.chat.fault = lambda call, thread: None
    await world.pass_time(60)
    assert world.job_api.created == ["Do it"]


async def test_a_reply_is_a_follow_up_with_its_marks(world: World) -> None:
    ts = await world.started()
    await world.reply(ts, "Shorter", "5.1")
    await world.settle()
    assert world.chat.marks == {"5.1": Mark.RECORDED}
    await world.pass_time(2)
    assert world.job_api.messages["job-1"] == ["Shorter"]
    assert world.chat.marks == {"5.1": Mark.TAKEN}


async def test_follow_ups_keep_the_order_in_which_they_were_written(world: World) -> None:
    ts = await world.started()
    for at in ("5.3", "5.1", "5.2", "5.1"):
        await world.reply(ts, at, at)
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["5.1", "5.2", "5.3"]


async def test_follow_ups_wait_for_the_job(world: World) -> None:
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(3)]
    ts = await world.started()
    await world.reply(ts, "later", "5.1")
    await world.pass_time(30)
    assert world.job_api.created == ["Do it"]
    assert world.job_api.messages["job-1"] == ["later"]


async def test_other_threads_are_nobodys_business(world: World) -> None:
    await world.started()
    assert not await world.service.steer(ANA, "C1", "1.1", "5.1", "hello")
    await world.pass_time(3)
    assert world.chat.marks == {}
    assert world.job_api.messages == {}


async def test_people_of_another_workspace_are_told_and_nothing_happens(world: World) -> None:
    ts = await world.started()
    await world.reply(ts, "hack", "5.1", EVA)
    await world.pass_time(3)
    assert world.job_api.messages == {}
    assert [(person, what) for person, what, _ in world.chat.told] == [("UEVA", "answer")]


async def test_a_follow_up_after_the_end_takes_the_work_up_again(world: World) -> None:
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(5)
    await world.reply(ts, "more", "5.1")
    await world.pass_time(3)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(10)
    assert world.chat.said(ts) == ["started", "finished", "active_again", "finished"]


async def test_a_reply_to_an_archived_job_is_answered(world: World) -> None:
    ts = await world.started()
    world.job_api.show("job-1", "archived")
    await world.pass_time(5)
    await world.reply(ts, "more", "5.1")
    await world.pass_time(5)
    assert world.job_api.messages == {}
    assert world.chat.said(ts) == ["started", "archived", "refused"]
    assert world.chat.marks["5.1"] is Mark.PROBLEM


async def test_a_job_that_vanished_is_said_once_and_replies_are_answered(world: World) -> None:
    ts = await world.started()
    world.job_api.jobs.clear()
    await world.pass_time(60)
    await world.reply(ts, "more", "5.1")
    await world.pass_time(60)
    assert world.chat.said(ts) == ["started", "gone", "refused"]


@pytest.mark.parametrize(
    "fault", [JobApiRefused("400", words="too vague"), NoSuchProject("404", words="no project")], ids=["400", "404"]
)
async def test_a_refused_start_is_told_with_those_who_replied(world: World, fault: JobApiError) -> None:
    world.job_api.faults = [JobApiUnreachable("down"), fault]
    ts = await world.started()
    await world.reply(ts, "and this", "5.1")
    await world.pass_time(10)
    await world.reply(ts, "too late", "5.2")
    await world.pass_time(5)
    assert world.job_api.created == []
    assert world.chat.said(ts) == ["refused", "refused", "refused"]
    assert world.chat.marks == {"5.1": Mark.PROBLEM, "5.2": Mark.PROBLEM}


async def test_a_follow_up_to_a_job_that_is_gone_is_told(world: World) -> None:
    ts = await world.started()
    world.job_api.faults = [JobGone("404")]
    await world.reply(ts, "more", "5.1")
    await world.step(world.outbox)
    world.clock.advance(1.5)
    await world.step(world.intake)
    await world.pass_time(90)
    assert world.chat.said(ts) == ["started", "refused"]


async def test_what_may_have_arrived_is_asked_about_and_sent_again_by_a_person(world: World) -> None:
    world.job_api.after = [JobApiUncertain("timeout")]
    ts = await world.started()
    await world.pass_time(60)
    assert world.job_api.created == ["Do it"]
    assert world.chat.said(ts) == ["unsure"]
    request = world.chat.messages[-1].facts["request"]
    await world.service.send_again(BEN, "C1", request)
    await world.service.send_again(BEN, "C1", request)
    await world.pass_time(5)
    assert world.job_api.created == ["Do it", "Do it"]
    assert world.chat.said(ts) == ["unsure", "started"]
    assert sorted(facts["answer"] for _, _, facts in world.chat.told) == ["already_taken", "sent_again"]


async def test_a_server_that_runs_a_key_once_is_simply_asked_again(world: World) -> None:
    world.asks_once = True
    world.assemble()
    world.job_api.faults = [JobApiUncertain("timeout")]
    ts = await world.started()
    await world.pass_time(10)
    assert world.chat.said(ts) == ["started"]


async def test_our_key_is_told_once_and_requests_wait(world: World) -> None:
    world.job_api.faults = [JobApiNotAllowed("401", status=401) for _ in range(3)]
    ts = await world.started()
    await world.pass_time(400)
    assert world.chat.said(ts) == ["not_allowed", "back", "started"]
    assert world.job_api.created == ["Do it"]


async def test_retry_after_holds_a_request_back(world: World) -> None:
    world.job_api.faults = [JobApiBusy("429", retry_after=300.0)]
    await world.started()
    await world.pass_time(299)
    assert world.job_api.created == []
    await world.pass_time(5)
    assert world.job_api.created == ["Do it"]


async def test_a_crash_while_sending_is_told_and_not_repeated(world: World) -> None:
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    await world.step(world.outbox)
    await world.intake.take(10)
    world.restart("two")
    await world.pass_time(60)
    assert world.job_api.created == []
    assert world.chat.said() == ["unsure"]


async def test_a_late_truth_corrects_a_doubt(world: World) -> None:
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    await world.step(world.outbox)
    (claimed,) = await world.intake.take(10)
    slow = world.intake
    world.clock.advance(31)
    world.restart("two")
    await world.settle()
    await slow.work(claimed, world.clock.monotonic())
    await world.settle()
    assert world.chat.said() == ["unsure", "started"]


async def test_an_answer_that_is_recorded_late_repeats_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process is paused between the job API's answer and its record; the job goes on meanwhile, and ends."""
    answers: list[Callable[[Transaction], Awaitable[None]]] = []

    async def paused(record: Callable[[Transaction], Awaitable[None]]) -> None:
        answers.append(record)

    ts = await world.started()
    await world.reply(ts, "more", "5.1")
    world.clock.advance(1.5)
    monkeypatch.setattr(world.intake, "record", paused)
    await world.step(world.intake)
    world.clock.advance(31)
    world.restart("two")
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(5)
    assert world.chat.said(ts) == ["started", "unsure", "finished"]
    await world.store.transact(answers[0])
    await world.pass_time(60)
    assert world.chat.said(ts) == ["started", "unsure", "finished"]
    assert world.chat.marks == {"5.1": Mark.TAKEN}


async def test_the_end_of_a_follow_up_is_told_even_if_it_is_seen_before_its_record(world: World) -> None:
    """The one that sent it dies; the job, which had ended before, is seen at work and at its end until it is sent
    again, with the same link.
    """
    world.asks_once = True
    world.assemble()
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(5)
    await world.reply(ts, "more", "5.1")
    world.clock.advance(1.5)
    await world.intake.take(10)
    world.job_api.show("job-1", "active")
    world.restart("two")
    await world.pass_time(4)
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(4)
    assert world.chat.said(ts) == ["started", "finished", "active_again", "finished"]


async def test_a_process_paused_past_its_lease_sends_nothing(world: World) -> None:
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    await world.step(world.outbox)
    taken_at = world.clock.monotonic()
    (claimed,) = await world.intake.take(10)
    world.clock.advance(25)
    await world.intake.work(claimed, taken_at)
    assert world.job_api.created == []
    await world.settle()
    assert world.job_api.created == ["Do it"]


async def test_a_crash_between_post_and_record_is_reconciled(world: World) -> None:
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    (claimed,) = await world.outbox.take(10)
    await world.chat.post_card(claimed.thread, claimed.notice.key)
    world.restart("two")
    await world.pass_time(60)
    assert [message.what for message in world.chat.messages] == ["card", "started"]


async def test_a_timeout_after_posting_is_reconciled(world: World) -> None:
    def lost(call: str, thread: Thread | None) -> None:
        if call in {"post", "post_card"}:
            world.chat.after = lambda call, thread: None
            raise ChatUncertain("timeout")

    ts = await world.started()
    world.chat.after = lost
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(30)
    assert world.chat.said(ts) == ["started", "finished"]


async def test_the_bot_joins_a_public_channel(world: World) -> None:
    await world.started(channel="C2")
    assert "C2" in world.chat.joined
    assert world.job_api.created == ["Do it"]


async def test_where_it_cannot_post_the_person_is_told_and_no_job_is_made(world: World) -> None:
    await world.service.start(ANA, "CPRIVATE", "Do it", source_key="k")
    await world.pass_time(60)
    assert world.job_api.created == []
    assert [(person, what) for person, what, _ in world.chat.told] == [("UANA", "cannot_post")]


async def test_one_busy_channel_holds_up_no_other(world: World) -> None:
    def busy(call: str, thread: Thread | None) -> None:
        if thread is not None and thread.channel_id == "C1":
            raise ChatBusy("ratelimited", retry_after=100.0)

    world.chat.fault = busy
    await world.service.start(ANA, "C1", "one", source_key="k1")
    await world.service.start(ANA, "C1", "two", source_key="k2")
    await world.service.start(ANA, "C2", "three", source_key="k3")
    await world.pass_time(20)
    assert world.job_api.created == ["three"]
    world.chat.fault = lambda call, thread: None
    await world.pass_time(120)
    assert sorted(world.job_api.created) == ["one", "three", "two"]


async def test_a_message_slack_refuses_is_told_to_the_person_and_the_thread_goes_on(world: World) -> None:
    ts = await world.started()

    def refused(call: str, thread: Thread | None) -> None:
        if call == "post":
            raise ChatRefused("restricted_action")

    world.chat.fault = refused
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(10)
    assert [(person, what, facts["link"]) for person, what, facts in world.chat.told] == [("UANA", "finished", LINK)]
    world.chat.fault = lambda call, thread: None
    await world.reply(ts, "more", "5.1")
    await world.pass_time(10)
    assert world.chat.said(ts) == ["started", "active_again"]


async def test_blocks_that_slack_refuses_are_said_in_plain_words(world: World) -> None:
    def refused(call: str, thread: Thread | None) -> None:
        if call == "post":
            world.chat.fault = lambda call, thread: None
            raise ChatRefused("invalid_blocks")

    world.chat.fault = refused
    ts = await world.started()
    await world.pass_time(5)
    assert world.chat.said(ts) == ["started"]


async def test_a_revoked_token_lets_everything_wait(world: World) -> None:
    ts = await world.started()

    def revoked(call: str, thread: Thread | None) -> None:
        raise ChatNotAllowed("token_revoked")

    world.chat.fault = revoked
    world.job_api.show("job-1", "completed", LINK)
    await world.pass_time(300)
    assert world.outbox.failing_since is not None
    world.chat.fault = lambda call, thread: None
    await world.pass_time(90)
    assert world.chat.said(ts) == ["started", "finished"]
    assert world.outbox.failing_since is None


async def test_one_request_that_failed_and_is_settled_is_no_lasting_trouble(world: World) -> None:
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.started()
    assert world.intake.failing_for() == 0.0
    world.clock.advance(100)
    assert world.intake.failing_for() == 100.0
    world.clock.advance(100)
    assert world.intake.failing_for() == 0.0


async def test_an_outage_that_another_process_saw_end_is_over(world: World) -> None:
    ts = await world.started()

    def down(call: str, thread: Thread | None) -> None:
        raise ChatUnreachable("no connection")

    world.chat.fault = down
    await world.reply(ts, "more", "5.1")
    await world.step(world.outbox)
    first = world.outbox
    world.chat.fault = lambda call, thread: None
    world.restart("two")
    await world.pass_time(90)
    assert first.failing_for() > 0.0
    world.clock.advance(40)
    assert first.failing_for() == 0.0


async def test_an_outage_lasts_as_long_as_others_ask_to_wait(world: World) -> None:
    world.job_api.faults = [JobApiUnreachable("503", retry_after=600.0)]
    await world.started()
    world.clock.advance(500)
    assert world.intake.failing_for() == 500.0


async def test_trouble_that_comes_again_and_again_lasts(world: World) -> None:
    world.asks_once = True
    world.assemble()
    world.job_api.faults = [JobApiUncertain("timeout") for _ in range(99)]
    await world.started()
    await world.pass_time(400)
    assert world.intake.failing_for() > 300.0


async def test_a_poll_that_began_before_a_follow_up_was_taken_is_dropped(world: World) -> None:
    ts = await world.started()
    world.clock.advance(5)
    taken_at = world.clock.monotonic()
    (due,) = await world.watch.take(10)
    stale = due.thread.known.job
    assert stale is not None
    await world.reply(ts, "more", "5.1")
    await world.pass_time(2)
    fresh, world.job_api.jobs["job-1"] = world.job_api.jobs["job-1"], replace(stale, status="completed")
    await world.watch.work(due, taken_at)
    world.job_api.jobs["job-1"] = fresh
    await world.pass_time(10)
    assert world.chat.said(ts) == ["started"]


async def test_an_outage_is_said_once_and_its_end_once(world: World) -> None:
    ts = await world.started()
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(40)]
    while world.job_api.faults:
        await world.pass_time(10)
    await world.pass_time(60)
    assert world.chat.said(ts) == ["started", "out_of_reach", "back"]


async def test_the_whole_request_is_shown_to_one_person(world: World) -> None:
    ts = await world.started("long " * 500)
    thread = await world.thread(ts)
    await world.service.show_prompt(BEN, "C1", thread.id, source_key="press-1")
    await world.settle()
    person, what, facts = world.chat.told[0]
    assert (person, what, facts["text"]) == ("UBEN", "whole_prompt", thread.prompt)


async def test_a_reply_to_a_card_that_is_not_recorded_yet_is_kept_for_it(world: World) -> None:
    await world.service.start(ANA, "C1", "Do it", source_key="k")
    (claimed,) = await world.outbox.take(10)
    ts = await world.chat.post_card(claimed.thread, claimed.notice.key)
    await world.reply(ts, "and this", f"{float(ts) + 1:.6f}")
    await world.reply("1.1", "to somebody else", "1.2")
    world.restart("two")
    await world.pass_time(60)
    assert world.job_api.messages == {"job-1": ["and this"]}
    assert world.chat.said(ts) == ["started"]
    assert len(world.chat.marks) == 1


async def test_a_reply_that_meets_its_card_being_recorded_waits_for_no_other_card(world: World) -> None:
    ts = await world.started()
    await world.service.start(ANA, "C1", "Another card, still on its way", source_key="k2")
    transact = world.store.transact

    async def first_looked_too_early(work: Callable[[Transaction], Awaitable[Any]]) -> Any:
        async def racing(tx: Transaction) -> Any:
            looks = iter([None])
            real = tx.thread_at
            tx.thread_at = lambda channel_id, ts: _nothing() if next(looks, tx) is None else real(channel_id, ts)  # type: ignore[method-assign]
            return await work(tx)

        return await transact(racing)

    world.store.transact = first_looked_too_early  # type: ignore[method-assign]
    await world.reply(ts, "Shorter", "5.1")
    world.store.transact = transact  # type: ignore[method-assign]
    await world.pass_time(3)
    assert world.job_api.messages["job-1"] == ["Shorter"]


async def _nothing() -> None:
    return None


async def test_a_stop_leaves_no_save_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polls are saved by a task of its own, which would go on with a store that is closed after the stop."""
    await world.started()
    saving, given_up = asyncio.Event(), asyncio.Event()

    async def hangs(*_: object) -> None:
        saving.set()
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    monkeypatch.setattr(world.watch, "_save_all", hangs)
    running = asyncio.create_task(world.watch.run())
    world.clock.advance(10.0)
    world.watch.wake()
    async with asyncio.timeout(10):
        await saving.wait()
    await world.watch.stop(0.0)
    await running
    assert given_up.is_set()


async def test_a_stop_waits_for_what_is_just_being_taken(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be at work with a store that is closed, and others might take it over meanwhile."""
    await world.service.start(ANA, "C1", "Do it", source_key="k1")
    take, taking, goes_on = world.outbox.take, asyncio.Event(), asyncio.Event()

    async def slowly(limit: int) -> Any:
        taking.set()
        await goes_on.wait()
        return await take(limit)

    monkeypatch.setattr(world.outbox, "take", slowly)
    running = asyncio.create_task(world.outbox.run())
    async with asyncio.timeout(10):
        await taking.wait()
        stopping = asyncio.create_task(world.outbox.stop(5.0))
        await asyncio.sleep(0)
        goes_on.set()
        await stopping
    assert running.done()
    assert [message.what for message in world.chat.messages] == ["card"]
    assert world.outbox._tasks == set()
