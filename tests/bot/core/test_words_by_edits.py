"""Edits that make a word for Pagehand of a message, or the other way round: they do nothing, and their writer is told
once what to do.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.scratch import IN_MEMORY
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.tutorial_world import TutorialWorld

from bot.domain.commands.thread_words import ThreadWord
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Reply, Surface, WayIn
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import JobApiUnreachable
from bot.notices.questions import EditWithoutEffect, WordsBefore
from bot.store.store import open_store

NEW, STATUS, STOP = ThreadWord.NEW, ThreadWord.STATUS, ThreadWord.STOP


@pytest.fixture
async def pagehand(sqlite_template: Path) -> AsyncIterator[TutorialWorld]:
    with TemporaryDirectory(dir=IN_MEMORY) as directory:
        path = shutil.copy(sqlite_template, directory)
        world = TutorialWorld()
        world.store = await open_store(f"sqlite:///{path}", clock=world.clock)
        yield world.open()
        await world.close()
        await world.store.close()


def told(world: CoreWorld) -> list[tuple[ThreadWord | None, str, WordsBefore | None]]:
    return [(each.word, each.text, each.before) for each in world.chat.private_as(EditWithoutEffect)]


@pytest.mark.parametrize(
    ("before", "after", "word", "earlier"),
    [
        ("do this", "!stop", STOP, WordsBefore.NOT_SENT),
        ("do this", "!stpo", STOP, WordsBefore.NOT_SENT),
        ("do this", "!help", ThreadWord.HELP, WordsBefore.NOT_SENT),
        ("do this", "!new do that", NEW, WordsBefore.NOT_SENT),
        ("!stpo", "!stop", STOP, None),
        ("!stpo", "!statsu", STATUS, None),
        ("!stpo", "!new do that", NEW, None),
        ("!help", "!stop", STOP, None),
        ("!status", "!stop", STOP, None),
        ("!status", "!new do that", NEW, None),
        ("// among us", "!stop", STOP, None),
        (":tada:", "!stop", STOP, None),
    ],
)
async def test_an_edit_gives_no_command(
    pagehand: TutorialWorld, before: str, after: str, word: ThreadWord, earlier: WordsBefore | None
) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies(before)
    await pagehand.edits(message, before, after)
    await pagehand.later()
    assert [(each, words) for each, _, words in told(pagehand)] == [(word, earlier)]
    assert pagehand.job_api.messages == {}
    assert pagehand.job_api.created == ["Fix the guides"]


@pytest.mark.parametrize(("after", "word"), [("!stop", STOP), ("do this", None)])
async def test_an_edit_of_an_unsent_request_for_another_job_withdraws_it(
    pagehand: TutorialWorld, after: str, word: ThreadWord | None
) -> None:
    await pagehand.types("/docs Fix the guides")
    pagehand.job_api.faults = [JobApiUnreachable("down")]
    message = await pagehand.replies("!new do that")
    await pagehand.edits(message, "!new do that", after)
    await pagehand.later()
    assert told(pagehand) == [(word, "" if word else "do this", WordsBefore.NOT_SENT)]
    assert pagehand.job_api.messages == {}
    assert pagehand.job_api.created == ["Fix the guides"]


@pytest.mark.parametrize("before", ["!status", "!stop", "!mute"])
async def test_an_edit_takes_no_command_back(pagehand: TutorialWorld, before: str) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies(before)
    await pagehand.edits(message, before, "do this")
    await pagehand.later()
    assert told(pagehand) == [(None, "do this", None)]
    assert "do this" not in pagehand.job_api.messages["job-1"]
    assert pagehand.job_api.created == ["Fix the guides"]


@pytest.mark.parametrize("after", ["!stop", "!stpo"])
async def test_an_edit_of_words_that_were_sent_gives_no_command(pagehand: TutorialWorld, after: str) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies("do this")
    await pagehand.later()
    await pagehand.edits(message, "do this", after)
    await pagehand.later()
    assert told(pagehand) == [(STOP, "", WordsBefore.SENT)]
    assert pagehand.chat.answers() == []
    assert pagehand.job_api.messages == {"job-1": ["do this"]}


@pytest.mark.parametrize(
    ("before", "after", "sent"),
    [
        ("!stpo it", "do this", ["do this"]),
        ("// do this", "do this", ["do this"]),
        ("!help", "do this", ["do this"]),
        ("do this", "// among us", []),
        ("!status", "// among us", []),
        ("!mute", "!mute.", []),
    ],
)
async def test_other_edits_do_what_they_say(pagehand: TutorialWorld, before: str, after: str, sent: list[str]) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies(before)
    await pagehand.edits(message, before, after)
    await pagehand.later()
    assert told(pagehand) == []
    assert pagehand.job_api.messages["job-1"] == sent


async def test_a_word_and_back_sends_the_newest_words(pagehand: TutorialWorld) -> None:
    await pagehand.types("/docs Fix the guides")
    message = await pagehand.replies("!stpo")
    await pagehand.edits(message, "!stpo", "!stop")
    await pagehand.edits(message, "!stop", "do this")
    await pagehand.later()
    assert told(pagehand) == [(STOP, "", None)]
    assert pagehand.job_api.messages["job-1"] == ["do this"]


AT, EDITED, EDITED_AGAIN = "1700000005.000100", "1700000006.000100", "1700000007.000100"


async def test_each_edit_is_answered_once_by_all_instances(world: CoreWorld) -> None:
    """However late and in whatever order they come."""
    ts = await world.started()
    await world.reply(ts, "do this", AT)
    into_stop = Reply(ANA, "C1", ts, AT, "", edited_at=EDITED, withdrawn=True, word=STOP)
    into_status = Reply(ANA, "C1", ts, AT, "", edited_at=EDITED_AGAIN, withdrawn=True, word=STATUS)
    for instance, edit in (("one", into_stop), ("two", into_stop), ("one", into_status), ("two", into_stop)):
        world.restart(instance)
        await world.service.revise(edit)
        await world.pass_time(5)
    assert told(world) == [(STOP, "", WordsBefore.NOT_SENT), (STATUS, "", None)]
    assert world.job_api.messages == {}


async def test_an_edit_before_its_message_gives_no_command(world: CoreWorld) -> None:
    ts = await world.started()
    await world.service.revise(Reply(ANA, "C1", ts, AT, "", edited_at=EDITED, withdrawn=True, word=STOP))
    await world.service.receive(Reply(ANA, "C1", ts, AT, "do this"))
    await world.pass_time(5)
    assert told(world) == [(STOP, "", None)]
    assert world.job_api.messages == {}


@pytest.mark.parametrize("sent", [False, True])
async def test_a_mention_that_asked_for_a_job_gives_no_command(world: CoreWorld, *, sent: bool) -> None:
    asked = NewJob(
        ANA, "C1", "Do it", f"message/C1/{AT}", WayIn.MENTION, thread_ts=AT, message_ts=AT, origin=ThreadOrigin.REQUEST
    )
    await world.service.start(asked)
    if sent:
        await world.pass_time(5)
    edit = Reply(ANA, "C1", "", AT, "", edited_at=EDITED, withdrawn=True, mentions_us=True, word=STOP)
    for _ in range(2):
        await world.service.revise(edit)
        await world.pass_time(5)
    assert told(world) == [(STOP, "", WordsBefore.SENT if sent else WordsBefore.NOT_SENT)]
    assert world.job_api.created == (["Do it"] if sent else [])
    assert world.chat.answers() == []


async def test_a_held_line_of_a_direct_message_gives_no_command(world: CoreWorld) -> None:
    world.chat.joined |= {"D1"}
    for at in (AT, "1700000008.000100"):
        line = NewJob(ANA, "D1", at, f"message/D1/{at}", WayIn.DIRECT_MESSAGE, thread_ts=at, message_ts=at)
        await world.service.start(NewJob(**(vars(line) | {"may_be_reply": True, "origin": ThreadOrigin.REQUEST})))
        await world.pass_time(9)
    edit = Reply(ANA, "D1", "", "1700000008.000100", "", edited_at="1700000009.000100", withdrawn=True, word=STOP)
    await world.service.revise(edit)
    await world.pass_time(5)
    (answer,) = world.chat.private_as(EditWithoutEffect)
    assert (answer.word, answer.before, answer.asked_on) == (STOP, WordsBefore.NOT_SENT, Surface.TOP_LEVEL)
    assert world.job_api.created == [AT]
