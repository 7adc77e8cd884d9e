"""Messages that ask for a job, and are edited: through real Bolt to the job."""

from collections.abc import AsyncIterator

import pytest
from support.worlds.core_world import ANA, CoreWorld
from support.worlds.message_versions import BOT, LATE, ROOT, SOON, MessageVersions, message_versions

from bot.domain.people.members import Member
from bot.domain.people.permissions import Refusal
from bot.domain.projects import Project, Projects
from bot.domain.requests.request import RequestKind
from bot.errors import JobApiUnreachable
from bot.notices.answers import ActionAnswered
from bot.notices.questions import ProjectAsked, ReplyEdited, RequestRefused

US = f"<@{BOT}>"


@pytest.fixture
async def message(world: CoreWorld) -> AsyncIterator[MessageVersions]:
    async with message_versions(world) as made:
        yield made


def several_projects(world: CoreWorld) -> None:
    world.projects = Projects((Project("guides"), Project("api")))
    world.assemble()


def private_attempts(caplog: pytest.LogCaptureFixture) -> int:
    """Returns how many private messages were attempted: there is no Slack here."""
    return len([record for record in caplog.records if "could not be told something" in record.getMessage()])


def created(world: CoreWorld) -> list[tuple[str, str]]:
    prompts = [prompt.partition("\n")[0] for prompt in world.job_api.created]
    return list(zip(prompts, world.job_api.projects, strict=False))


# -- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("thread_ts", ["", ROOT], ids=["first message", "in a thread"])
async def test_a_leading_option_stays_an_option_after_an_edit(
    world: CoreWorld, message: MessageVersions, thread_ts: str
) -> None:
    several_projects(world)
    message.thread_ts = thread_ts
    before, after = f"{US} project:guides Fix the tpyo", f"{US} project:guides Fix the typo"
    await message.take(message.written(before), message.edited(before, after))
    assert created(world) == [("Fix the typo", "guides")]


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


async def test_a_project_chosen_by_button_survives_edits(world: CoreWorld, message: MessageVersions) -> None:
    several_projects(world)
    before, after = f"{US} project:guidse Fix it", f"{US} project:guidse Fix all of it"
    await message.take(message.written(before))
    (asked,) = world.chat.private_as(ProjectAsked)
    world.job_api.faults = [JobApiUnreachable("down")]
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "api", key="p1", thread_id=asked.thread_id)
    await message.take(message.edited(before, after), wait=60)
    assert created(world) == [("Fix all of it", "api")]


async def test_naming_another_project_after_sending_explains_how_to_switch(
    world: CoreWorld, message: MessageVersions
) -> None:
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


# -- another job in a thread -----------------------------------------------------------------------------------------


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


async def test_a_late_edit_requests_no_other_job(world: CoreWorld, message: MessageVersions) -> None:
    message.thread_ts = await world.started()
    late = message.edited("!new project: Fix it", "!new Fix it", LATE)
    await message.take(late, late)
    assert world.job_api.created == ["Do it"]
    assert [answer.answer for answer in world.chat.private_as(ActionAnswered)] == ["edited_too_late"]


async def test_an_edit_that_removes_the_request_for_another_job_cancels_it(
    world: CoreWorld, message: MessageVersions
) -> None:
    message.thread_ts = await world.started()
    await message.take(message.written("!new Fix it"), message.edited("!new Fix it", "Fix it"))
    assert world.job_api.created == ["Do it"]
    assert world.job_api.messages["job-1"] == []


# -- mentions added or removed by an edit ----------------------------------------------------------------------------


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


async def test_a_mention_removed_before_sending_starts_nothing(world: CoreWorld, message: MessageVersions) -> None:
    edit = message.edited(f"{US} Fix it", "Fix it")
    await message.take(message.written(f"{US} Fix it"), edit)
    assert created(world) == []
    await message.take(message.edited("Fix it", f"{US} Fix it", SOON[1]))
    assert created(world) == [("Fix it", "docs")]


async def test_edits_in_direct_messages_can_request_jobs(world: CoreWorld, message: MessageVersions) -> None:
    message.channel = "D1"
    world.chat.public.add("D1")
    await message.take(message.written("help"), message.edited("help", "Fix it"))
    assert created(world) == [("Fix it", "docs")]


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
