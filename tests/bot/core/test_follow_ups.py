"""Posts in a thread when a follow-up and its job's changes come in an unexpected order."""

from dataclasses import replace

import pytest
from support.fakes.ports import FakeJobApi
from support.worlds.core_world import ANA, BEN, Claim, CoreWorld

from bot.domain.commands import ThreadWord
from bot.domain.delivery import ReactionCall
from bot.domain.messages import SlackFile
from bot.domain.projects import ReplyMode
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import (
    NO_ATTACHMENTS,
    Attachments,
    Person,
    Reply,
    Request,
    RequestKind,
    RequestState,
    WayIn,
)
from bot.domain.threads.thread import Thread, ThreadOrigin
from bot.errors import (
    ChatRejected,
    ChatUncertain,
    JobApiBusy,
    JobApiError,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
)
from bot.jobapi.models import Job, JobDetails, PromptCall
from bot.notices.answers import HelpRequested, StatusRequested
from bot.notices.job import JobFailed, JobFinished
from bot.notices.notice import NewNotice, NoticeKey, Reaction, ReactionChanged
from bot.notices.questions import ReplyHeld
from bot.notices.requests import RequestRejected
from bot.scheduler.retention import DAY, HELD_DAYS, RetentionSweeper

LINK, OTHER = "https://example.org/pull/1", "https://example.org/pull/2"


class AtOnce(FakeJobApi):
    """Carries out each message before it answers."""

    def __init__(self, status: str, details: JobDetails | None = None) -> None:
        super().__init__()
        self.status, self.details = status, details

    async def send_message(self, project: str, job_id: str, call: PromptCall) -> Job:
        job = self.jobs[job_id]
        await super().send_message(project, job_id, call)
        self.show(job_id, self.status, job.pr_link, self.details)
        return self.jobs[job_id]


async def claimed(world: CoreWorld, ts: str) -> Claim:
    """A follow-up that was claimed and is not yet sent."""
    await world.reply(ts, "more", "5.1")
    await world.step(world.outbox)
    world.clock.advance(1.2)
    return await world.claim(world.request_sender)


async def ended(world: CoreWorld) -> str:
    """A job that has ended with a link, as its thread knows."""
    ts = await world.started()
    await world.show("completed", LINK, wait=30)
    assert world.chat.said(ts) == ["job_started", "job_finished"]
    return ts


async def fine_time(world: CoreWorld, seconds: int) -> None:
    """Lets time pass in small steps, so that nothing is overtaken."""
    for _ in range(seconds):
        world.clock.advance(1.0)
        await world.settle()


async def test_an_earlier_end_does_not_hide_that_of_a_follow_up_in_doubt(world: CoreWorld) -> None:
    ts = await world.started()
    await world.pass_time(30)
    follow_up = await claimed(world, ts)
    world.job_api.show("job-1", "completed", LINK)
    world.clock.advance(2.5)
    await world.step(world.job_poller)
    world.job_api.after = [JobApiUncertain("timeout")]
    await follow_up.process(wait=60)
    await world.show("completed", OTHER, wait=100)
    assert world.chat.said(ts) == [
        "job_started",
        "job_finished",
        "request_uncertain",
        "job_active_again",
        "job_finished",
    ]


async def test_an_answer_with_the_jobs_previous_state_is_not_an_end(world: CoreWorld) -> None:
    """Work on the message begins later: the answer still shows the end of earlier work."""
    ts = await world.started()
    await world.pass_time(30)
    world.job_api.show("job-1", "completed", LINK)
    follow_up = await claimed(world, ts)
    world.job_api.show("job-1", "completed", LINK)
    world.job_api.outdated_answers = [world.job_api.jobs["job-1"]]
    await follow_up.process(wait=60)
    await world.show("completed", OTHER, wait=100)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again", "job_finished"]
    job = (await world.thread(ts)).state.job
    assert job is not None
    assert job.pr_link == OTHER


