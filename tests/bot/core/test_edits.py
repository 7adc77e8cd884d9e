"""Replies that are edited or deleted: before they are sent, while they are, and after."""

from collections.abc import Awaitable, Callable

import pytest
from support.fakes.attachments import holding
from support.worlds.core_world import ANA, BEN, EVA, Claim, CoreWorld
from support.worlds.listening_world import BOT
from support.worlds.message_versions import LATE, ROOT, SOON, MessageVersions
from support.worlds.tutorial_world import TutorialWorld

from bot.domain.commands import ThreadWord
from bot.domain.jobs.stopping import STOP_WORDS
from bot.domain.people import Member
from bot.domain.permissions import PermissionRules, Refusal
from bot.domain.projects import Project, Projects, ReplyMode
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import HeldBecause, Person, Reply, Surface, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import JobApiUncertain, JobApiUnreachable
from bot.notices.notice import Reaction
from bot.notices.questions import EditWithoutEffect, HeldAsked, ProjectAsked, ReplyEdited, RequestRefused
from bot.notices.requests import ContextCut, ReplyNotFullySent
from bot.scheduler.retention import DAY

TS = "1700000005.000100"
AT = [f"170000000{n}.000200" for n in range(6, 10)]
"""When it was edited, first to last."""


async def edit(
    world: CoreWorld, ts: str, text: str, at: str, person: Person = ANA, *, message: str = TS, wait: float | None = None
) -> bool:
    return await world.revise(Reply(person, "C1", ts, message, text, edited_at=at), wait=wait)


async def withdraw(
    world: CoreWorld, ts: str, at: str, person: Person = ANA, message: str = TS, *, wait: float | None = None
) -> bool:
    """A deletion, or an edit into words that are not for the job."""
    return await world.revise(Reply(person, "C1", ts, message, "", edited_at=at, withdrawn=True), wait=wait)


async def claimed(world: CoreWorld) -> Claim:
    """A follow-up that is being sent."""
    world.clock.advance(1.5)
    return await world.claim(world.request_sender)


def offers(world: CoreWorld) -> list[ReplyEdited]:
    return world.chat.private_as(ReplyEdited)


async def sent(world: CoreWorld, text: str = "first") -> str:
    """A thread whose reply was sent."""
    ts = await world.started()
    await world.reply(ts, text, TS, wait=5)
    assert world.job_api.messages["job-1"] == [text]
    return ts


Event = Callable[[CoreWorld, str], Awaitable[object]]


def original(world: CoreWorld, ts: str) -> Awaitable[object]:
    return world.reply(ts, "first", TS)


def second(world: CoreWorld, ts: str) -> Awaitable[object]:
    return edit(world, ts, "second", AT[0])


def third(world: CoreWorld, ts: str) -> Awaitable[object]:
    return edit(world, ts, "third", AT[1])


def gone(world: CoreWorld, ts: str) -> Awaitable[object]:
    return withdraw(world, ts, AT[2])


def restored(world: CoreWorld, ts: str) -> Awaitable[object]:
    return edit(world, ts, "after all", AT[3])


@pytest.mark.first(card_in_flight=1)
@pytest.mark.parametrize("card_in_flight", [True, False])
@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([original, second], ["second"]),
        ([second, original], ["second"]),
        ([third, second, original], ["third"]),
        ([third, original, second], ["third"]),
        ([original, third, second], ["third"]),
        ([gone, original], []),
        ([gone, original, second, third], []),
        ([original, gone, third, second], []),
        ([second, gone, gone, original, second], []),
        ([original, gone, restored], ["after all"]),
    ],
)
async def test_the_newest_version_wins_in_any_order(
    world: CoreWorld, events: list[Event], words: list[str], *, card_in_flight: bool
) -> None:
    """Also while it is unknown where the card will be."""
    if card_in_flight:
        await world.start()
    ts = "1700000000.000100" if card_in_flight else await world.started()
    for event in events:
        assert await event(world, ts) is not False
        await event(world, ts)
    await world.pass_time(10)
    assert world.job_api.messages["job-1"] == words
    assert world.chat.reactions == dict.fromkeys([TS] * len(words), Reaction.ACCEPTED)
    assert world.chat.private == []


async def test_a_deletion_without_thread_finds_kept_and_recorded_replies(world: CoreWorld) -> None:
    await world.start()
    ts, nobody = "1700000000.000100", Person("", "")
    await world.reply(ts, "early", TS)
    assert await withdraw(world, "", AT[0], nobody)
    await world.pass_time(5)
    await world.reply(ts, "later", AT[1])
    assert await withdraw(world, "", AT[2], nobody, AT[1])
    assert not await withdraw(world, "", AT[2], nobody, "1700000009.000900")
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == []


async def test_edits_by_others_change_nothing(world: CoreWorld) -> None:
    ts = await world.started()
    await world.reply(ts, "first", TS)
    await edit(world, ts, "not mine", AT[0], BEN)
    await edit(world, ts, "from outside", AT[1], EVA, message=AT[1])
    await withdraw(world, ts, AT[2], EVA, AT[2], wait=5)
    assert world.job_api.messages["job-1"] == ["first"]
    assert world.chat.refusals() == [("UEVA", Refusal.OTHER_ORGANIZATION)]


@pytest.mark.first(words=1)
@pytest.mark.parametrize("paused", [False, True], ids=["the job API is away", "past its lease"])
@pytest.mark.parametrize("words", ["second", ""], ids=["edited", "deleted"])
async def test_a_reply_that_comes_back_unsent_follows_its_edits(world: CoreWorld, words: str, *, paused: bool) -> None:
    """It certainly did not arrive: it was claimed, and its call failed or was not made."""
    ts = await world.started()
    world.job_api.faults = [] if paused else [JobApiUnreachable("down")]
    await world.reply(ts, "first", TS)
    being_sent = await claimed(world)
    await (edit(world, ts, words, AT[0]) if words else withdraw(world, ts, AT[0]))
    world.clock.advance(100 if paused else 0)
    await being_sent.process(wait=10)
    assert world.job_api.messages["job-1"] == ([words] if words else [])
    assert world.chat.reactions == ({TS: Reaction.ACCEPTED} if words else {})
    assert offers(world) == []


async def test_a_reply_over_the_hourly_limit_is_checked_again_when_it_is_edited(world: CoreWorld) -> None:
    """Each version is refused once, until one is permitted."""
    world.configure(rules=PermissionRules("T1", hourly_limit=1))
    ts = await world.started()
    await world.reply(ts, "first", TS, wait=5)
    for _ in range(2):
        await edit(world, ts, "second", AT[0], wait=5)
    refused = [(each.refusal, each.text) for each in world.chat.private_as(RequestRefused)]
    assert refused == [(Refusal.TOO_MANY, "first"), (Refusal.TOO_MANY, "second")]
    assert world.chat.reactions == {}
    world.clock.advance(3_600)
    await edit(world, ts, "third", AT[1], wait=5)
    assert world.job_api.messages["job-1"] == ["third"]
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    assert len(world.chat.private) == 2


async def test_a_refused_reply_edited_after_a_stop_is_asked_about(world: CoreWorld) -> None:
    """Like any other that was written before the stop."""
    world.job_api.cancels = True
    ts = await world.started()
    world.reading.members["UBEN"] = Member("UBEN", "Ben", "T1", is_guest=True)
    await world.reply(ts, "first", TS, BEN, wait=5)
    await world.receive(Reply(ANA, "C1", ts, "1700000005.000300", "", word=ThreadWord.STOP), wait=5)
    world.reading.members["UBEN"] = Member("UBEN", "Ben", "T1", is_guest=False)
    await edit(world, ts, "second", AT[0], BEN, wait=5)
    assert world.job_api.messages["job-1"] == []
    (asked,) = world.chat.private_as(HeldAsked)
    assert (asked.person_id, asked.text, asked.because) == ("UBEN", "second", HeldBecause.STOPPED)


async def test_an_outsider_is_refused_for_each_edit(world: CoreWorld) -> None:
    """Instead of being asked whether the reply is for the agent, which they may not answer."""
    world.count_replies(ReplyMode.PARTICIPANTS)
    ts = await world.started()
    await world.reply(ts, "first", TS, EVA, wait=5)
    await edit(world, ts, "second", AT[0], EVA, wait=5)
    assert world.chat.private_kinds() == [("UEVA", "request_refused")] * 2