async def test_an_end_with_another_result_is_posted_at_once(world: CoreWorld) -> None:
    """Nobody saw the work: without its result, the end would be held back for a while."""
    world.configure(job_api=AtOnce("completed", JobDetails(summary="Shorter.", revision="a2")), hold_back=60.0)
    ts = await world.started()
    await world.show("completed", LINK, JobDetails(summary="Done.", revision="a1"), wait=100)
    await world.reply(ts, "more", "5.1", wait=20)
    assert world.chat.said(ts) == ["job_finished", "job_finished"]


@pytest.mark.first(status=1)
@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_an_end_that_the_answer_to_the_message_tells_is_posted(world: CoreWorld, status: str) -> None:
    world.configure(job_api=AtOnce(status))
    ts = await world.started()
    await world.show(status, LINK, wait=300)
    end = {"completed": "job_finished", "failed": "job_failed"}[status]
    for at in ("5.1", "5.2"):
        await world.reply(ts, "more", at, BEN, wait=300)
    assert world.chat.said(ts) == ["job_started", end, end, end]
    ends = [*world.chat.posted_as(JobFinished), *world.chat.posted_as(JobFailed)]
    assert [each.person_id for each in ends] == ["", "UBEN", "UBEN"]


async def test_an_end_that_the_answer_tells_is_not_posted_if_work_begins_soon(world: CoreWorld) -> None:
    world.configure(job_api=AtOnce("completed"), hold_back=5.0)
    ts = await world.started()
    world.job_api.show("job-1", "completed", LINK)
    await fine_time(world, 30)
    await world.reply(ts, "more", "5.1")
    await fine_time(world, 4)
    world.job_api.show("job-1", "active", LINK)
    await fine_time(world, 30)
    world.job_api.show("job-1", "completed", LINK)
    await fine_time(world, 30)
    assert world.chat.said(ts) == ["job_finished", "job_active_again", "job_finished"]


async def test_an_outage_at_the_last_poll_does_not_age_until_the_next_reply(world: CoreWorld) -> None:
    ts = await world.started()
    await world.show("completed", wait=100)
    world.job_api.faults = [JobApiUnreachable("down") for _ in range(99)]
    await world.pass_time(200)
    world.clock.advance(4 * DAY)
    world.job_api.faults = [JobApiBusy("429", retry_after=5.0)]
    await world.reply(ts, "more", "5.1", wait=30)
    assert world.chat.said(ts) == ["job_started", "job_finished", "job_active_again"]
    assert world.chat.reactions == {"5.1": Reaction.ACCEPTED}


@pytest.mark.first(error=2)
@pytest.mark.parametrize(
    ("error", "word"),
    [
        (JobApiNotAllowed("403", status=403), "access_denied"),
        (JobApiBusy("429", retry_after=None), "outage_started"),
        (JobApiBusy("429", retry_after=3600.0), "outage_started"),
    ],
    ids=["403", "429", "429 for an hour"],
)
async def test_an_outage_that_only_messages_meet_is_told_once(world: CoreWorld, error: JobApiError, word: str) -> None:
    """The job can be read all the time, which does not end the request's problem."""
    world.job_api.faults_of["send_message"] = [error] * 1_000
    ts = await world.started()
    await world.reply(ts, "more", "5.1")
    await fine_time(world, 200)
    assert world.chat.said(ts) == ["job_started", word]
    assert world.chat.reactions == {"5.1": Reaction.RECORDED}
    assert (await world.thread(ts)).state.failure.problem is None


ROOT = "1700000000.000900"
"""A root message that Slack has not delivered yet."""
AT = ("1700000001.000100", "1700000002.000100", "1700000003.000100")


def said(ts: str, text: str = "", word: ThreadWord | None = None) -> Reply:
    return Reply(ANA, "C1", ROOT, ts, text, word=word)


async def deliver_mention(world: CoreWorld) -> None:
    """Delivers the root message."""
    asked = NewJob(BEN, "C1", "Fix it", f"message/C1/{ROOT}", WayIn.MENTION, thread_ts=ROOT, message_ts=ROOT)
    await world.ask(replace(asked, origin=ThreadOrigin.REQUEST))


async def test_replies_that_arrive_before_the_threads_mention_reach_its_job(world: CoreWorld) -> None:
    """If another card is being posted, it waits for that; then it is handled."""
    await world.start()
    assert await world.receive(said(AT[0], "and the manual"))
    assert await world.receive(said(AT[1], word=ThreadWord.STATUS))
    assert await world.receive(said(AT[2], "Fix that, too", ThreadWord.NEW))
    await deliver_mention(world)
    await world.pass_time(60)
    assert world.job_api.created == ["Do it", "Fix it", "Fix that, too"]
    assert {job: words for job, words in world.job_api.messages.items() if words} == {"job-2": ["and the manual"]}
    assert len(world.chat.private_as(StatusRequested)) == 1


@pytest.mark.first(archived=1)
@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("word", [word for word in ThreadWord if word is not ThreadWord.HELP])
async def test_a_word_where_there_is_no_job_is_answered(world: CoreWorld, word: ThreadWord, *, archived: bool) -> None:
    """Once, whether the card was posted or could not be."""
    await world.start()
    for _ in range(2):
        assert await world.receive(said(AT[0], "Fix it" if word is ThreadWord.NEW else "", word))
    if archived:
        world.chat.joined.clear()
        world.chat.fail(post_card=ChatRejected("is_archived"))
    await world.pass_time(60)
    assert world.chat.answers() == ["no_job_there"]
    assert world.job_api.created == ([] if archived else ["Do it"])


async def test_help_in_a_thread_without_a_job_is_shown(world: CoreWorld) -> None:
    await world.start()
    assert await world.receive(said(AT[0], word=ThreadWord.HELP))
    await world.pass_time(60)
    assert len(world.chat.private_as(HelpRequested)) == 1


async def test_a_mention_added_by_a_late_edit_is_explained(world: CoreWorld) -> None:
    """As if no card were being posted."""
    await world.start()
    late = replace(said(AT[0], "Fix it"), mentions_us=True, edited_at="1700001000.000100")
    assert await world.revise(late)
    await world.pass_time(60)
    assert world.chat.answers() == ["edited_too_late"]
    assert world.job_api.created == ["Do it"]


async def test_no_reply_waits_for_a_card_in_a_known_thread(world: CoreWorld) -> None:
    """The card of a mention is posted in the mention's own thread, so nothing else can be a reply to it."""
    await deliver_mention(world)
    await world.prepare()
    assert not await world.receive(replace(said(AT[0], "Lunch?"), thread_ts="1700000000.000950"))


JOB = "job-1"
T = 1_700_000_100


def at(seconds: float) -> str:
    return f"{T + seconds:.6f}"


@pytest.fixture
async def ts(world: CoreWorld) -> str:
    """A running job, in a world where replies within 3 s are one message."""
    world.configure(merge_seconds=3.0)
    return await world.started()


async def write(world: CoreWorld, ts: str, *replies: tuple[str, float], person: Person = ANA) -> None:
    """Replies; recorded, prepared and due."""
    for words, seconds in replies:
        await world.reply(ts, words, at(seconds), person)
    await world.step(world.request_preparer)
    world.clock.advance(3.5)


async def edit(world: CoreWorld, ts: str, seconds: float, words: str, edited: float) -> None:
    """A new version of a reply; without text, it was deleted."""
    reply = Reply(ANA, "C1", ts, at(seconds), words, edited_at=at(edited), withdrawn=not words)
    assert await world.revise(reply)


async def rows(world: CoreWorld, ts: str) -> list[Request]:
    thread = await world.thread(ts)

    async def work(tx: object) -> list[Request]:
        found: list[Request] = []
        for seconds in range(20):
            found += await tx.requests.find_by_reply(thread.id, at(seconds))  # type: ignore[attr-defined]  # a transaction
        return found

    return await world.store.transact(work)