@pytest.mark.first(again=1)
@pytest.mark.parametrize("again", [ANA, BEN])
async def test_a_waiting_reply_is_checked_again_when_it_is_edited(world: CoreWorld, again: Person) -> None:
    """Its writer has become a guest meanwhile; what others wrote at the same time is sent."""
    world.configure(merge_seconds=60.0)
    ts = await world.started()
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.reply(ts, "first", TS, BEN)
    await world.reply(ts, "second", "1700000005.000200", again, wait=1.5)
    world.reading.members["UBEN"] = Member("UBEN", "Ben", "T1", is_guest=True)
    await edit(world, ts, "edited", AT[0], BEN, wait=60)
    assert [(each.person_id, each.refusal, each.text) for each in world.chat.private_as(RequestRefused)] == [
        ("UBEN", Refusal.GUEST, "edited")
    ]
    assert world.job_api.messages["job-1"] == ["second"]
    assert TS not in world.chat.reactions


async def test_words_edited_after_sending_are_offered_once(world: CoreWorld) -> None:
    ts = await sent(world)
    for _ in range(2):
        await edit(world, ts, "second", AT[0], wait=0)
    (offer,) = offers(world)
    assert (offer.person_id, offer.text, offer.earlier) == ("UANA", "second", "accepted")
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    for press in ("p1", "p1", "p2"):
        await world.press_send_new_words(ANA, offer.request_id, key=press)
    await world.settle()
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    await world.pass_time(5)
    assert world.job_api.messages["job-1"] == ["first", "second"]
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    assert world.chat.answers() == ["new_words_sent", "nothing_new"]
    assert world.chat.said(ts) == ["job_started"]


async def test_edited_words_count_towards_the_hourly_limit(world: CoreWorld) -> None:
    """A person over the limit is told when they may ask again; then the same offer can be accepted."""
    world.configure(rules=PermissionRules("T1", hourly_limit=3))
    ts = await sent(world)
    for number, press in ((0, "p1"), (1, "p2")):
        await edit(world, ts, f"version {number}", AT[number], wait=0)
        await world.press_send_new_words(ANA, offers(world)[-1].request_id, key=press, wait=5)
    assert world.job_api.messages["job-1"] == ["first", "version 0"]
    (refused,) = world.chat.private_as(RequestRefused)
    assert (refused.refusal, refused.limit, refused.free_at is not None) == (Refusal.TOO_MANY, 3, True)
    world.clock.advance(3_600)
    await world.press_send_new_words(ANA, offers(world)[-1].request_id, key="p3", wait=5)
    assert world.job_api.messages["job-1"] == ["first", "version 0", "version 1"]


async def test_an_offer_sends_the_newest_words_from_any_button(world: CoreWorld) -> None:
    ts = await sent(world)
    for words, at in (("second", AT[0]), ("third", AT[1])):
        await edit(world, ts, words, at, wait=0)
    first, last = offers(world)
    assert (first.text, last.text) == ("second", "third")
    await world.press_send_new_words(ANA, first.request_id, key="p1")
    await world.press_send_new_words(ANA, last.request_id, key="p2", wait=5)
    assert world.job_api.messages["job-1"] == ["first", "third"]
    assert world.chat.answers() == ["new_words_sent", "nothing_new"]


@pytest.mark.first(words=1)
@pytest.mark.parametrize("words", ["first", ""])
async def test_words_the_agent_has_or_must_not_get_are_not_offered(world: CoreWorld, words: str) -> None:
    ts = await sent(world)
    await edit(world, ts, words, AT[0], wait=5)
    assert offers(world) == []


async def test_deleting_a_sent_reply_says_that_the_agent_has_it(world: CoreWorld) -> None:
    """Once; the offer of new text ends."""
    ts = await sent(world)
    await edit(world, ts, "second", AT[0])
    for _ in range(2):
        await world.settle()
        await withdraw(world, ts, AT[1])
    await world.settle()
    assert world.chat.answers() == ["sent_before_deleted"]
    await world.press_send_new_words(ANA, offers(world)[0].request_id, key="p1", wait=5)
    assert world.chat.answers() == ["sent_before_deleted", "nothing_new"]
    assert world.job_api.messages["job-1"] == ["first"]


async def test_deleting_old_replies_says_nothing(world: CoreWorld) -> None:
    ts = await sent(world)
    await withdraw(world, ts, f"{float(TS) + 2 * DAY:.6f}", wait=0)
    assert world.chat.private == []


async def test_edited_words_for_a_closed_job_are_explained(world: CoreWorld) -> None:
    ts = await sent(world)
    await edit(world, ts, "second", AT[0])
    await world.show("archived", wait=60)
    await world.press_send_new_words(ANA, offers(world)[0].request_id, key="p1", wait=5)
    assert world.chat.said(ts) == ["job_started", "job_archived", "request_rejected"]
    assert world.chat.reactions == {TS: Reaction.PROBLEM}
    assert world.chat.answers() == ["see_thread"]


@pytest.mark.parametrize("words", ["second", ""], ids=["edited", "deleted"])
async def test_a_reply_changed_in_flight_is_asked_about_once_it_was_sent(world: CoreWorld, words: str) -> None:
    """New words are offered; of a deleted one, its writer is told that the agent has it."""
    ts = await world.started()
    await world.reply(ts, "first", TS)
    being_sent = await claimed(world)
    await (edit(world, ts, words, AT[0], wait=0) if words else withdraw(world, ts, AT[0], wait=0))
    assert world.chat.private == []
    await being_sent.process(wait=5)
    assert world.job_api.messages["job-1"] == ["first"]
    assert [offer.text for offer in offers(world)] == ([words] if words else [])
    assert world.chat.answers() == ([] if words else ["sent_before_deleted"])


async def test_an_edited_reply_in_doubt_is_offered_once_and_dropped_on_deletion(world: CoreWorld) -> None:
    ts = await world.started()
    world.job_api.after = [JobApiUncertain("timeout")]
    await world.reply(ts, "first", TS, wait=5)
    assert world.chat.said(ts) == ["job_started", "request_uncertain"]
    await edit(world, ts, "second", AT[0], wait=0)
    (offer,) = offers(world)
    assert offer.earlier == "uncertain"
    await withdraw(world, ts, AT[1])
    await world.press_send_again(ANA, offer.request_id, key="click/1", wait=5)
    assert world.job_api.messages["job-1"] == ["first"]
    assert world.chat.answers() == ["withdrawn"]


async def test_a_file_without_words_is_sent_and_explained_once(world: CoreWorld) -> None:
    """For an unreadable file the agent gets the link, if there is one."""
    ts = await world.started()
    for _ in range(2):
        await world.receive(Reply(BEN, "C1", ts, TS, "", attachments=holding("plan\n.pdf", *"abcdefg")), wait=3)
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    assert world.chat.said(ts) == ["job_started", "context_cut"]
    assert world.chat.posted_as(ContextCut) == [ContextCut("UBEN", name_only=("plan\n.pdf", *"abcdefg"))]
    (sent,) = world.job_api.messages["job-1"]
    assert sent.count("You get neither the file itself nor a link") == 8


async def test_an_empty_reply_is_marked_and_explained_once(world: CoreWorld) -> None:
    """A lone mention, which an edit turns into a follow-up."""
    ts = await world.started()
    for _ in range(2):
        await world.receive(Reply(BEN, "C1", ts, TS, ""), wait=0)
    assert world.chat.reactions == {TS: Reaction.PROBLEM}
    assert world.chat.said(ts) == ["job_started", "reply_not_fully_sent"]
    (told,) = world.chat.posted_as(ReplyNotFullySent)
    assert (told.person_id, told.words_sent, told.file_count) == ("UBEN", False, 0)
    await edit(world, ts, "what it says", AT[0], BEN, wait=5)
    assert world.job_api.messages["job-1"] == ["what it says"]
    assert world.chat.reactions == {TS: Reaction.ACCEPTED}
    assert world.chat.said(ts) == ["job_started", "reply_not_fully_sent"]


async def test_a_file_added_by_an_edit_is_explained(world: CoreWorld) -> None:
    ts = await sent(world)
    await world.revise(Reply(ANA, "C1", ts, TS, "first", holding("late.md"), edited_at=AT[0]), wait=0)
    assert world.chat.said(ts) == ["job_started", "reply_not_fully_sent"]
    assert world.chat.private == []


NEW, STATUS, STOP = ThreadWord.NEW, ThreadWord.STATUS, ThreadWord.STOP


def told(world: CoreWorld) -> list[tuple[ThreadWord | None, str]]:
    return [(each.word, each.text) for each in world.chat.private_as(EditWithoutEffect)]