async def test_rapid_replies_of_one_person_are_merged(world: CoreWorld, ts: str) -> None:
    """In the order they were written; each is a separate row, and accepted."""
    await write(world, ts, ("One", 1), ("Two", 3), ("Three", 6), ("Late", 12))
    await world.settle()
    assert world.job_api.messages[JOB] == ["One\n\nTwo\n\nThree", "Late"]
    found = await rows(world, ts)
    assert [request.state for request in found] == [RequestState.ACCEPTED] * 4
    assert [request.merged_into for request in found] == ["", found[0].id, found[0].id, ""]
    assert [world.chat.reactions[at(seconds)] for seconds in (1, 3, 6, 12)] == [Reaction.ACCEPTED] * 4
    assert (await world.thread(ts)).state.round == 2


async def test_merged_replies_share_the_outcome_of_the_first(world: CoreWorld, ts: str) -> None:
    """A refusal is reported once, and every reply has its reaction."""
    await write(world, ts, ("One", 1), ("Two", 2))
    world.job_api.faults = [JobApiRejected("no", words="no")]
    await world.step(world.request_sender)
    await world.pass_time(10)
    assert {request.state for request in await rows(world, ts)} == {RequestState.REJECTED}
    assert [message.kind for message in world.chat.messages].count("request_rejected") == 1
    assert [world.chat.reactions[at(seconds)] for seconds in (1, 2)] == [Reaction.PROBLEM] * 2


async def test_a_merged_reply_that_did_not_arrive_can_be_edited_and_deleted(world: CoreWorld, ts: str) -> None:
    """While the job API is out of reach; later replies join if they were written soon enough."""
    await write(world, ts, ("One", 1), ("Two", 2), ("Three", 3))
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.step(world.request_sender)
    assert {request.merged_into for request in await rows(world, ts)} == {""}
    await edit(world, ts, 1, "", 20)
    await edit(world, ts, 3, "Three, better", 21)
    await world.reply(ts, "Four", at(4), wait=10)
    assert world.job_api.messages[JOB] == ["Two\n\nThree, better\n\nFour"]
    assert [request.state for request in await rows(world, ts)] == [RequestState.WITHDRAWN] + [
        RequestState.ACCEPTED
    ] * 3


async def test_merged_replies_in_doubt_keep_their_words(world: CoreWorld, ts: str) -> None:
    """If the server executes a key once, it is repeated unchanged; new text is offered afterwards."""
    world.configure(idempotent=True)
    await write(world, ts, ("One", 1), ("Two", 2))
    world.job_api.faults = [JobApiUncertain("timeout")]
    await world.step(world.request_sender)
    await edit(world, ts, 2, "Two, changed", 20)
    await world.reply(ts, "Three", at(3), wait=30)
    assert world.job_api.messages[JOB] == ["One\n\nTwo", "Three"]
    assert [message.kind for message in world.chat.private].count("reply_edited") == 1


async def test_a_merged_message_without_its_first_reply_is_not_sent_again(world: CoreWorld, ts: str) -> None:
    """Its person is told that there were several replies, and to write again what is still to be done."""
    world.job_api.faults = [JobApiUncertain("timeout")]
    await write(world, ts, ("One", 1), ("Two", 3))
    await world.settle()
    first, _ = await rows(world, ts)
    await edit(world, ts, 1, "", 20)
    await world.press_send_again(ANA, first.id, key="click/1", wait=10)
    assert world.job_api.messages == {}
    assert world.chat.answers() == ["first_withdrawn"]


@pytest.mark.first(written=1)
@pytest.mark.parametrize("written", [["One"], ["One", "Two"]])
async def test_after_a_kill_the_same_message_is_repeated(world: CoreWorld, ts: str, written: list[str]) -> None:
    """The group is fixed when it is claimed: later replies are not part of it."""
    world.configure(idempotent=True)
    await write(world, ts, *((text, second) for second, text in enumerate(written, 1)))
    assert [len(item.merged) for item in await world.request_sender.claim(10)] == [len(written) - 1]
    world.restart("two")
    await world.reply(ts, "Three", at(3), wait=60)
    assert world.job_api.messages[JOB] == ["\n\n".join(written), "Three"]