@pytest.mark.first(before=8)
@pytest.mark.parametrize(
    ("before", "after", "answered", "sent"),
    [
        ("do this", "!stop", [STOP], []),
        ("do this", "!new do that", [NEW], []),
        ("!stpo", "!stop", [STOP], []),
        ("// among us", "!stop", [STOP], []),
        ("!status", "do this", [None], []),
        ("!stop", "do this", [None], [STOP_WORDS]),
        ("!help", "do this", [], ["do this"]),
        ("do this", "// among us", [], []),
        ("do this", "!stpo", [STOP], []),
        ("do this", "!help", [ThreadWord.HELP], []),
        ("!stpo", "!statsu", [STATUS], []),
        ("!stpo", "!new do that", [NEW], []),
        ("!help", "!stop", [STOP], []),
        ("!status", "!stop", [STOP], []),
        ("!status", "!new do that", [NEW], []),
        (":tada:", "!stop", [STOP], []),
        ("!mute", "do this", [None], []),
        ("!stpo it", "do this", [], ["do this"]),
        ("// do this", "do this", [], ["do this"]),
        ("!status", "// among us", [], []),
        ("!mute", "!mute.", [], []),
    ],
)
async def test_an_edit_gives_no_command_and_takes_none_back(
    pagehand: TutorialWorld, before: str, after: str, answered: list[ThreadWord | None], sent: list[str]
) -> None:
    """Its writer is told so; other edits do what they say."""
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies(before)
    await pagehand.edits(message, before, after)
    await pagehand.later()
    assert [word for word, _ in told(pagehand)] == answered
    assert pagehand.job_api.messages["job-1"] == sent
    assert pagehand.job_api.created == ["Fix the guides"]


@pytest.mark.first(after=1)
@pytest.mark.parametrize(("after", "word"), [("!stop", STOP), ("do this", None)])
async def test_an_edit_of_an_unsent_request_for_another_job_withdraws_it(
    pagehand: TutorialWorld, after: str, word: ThreadWord | None
) -> None:
    await pagehand.types("/docs Fix the guides")
    pagehand.job_api.faults = [JobApiUnreachable("down")]
    message = await pagehand.replies("!new do that")
    await pagehand.edits(message, "!new do that", after)
    await pagehand.later()
    assert told(pagehand) == [(word, "" if word else "do this")]
    assert pagehand.job_api.messages == {}
    assert pagehand.job_api.created == ["Fix the guides"]


@pytest.mark.first(after=1)
@pytest.mark.parametrize("after", ["!stop", "!stpo"])
async def test_an_edit_of_words_that_were_sent_gives_no_command(pagehand: TutorialWorld, after: str) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies("do this")
    await pagehand.later()
    await pagehand.edits(message, "do this", after)
    await pagehand.later()
    assert told(pagehand) == [(STOP, "")]
    assert pagehand.chat.answers() == []
    assert pagehand.job_api.messages == {"job-1": ["do this"]}


SENT_AT, EDITED = "1700000005.000100", "1700000006.000100"


@pytest.mark.parametrize("sent", [False, True])
async def test_a_mention_that_asked_for_a_job_gives_no_command(world: CoreWorld, *, sent: bool) -> None:
    asked = NewJob(
        ANA,
        "C1",
        "Do it",
        f"message/C1/{SENT_AT}",
        WayIn.MENTION,
        thread_ts=SENT_AT,
        message_ts=SENT_AT,
        origin=ThreadOrigin.REQUEST,
    )
    await world.ask(asked)
    if sent:
        await world.pass_time(5)
    edit = Reply(ANA, "C1", "", SENT_AT, "", edited_at=EDITED, withdrawn=True, mentions_us=True, word=STOP)
    for _ in range(2):
        await world.revise(edit, wait=5)
    assert told(world) == [(STOP, "")]
    assert [each.asked_on for each in world.chat.private_as(EditWithoutEffect)] == [Surface.CONVERSATION]
    assert world.job_api.created == (["Do it"] if sent else [])
    assert world.chat.answers() == []