async def test_what_a_process_learns_once_another_one_took_over_changes_nothing(world: CoreWorld, ts: str) -> None:
    """The other one has the newer answer."""
    world.configure(idempotent=True)
    await write(world, ts, ("One", 1))
    being_sent, send = await world.claim(world.request_sender), world.job_api.send_message

    async def late(*_: object) -> Job:
        world.job_api.send_message = send  # type: ignore[method-assign]  # the fake's own
        world.clock.advance(31)
        world.restart("two")
        await world.settle()
        raise JobApiRejected("no")

    world.job_api.send_message = late  # type: ignore[method-assign, assignment]  # the fake's own
    await being_sent.process(wait=30)
    assert world.job_api.messages[JOB] == ["One"]
    assert not world.chat.posted_as(RequestRejected)
    assert world.chat.reactions[at(1)] is Reaction.ACCEPTED


async def test_a_process_paused_past_its_lease_releases_merged_replies(world: CoreWorld, ts: str) -> None:
    """Nothing was sent, so all of it waits again and can be edited."""
    await write(world, ts, ("One", 1), ("Two", 2))
    being_sent = await world.claim(world.request_sender)
    world.clock.advance(25)
    await edit(world, ts, 1, "", 20)
    await being_sent.process(wait=5)
    assert world.job_api.messages[JOB] == ["Two"]


@pytest.mark.promise("paused")
@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize("late", [ReactionCall(Reaction.PROBLEM), ReactionCall(Reaction.ACCEPTED, removes=True)])
async def test_a_reaction_that_a_paused_process_changed_late_is_set_again(
    world: CoreWorld, ts: str, late: ReactionCall, *, is_answered: bool
) -> None:
    """What it wanted was newest when it looked; another process has shown something newer since."""
    other, react, key = CoreWorld("two").on(world.store, world.clock, beside=world), world.chat.react, NoticeKey("late")
    thread = await world.thread(ts)

    async def wants(reaction: Reaction | None) -> None:
        wanted = NewNotice(key, ReactionChanged(at(1), reaction))
        await world.store.transact(lambda tx: tx.notices.add(thread.id, wanted))

    async def paused(thread: Thread, message_ts: str, call: ReactionCall) -> None:
        assert call == ReactionCall(Reaction.PROBLEM)
        world.chat.react = react  # type: ignore[method-assign]
        world.clock.advance(40)
        await wants(Reaction.ACCEPTED)
        await other.pass_time(5)
        assert world.chat.all_reactions[message_ts] == [Reaction.ACCEPTED]
        await react(thread, message_ts, late)
        if not is_answered:
            raise ChatUncertain("it took too long")

    await wants(Reaction.PROBLEM)
    world.chat.react = paused  # type: ignore[method-assign]
    await world.pass_time(30)
    assert world.chat.all_reactions[at(1)] == [Reaction.ACCEPTED]


async def test_a_follow_up_waits_while_another_could_join(world: CoreWorld, ts: str) -> None:
    """So it is due that long after its recording."""
    await world.reply(ts, "One", at(1), wait=0)
    world.clock.advance(2.0)
    await world.reply(ts, "Two", at(3), wait=0)
    assert world.job_api.messages[JOB] == []
    world.clock.advance(1.1)
    await world.settle()
    assert world.job_api.messages[JOB] == ["One\n\nTwo"]


SENT_AT = [f"170000000{n}.000200" for n in range(1, 10)]


@pytest.fixture
async def held_ts(world: CoreWorld) -> str:
    """The thread of Ana's job, with a reply of Ben's that waits for his answer."""
    world.count_replies(ReplyMode.PARTICIPANTS)
    ts = await world.started()
    await world.reply(ts, "mine", SENT_AT[0], BEN, wait=0)
    return ts


def asked(world: CoreWorld) -> list[tuple[str, str]]:
    return [(held.person_id, held.text) for held in world.chat.private_as(ReplyHeld)]


async def status(world: CoreWorld, ts: str, at: str, **by: str) -> None:
    person = replace(BEN, **by)
    await world.receive(Reply(person, "C1", ts, at, "", word=ThreadWord.STATUS), wait=0)


async def test_an_edit_asks_again_with_the_edited_words(world: CoreWorld, held_ts: str) -> None:
    """Once for each version; whichever question is answered, the newest text is sent."""
    edit = Reply(BEN, "C1", held_ts, SENT_AT[0], "mine, please", edited_at=SENT_AT[1])
    for _ in range(2):
        await world.revise(edit, wait=0)
    assert asked(world) == [("UBEN", "mine"), ("UBEN", "mine, please")]
    first = world.chat.private_as(ReplyHeld)[0].request_id
    await world.press(RequestKind.SEND_HELD, BEN, first, key="p1", wait=5)
    assert world.job_api.messages["job-1"] == ["mine, please"]


async def test_an_edit_that_mentions_pagehand_is_sent_to_the_agent(world: CoreWorld, held_ts: str) -> None:
    await world.revise(Reply(BEN, "C1", held_ts, SENT_AT[0], "mine, please", edited_at=SENT_AT[1], mentions_us=True))
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["mine, please"]
    assert len(asked(world)) == 1


async def test_a_status_request_repeats_questions_about_replies(world: CoreWorld, held_ts: str) -> None:
    """Each time, the newest five of that person."""
    await status(world, held_ts, SENT_AT[1])
    await status(world, held_ts, SENT_AT[1])
    await status(world, held_ts, SENT_AT[2], id=ANA.id)
    assert asked(world) == [("UBEN", "mine")] * 2
    for number in range(6):
        await world.reply(held_ts, f"and {number}", f"17000001{number}0.000200", BEN)
    await world.settle()
    before = len(asked(world))
    await status(world, held_ts, SENT_AT[3])
    assert asked(world)[before:] == [("UBEN", f"and {number}") for number in range(1, 6)]


async def test_an_unanswered_question_about_a_reply_expires_with_an_explanation(world: CoreWorld, held_ts: str) -> None:
    """One message for everything that its person wrote there."""
    await world.reply(held_ts, "and this", SENT_AT[1], BEN, wait=0)
    world.clock.advance(HELD_DAYS * DAY + 60)
    for _ in range(2):
        await RetentionSweeper(world.store).sweep()
        await world.settle()
    assert world.chat.private_kinds()[-1] == ("UBEN", "action_answered")
    assert world.chat.answers() == ["held_expired"]
    await world.press(RequestKind.SEND_HELD, BEN, world.chat.private_as(ReplyHeld)[0].request_id, key="p1", wait=0)
    assert world.job_api.messages["job-1"] == []


QUESTION = JobDetails(question="Which spelling?")


async def with_an_end(world: CoreWorld, details: JobDetails | None = None) -> str:
    """A job that has with_an_end; returns its thread's ts."""
    ts = await world.started()
    await world.show("completed", None if details else "https://git.example/1", details, wait=30)
    return ts


async def test_thanks_after_an_end_get_a_reaction_and_are_not_sent(world: CoreWorld) -> None:
    """Once, however often Slack delivers them; the job stays unchanged."""
    ts = await with_an_end(world)
    for _ in range(2):
        await world.reply(ts, "Thanks a lot!", SENT_AT[0], BEN, wait=5)
    assert world.job_api.messages == {}
    assert world.chat.all_reactions[SENT_AT[0]] == [Reaction.WELCOME]
    assert world.chat.calls.count("mark") == 1
    assert world.chat.private == []


@pytest.mark.first(when=3)
@pytest.mark.parametrize(
    ("when", "text", "attachments"),
    [
        ("ended", "ok", NO_ATTACHMENTS),
        ("at work", "Thanks!", NO_ATTACHMENTS),
        ("asking", "Thanks!", NO_ATTACHMENTS),
        ("ended", "go ahead", NO_ATTACHMENTS),
        ("ended", "Thanks, now the index", NO_ATTACHMENTS),
        ("ended", "Thanks!", Attachments((SlackFile(id="F1", name="a.png"),))),
        ("at work", ":tada:", Attachments((SlackFile(id="F1", name="a.png"),))),
    ],
)
async def test_thanks_for_the_agent_are_sent(world: CoreWorld, when: str, text: str, attachments: Attachments) -> None:
    """With more words or files, for what it says next, or as the answer to its question."""
    details = QUESTION if when == "asking" else None
    ts = await (world.started() if when == "at work" else with_an_end(world, details))
    await world.receive(Reply(BEN, "C1", ts, SENT_AT[0], text, attachments), wait=5)
    assert [sent.partition("\n")[0] for sent in world.job_api.messages["job-1"]] == [text]