async def test_a_held_line_of_a_direct_message_gives_no_command(world: CoreWorld) -> None:
    world.chat.joined |= {"D1"}
    for at in (SENT_AT, "1700000008.000100"):
        line = NewJob(ANA, "D1", at, f"message/D1/{at}", WayIn.DIRECT_MESSAGE, thread_ts=at, message_ts=at)
        await world.ask(NewJob(**(vars(line) | {"may_be_reply": True, "origin": ThreadOrigin.REQUEST})), wait=9)
    edit = Reply(ANA, "D1", "", "1700000008.000100", "", edited_at="1700000009.000100", withdrawn=True, word=STOP)
    await world.revise(edit, wait=5)
    (answer,) = world.chat.private_as(EditWithoutEffect)
    assert (answer.word, answer.asked_on) == (STOP, Surface.TOP_LEVEL)
    assert world.job_api.created == [SENT_AT]


US = f"<@{BOT}>"


def several_projects(world: CoreWorld) -> None:
    world.configure(projects=Projects((Project("guides"), Project("api"))))


def private_attempts(caplog: pytest.LogCaptureFixture) -> int:
    """Returns how many private messages were attempted: there is no Slack here."""
    return len([record for record in caplog.records if "could not be told something" in record.getMessage()])


def created(world: CoreWorld) -> list[tuple[str, str]]:
    prompts = [prompt.partition("\n")[0] for prompt in world.job_api.created]
    return list(zip(prompts, world.job_api.projects, strict=False))


@pytest.mark.first(thread_ts=1)
@pytest.mark.parametrize("wait", [0, 5], ids=["before it is asked", "once it is asked"])
@pytest.mark.parametrize("thread_ts", ["", ROOT], ids=["first message", "in a thread"])
async def test_an_edit_can_correct_the_project(
    world: CoreWorld, message: MessageVersions, thread_ts: str, wait: float
) -> None:
    """Another unknown one is asked about again."""
    several_projects(world)
    message.thread_ts = thread_ts
    wrong, still, right = (f"{US} project:{name} Fix it" for name in ("guidse", "gudes", "guides"))
    await message.take(message.written(wrong), wait=wait)
    await message.take(message.edited(wrong, still), wait=wait)
    assert [asked.said for asked in world.chat.private_as(ProjectAsked)] == (["guidse", "gudes"] if wait else [])
    await message.take(message.edited(still, right, SOON[1]))
    assert created(world) == [("Fix it", "guides")]


async def test_new_words_can_settle_the_project(world: CoreWorld, message: MessageVersions) -> None:
    projects = (Project("guides", words=("guide",)), Project("manual", words=("manual",)))
    world.configure(projects=Projects(projects))
    both, one = f"{US} Mend the guide and the manual", f"{US} Mend the manual"
    await message.take(message.written(both))
    assert (len(world.chat.private_as(ProjectAsked)), created(world)) == (1, [])
    await message.take(message.edited(both, one))
    assert created(world) == [("Mend the manual", "manual")]


async def test_a_decided_project_follows_edits_until_it_is_sent(world: CoreWorld, message: MessageVersions) -> None:
    several_projects(world)
    world.job_api.faults = [JobApiUnreachable("down")]
    api, guides = f"{US} project:api Fix it", f"{US} project:guides quiet Fix it"
    await message.take(message.written(api), wait=0)
    await world.settle()
    assert (await world.thread(world.chat.messages[-1].ts)).project == "api"
    await message.take(message.edited(api, guides), wait=60)
    assert created(world) == [("Fix it", "guides")]
    (card,) = (posted for posted in world.chat.messages if posted.kind == "card_changed")
    assert (await world.thread(card.ts)).options.quiet


async def test_naming_a_project_after_sending_tells_how_to_switch(world: CoreWorld, message: MessageVersions) -> None:
    """Once for each edit; new text alone is offered as usual."""
    several_projects(world)
    api, guides = f"{US} project:api Fix it", f"{US} project:guides Fix it"
    edit = message.edited(api, guides)
    await message.take(message.written(api))
    await message.take(edit, edit)
    assert created(world) == [("Fix it", "api")]
    assert world.chat.answers() == ["sent_for_its_project"]
    await message.take(message.edited(guides, f"{US} project:API Fix it well", SOON[1]))
    assert world.chat.answers() == ["sent_for_its_project"]
    assert len(world.chat.private_as(ReplyEdited)) == 1