async def test_thanks_edited_into_a_request_are_sent(world: CoreWorld) -> None:
    """With the same reaction as every other reply."""
    ts = await with_an_end(world)
    await world.reply(ts, "Thanks!", SENT_AT[0], wait=0)
    await world.revise(Reply(BEN, "C1", ts, SENT_AT[0], "Not mine", edited_at=SENT_AT[1]))
    await world.revise(Reply(ANA, "C1", ts, SENT_AT[0], "Thanks! Now the index", edited_at=SENT_AT[2]), wait=5)
    assert world.job_api.messages == {"job-1": ["Thanks! Now the index"]}
    assert world.chat.all_reactions[SENT_AT[0]] == [Reaction.ACCEPTED]


async def test_thanks_are_neither_asked_about_nor_refused_aloud(world: CoreWorld) -> None:
    """If only participants count, or the job is muted."""
    world.count_replies(ReplyMode.PARTICIPANTS)
    ts = await with_an_end(world)
    await world.reply(ts, "Thanks!", SENT_AT[0], BEN)
    await world.receive(Reply(BEN, "C1", ts, SENT_AT[1], "", word=ThreadWord.MUTE), wait=0)
    await world.reply(ts, "Thank you", SENT_AT[2], BEN, wait=0)
    assert world.chat.answers() == ["muted"]
    assert world.chat.private_as(ReplyHeld) == []
    assert [world.chat.all_reactions[at] for at in (SENT_AT[0], SENT_AT[2])] == [[Reaction.WELCOME]] * 2


async def test_thanks_where_there_is_no_job_start_none(world: CoreWorld) -> None:
    """Nor do emoji."""
    for at, text in zip(SENT_AT, ("Thanks!", ":tada:"), strict=False):
        assert not await world.receive(Reply(BEN, "C1", "1.1", at, text, mentions_us=True))
    await world.settle()
    assert world.job_api.created == []


async def test_emoji_that_may_answer_the_agents_question_are_asked_about(world: CoreWorld) -> None:
    """`Send` sends them."""
    ts = await with_an_end(world, QUESTION)
    await world.reply(ts, ":+1:", SENT_AT[0], wait=5)
    (asked,) = world.chat.private_as(ReplyHeld)
    assert (asked.text, world.job_api.messages) == (":+1:", {})
    await world.press(RequestKind.SEND_HELD, ANA, asked.request_id, key="p1", wait=5)
    assert world.job_api.messages == {"job-1": [":+1:"]}


@pytest.mark.parametrize("now", [":-1:", "British"])
async def test_held_emoji_can_be_edited(world: CoreWorld, now: str) -> None:
    """Into others, about which the person is asked; or into words, which are sent."""
    ts = await with_an_end(world, QUESTION)
    await world.reply(ts, ":+1:", SENT_AT[0])
    edit = Reply(ANA, "C1", ts, SENT_AT[0], now, edited_at=SENT_AT[1], withdrawn=now == ":-1:")
    await world.revise(edit, wait=5)
    if now == ":-1:":
        assert [held.text for held in world.chat.private_as(ReplyHeld)] == [":+1:", ":-1:"]
        held = world.chat.private_as(ReplyHeld)[0].request_id
        await world.press(RequestKind.SEND_HELD, ANA, held, key="p1", wait=5)
    assert world.job_api.messages == {"job-1": [now]}


async def test_emoji_without_a_question_are_between_people(world: CoreWorld) -> None:
    """While the agent works, after its end, and if the job is muted."""
    ts = await world.started()
    await world.reply(ts, ":tada:", SENT_AT[0])
    await world.show("completed", "https://git.example/1", wait=30)
    await world.reply(ts, ":tada:", SENT_AT[1], wait=5)
    assert (world.chat.private, world.chat.all_reactions, world.job_api.messages) == ([], {}, {})