@pytest.mark.parametrize("form", ["!new {}", f"{US} new {{}}"])
async def test_edits_of_a_request_for_another_job_count(world: CoreWorld, message: MessageVersions, form: str) -> None:
    """Before it is sent; afterwards its new text is offered."""
    message.thread_ts = await world.started()
    first, second, third = (form.format(f"Fix the {words}") for words in ("tpyo", "typo", "typos"))
    await message.take(message.written(first), message.edited(first, second))
    assert world.job_api.created == ["Do it", "Fix the typo"]
    await message.take(message.edited(second, third, SOON[1]))
    assert [offer.text for offer in world.chat.private_as(ReplyEdited)] == ["Fix the typos"]


async def test_a_correcting_edit_requests_another_job(
    world: CoreWorld, message: MessageVersions, caplog: pytest.LogCaptureFixture
) -> None:
    """The first version was answered with its fault."""
    message.thread_ts = await world.started()
    wrong, right = "!new project: Fix it", "!new project:docs Fix it"
    await message.take(message.written(wrong))
    assert (private_attempts(caplog), world.job_api.created) == (1, ["Do it"])
    await message.take(message.edited(wrong, right), message.edited(wrong, right))
    assert world.job_api.created == ["Do it", "Fix it"]


@pytest.mark.first(thread_ts=1)
@pytest.mark.parametrize("words", ["Fix the intro", "Fix the intros"])
@pytest.mark.parametrize("thread_ts", ["", ROOT], ids=["first message", "in a thread"])
async def test_a_mention_added_by_an_early_edit_starts_the_job(
    world: CoreWorld, message: MessageVersions, thread_ts: str, words: str
) -> None:
    """Once, whatever is redelivered; a later edit is offered."""
    message.thread_ts = thread_ts
    edit = message.edited("Fix the intro", f"{US} {words}")
    await message.take(message.written("Fix the intro"), edit, edit, message.written("Fix the intro"))
    assert created(world) == [(words, "docs")]
    await message.take(message.edited(f"{US} {words}", f"{US} quiet {words}, all of it", SOON[1]))
    assert [offer.text for offer in world.chat.private_as(ReplyEdited)] == [f"{words}, all of it"]


@pytest.mark.parametrize("thread_ts", ["", ROOT], ids=["first message", "in a thread"])
async def test_a_mention_added_by_a_late_edit_gets_a_private_hint(
    world: CoreWorld, message: MessageVersions, caplog: pytest.LogCaptureFixture, thread_ts: str
) -> None:
    message.thread_ts = thread_ts
    late = message.edited("Fix the intro", f"{US} Fix the intro", LATE)
    await message.take(late, late)
    assert (created(world), private_attempts(caplog)) == ([], 1)


@pytest.mark.parametrize("after", ["help", "!stop", "project: Fix it", ""])
async def test_an_edit_that_mentions_the_bot_without_a_task_is_answered(
    world: CoreWorld, message: MessageVersions, caplog: pytest.LogCaptureFixture, after: str
) -> None:
    await message.take(message.edited("Fix the intro", f"{US} {after}"))
    assert (created(world), private_attempts(caplog)) == ([], 1)


@pytest.mark.first(way=1)
@pytest.mark.parametrize("way", ["mention", "new", "direct message"])
async def test_a_refused_request_for_a_job_is_checked_again_when_it_is_edited(
    world: CoreWorld, message: MessageVersions, way: str
) -> None:
    """Each version is refused once, until one is permitted."""
    form = {"mention": f"{US} {{}}", "new": "!new {}", "direct message": "{}"}[way]
    if way == "new":
        message.thread_ts = await world.started()
    if way == "direct message":
        message.channel = "D1"
        world.chat.public.add("D1")
    before = list(world.job_api.created)
    world.reading.members["UANA"] = Member("UANA", "Ana", "T1", is_guest=True)
    first, second, third = (form.format(text) for text in ("Fix it", "Fix it well", "Fix it better"))
    await message.take(message.written(first))
    await message.take(*[message.edited(first, second)] * 2)
    refused = [(each.refusal, each.text) for each in world.chat.private_as(RequestRefused)]
    assert refused == [(Refusal.GUEST, "Fix it"), (Refusal.GUEST, "Fix it well")]
    world.reading.members["UANA"] = Member("UANA", "Ana", "T1", is_guest=False)
    await message.take(message.edited(second, third, SOON[1]))
    assert world.job_api.created == [*before, "Fix it better"]
