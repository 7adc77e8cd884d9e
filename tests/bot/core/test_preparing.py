"""Preparing a request before it is sent: permission, project and context."""

import asyncio
import gc
import warnings
from dataclasses import replace

import pytest
from support.worlds.core_world import ANA, BEN, EVA, CoreWorld

from bot.domain.commands import FollowUp, Start, ThreadWord, parse_reply, parse_slash
from bot.domain.messages import (
    PRIVATE_CHANNEL,
    FileContent,
    ForwardedMessage,
    LinkPreview,
    SlackFile,
    ThreadMessage,
)
from bot.domain.people import ChannelInfo, Member, Preference
from bot.domain.permissions import PermissionRules, Refusal
from bot.domain.projects import Project, ProjectReason, Projects
from bot.domain.requests.audit import AuditAction
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import (
    Action,
    Attachments,
    Reply,
    RequestContext,
    RequestKind,
    WayIn,
)
from bot.domain.threads.thread import ThreadOrigin
from bot.errors import (
    ChatMissingScope,
    ChatRateLimited,
    ChatRejected,
    ChatUnreachable,
    JobApiUncertain,
    JobApiUnreachable,
)
from bot.notices.questions import ProjectAsked, RequestRefused
from bot.notices.requests import ContextCut, RequestUncertain
from bot.runtime.secrets.masking import SecretMasker

AT = [f"170000000{n}.000200" for n in range(1, 10)]
OUTSIDER = Member("UANA", "Ana", "T9", is_guest=False)
GUEST = Member("UANA", "Ana", "T1", is_guest=True)
SHARED = ChannelInfo("C1", "docs", is_shared_outside=True, is_private=False)
GITHUB = "ghp" + "_" + "a1B2" * 9
TEXT, IMAGE = (
    SlackFile("F1", "notes.md", "text/markdown"),
    SlackFile("F2", "a.png", "image/png", permalink="https://t.slack.com/files/F2"),
)


async def audited(world: CoreWorld) -> list[tuple[str, str, str]]:
    """The actions in the audit trail, in order."""
    entries = await world.store.transact(lambda tx: tx.audit.read(since=0.0, until=1e11, after=0, limit=50))
    return [(each.entry.action.value, each.entry.person.id, each.entry.reason) for each in entries]


def projects(world: CoreWorld, *all_: Project) -> None:
    world.projects = Projects(all_ or (Project("guides", words=("guide",)), Project("manual", words=("manual",))))
    world.assemble()


@pytest.mark.first(member=4)
@pytest.mark.parametrize(
    ("member", "channel", "rules", "refused"),
    [
        (GUEST, None, {}, Refusal.GUEST),
        (OUTSIDER, None, {}, Refusal.OTHER_ORGANIZATION),
        (replace(OUTSIDER, team_id=""), None, {}, Refusal.PERSON_UNKNOWN),
        (None, SHARED, {}, Refusal.SHARED_CHANNEL),
        (None, None, {"people": frozenset({"UBEN"})}, Refusal.NOT_ON_THE_LIST),
        (None, None, {"groups": frozenset({"S1"})}, Refusal.NOT_ON_THE_LIST),
        (None, None, {"channels": frozenset({"C2"})}, Refusal.CHANNEL_NOT_ON_THE_LIST),
    ],
    ids=lambda value: value.value if isinstance(value, Refusal) else "",
)
async def test_a_refused_person_is_told_privately_and_nothing_else_happens(
    world: CoreWorld,
    member: Member | None,
    channel: ChannelInfo | None,
    rules: dict[str, frozenset[str]],
    refused: Refusal,
) -> None:
    """With their text; the audit trail has the reason."""
    world.rules = PermissionRules("T1", **rules)  # type: ignore[arg-type]  # as the parameters have it
    world.reading.members |= {"UANA": member} if member else {}
    world.reading.channels |= {"C1": channel} if channel else {}
    world.assemble()
    await world.start(wait=0)
    assert world.chat.messages == []
    assert world.job_api.created == []
    assert world.chat.private == [RequestRefused("UANA", refused, RequestKind.START, "Do it")]
    assert await audited(world) == [("refused", "UANA", refused.value)]


@pytest.mark.parametrize(
    "rules",
    [
        {"allow_guests": True, "allow_shared_channels": True},
        {"allow_guests": True, "allow_shared_channels": True, "people": frozenset({"UANA"})},
        {"allow_guests": True, "allow_shared_channels": True, "people": frozenset({"UX"}), "groups": frozenset({"S1"})},
    ],
)
async def test_an_allowed_person_may_start_a_job(world: CoreWorld, rules: dict[str, object]) -> None:
    world.rules = PermissionRules("T1", **rules)  # type: ignore[arg-type]  # as the parameters have it
    world.reading.members["UANA"], world.reading.channels["C1"] = GUEST, SHARED
    world.reading.groups["S1"] = frozenset({"UANA"})
    world.assemble()
    await world.started()
    assert world.job_api.created == ["Do it"]
    assert await audited(world) == [("asked", "UANA", "")]


async def test_a_permission_slack_never_confirms_is_refused(world: CoreWorld) -> None:
    """Waiting does not bring a missing scope."""
    world.reading.faults = [ChatMissingScope(("users:read",))]
    await world.start(wait=0)
    assert [each.refusal for each in world.chat.private_as(RequestRefused)] == [Refusal.PERSON_UNKNOWN]


async def test_each_person_has_an_hourly_limit(world: CoreWorld) -> None:
    """Stopping and muting do not count, and the next hour starts again."""
    world.configure(rules=PermissionRules("T1", hourly_limit=2))
    ts = await world.started()
    for number in range(3):
        await world.reply(ts, f"{number}", AT[number])
    await world.reply(ts, "mine", AT[3], BEN)
    await world.press_card(RequestKind.SHOW_STATUS, ts, key="s", wait=5)
    assert world.job_api.messages["job-1"] == ["0", "mine"]
    refused = [(each.person_id, each.refusal, each.limit) for each in world.chat.private_as(RequestRefused)]
    assert refused == [("UANA", Refusal.TOO_MANY, 2)] * 2
    world.clock.advance(3_600)
    await world.reply(ts, "later", AT[4], wait=5)
    assert world.job_api.messages["job-1"][-1] == "later"


async def test_preparing_is_given_up_after_some_minutes_with_an_explanation(world: CoreWorld) -> None:
    world.reading.faults = [ChatUnreachable("down")] * 200
    await world.start(wait=60)
    assert world.request_preparer.status().failing_seconds > 0
    await world.pass_time(1_200)
    assert world.job_api.created == []
    assert world.chat.messages == []
    assert world.chat.answers() == ["slack_away"]


async def test_waiting_for_slacks_rate_limit_is_not_an_attempt(world: CoreWorld) -> None:
    """Nothing fails and nothing is given up, though there are more attempts than the limit."""
    world.reading.faults = [ChatRateLimited("ratelimited", retry_after=20.0, method="users.info")] * 34
    await world.start(wait=1_200)
    assert world.job_api.created == ["Do it"]
    assert world.chat.private == []
    assert world.request_preparer.status().failing_seconds == 0


async def test_an_ambiguous_project_waits_for_its_persons_choice(world: CoreWorld) -> None:
    projects(world)
    await world.start("Mend the guide and the manual", wait=30)
    assert [message.kind for message in world.chat.messages] == ["card_changed"]
    assert world.job_api.created == []
    (asked,) = world.chat.private_as(ProjectAsked)
    assert (asked.person_id, asked.projects, asked.said) == ("UANA", ("guides", "manual"), "")
    for person, name in ((BEN, "manual"), (ANA, "nothing"), (ANA, "guides"), (ANA, "manual")):
        await world.press(RequestKind.CHOOSE_PROJECT, person, name, key=f"{person.id}{name}", thread_id=asked.thread_id)
    await world.pass_time(5)
    assert world.job_api.projects == ["manual"]
    assert world.chat.answers() == ["project_settled", "project_chosen", "project_chosen"]
    assert [each.refusal for each in world.chat.private_as(RequestRefused)] == [Refusal.NOT_A_PARTICIPANT]
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "manual", key="same", thread_id=asked.thread_id, wait=0)
    assert world.chat.answers()[-1] == "project_settled"


async def test_the_project_question_can_be_repeated(world: CoreWorld) -> None:
    """Slack may lose an ephemeral message; the card remains."""
    projects(world)
    await world.start("Mend the guide and the manual", wait=5)
    (asked,) = world.chat.private_as(ProjectAsked)
    for person in (BEN, ANA):
        await world.press(RequestKind.CHOOSE_PROJECT, person, "", key=f"again{person.id}", thread_id=asked.thread_id)
    await world.settle()
    assert [each.refusal for each in world.chat.private_as(RequestRefused)] == [Refusal.NOT_A_PARTICIPANT]
    assert [each.person_id for each in world.chat.private_as(ProjectAsked)] == ["UANA", "UANA"]
    await world.press(RequestKind.STOP, ANA, "", key="stop", thread_id=asked.thread_id, wait=5)
    assert world.chat.answers()[-1] == "stopped_unsent"
    assert world.job_api.created == []


async def test_switching_a_sent_job_starts_a_new_one(world: CoreWorld) -> None:
    """Once, in its thread, with its text; the earlier job is stopped."""
    projects(world)
    ts = await world.started("Mend the manual")
    for key in ("p1", "p2"):
        await world.press_card(RequestKind.CHOOSE_PROJECT, ts, ANA, "guides", key=key)
    await world.pass_time(10)
    assert sorted(world.chat.answers()) == ["project_settled", "project_switched"]
    assert world.job_api.created == ["Mend the manual", "Mend the manual"]
    assert world.job_api.projects == ["manual", "guides"]
    newest = await world.newest(ts)
    assert (newest.number, newest.project, newest.options.way_in) == (1, "guides", WayIn.SWITCH)
    assert newest.options.project_reason is ProjectReason.CHOSEN
    first_after = await world.thread(ts)
    assert first_after.state.people.stopped_by == "UANA" or world.job_api.messages
    done = [each[0] for each in await audited(world)]
    assert {"project_chosen", "stopped"} <= set(done)
    assert done.count("asked") == 2


async def test_a_permitted_person_is_offered_the_other_projects(world: CoreWorld) -> None:
    """With the job's current project, since it does not wait for an answer."""
    projects(world)
    thread = await world.thread(await world.started("Mend the manual"))
    await world.press(RequestKind.CHOOSE_PROJECT, ANA, "", key="menu", thread_id=thread.id, wait=0)
    (asked,) = world.chat.private_as(ProjectAsked)
    assert (asked.projects, asked.current) == (("guides",), "manual")


async def test_a_retry_keeps_the_chosen_context(world: CoreWorld) -> None:
    """Even no context, if its person chose that: then the thread is not read."""
    asked = NewJob(ANA, "C1", "Do it", "k1", WayIn.SHORTCUT, thread_ts="3.0", origin=ThreadOrigin.CONVERSATION)
    await world.ask(asked, wait=5)
    await world.show("failed", wait=30)
    first = await world.newest("3.0")
    await world.press(RequestKind.RETRY, ANA, "", key="p1", thread_id=first.id, wait=5)
    again = await world.newest("3.0")
    assert (again.number, again.options.context_chosen) == (1, True)
    assert "thread 3.0" not in world.reading.asked


async def test_an_unknown_project_is_asked_about_and_a_preferred_one_is_not(world: CoreWorld) -> None:
    projects(world)
    await world.service.save_preference("UANA", Preference(project="guides", quiet=True))
    await world.ask(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND, project_said="guidse"), wait=0)
    (asked,) = world.chat.private_as(ProjectAsked)
    assert (asked.said, asked.projects) == ("guidse", ("guides", "manual"))
    ts = await world.started("Do it", key="k2")
    thread = await world.thread(ts)
    assert (thread.project, thread.options.project_reason) == ("guides", ProjectReason.DEFAULT)
    assert thread.options.quiet


async def test_text_files_are_quoted_and_others_uploaded_where_accepted(world: CoreWorld) -> None:
    """Secrets in it are masked, and people are told."""
    world.job_api.files_taken = True
    world.reading.files = {
        "F1": FileContent(b"password: hunter2hunter2 and ghp_" + b"a1B2" * 9, "text/markdown"),
        "F2": FileContent(b"\x89PNG\x00", "image/png"),
    }
    await world.ask(NewJob(ANA, "C1", "See", "k", WayIn.COMMAND, attachments=Attachments((TEXT, IMAGE))), wait=5)
    (created,) = world.job_api.created
    assert "ghp_" not in created
    assert list(world.job_api.uploads.values()) == [b"\x89PNG\x00"]
    (files,) = world.job_api.files.values()
    assert [file.name for file in files] == ["a.png"]
    (told,) = world.chat.posted_as(ContextCut)
    assert told.link_only == ()
    assert "GitHub token" in told.masked


async def test_an_uploaded_files_name_is_masked(world: CoreWorld) -> None:
    """In the upload, and in the text about it."""
    world.job_api.files_taken = True
    world.reading.files = {"F2": FileContent(b"\x89PNG\x00", "image/png")}
    picture = replace(IMAGE, name=f"{GITHUB}.png")
    await world.ask(NewJob(ANA, "C1", "See", "k", WayIn.COMMAND, attachments=Attachments((picture,))), wait=5)
    assert "[masked: GitHub token].png" in world.job_api.created[0]
    (files,) = world.job_api.files.values()
    assert [file.name for file in files] == ["[masked: GitHub token].png"]
    assert [told.masked for told in world.chat.posted_as(ContextCut)] == [("GitHub token",)]


async def test_configured_secrets_are_masked_in_every_authors_text(world: CoreWorld) -> None:
    """People may send everything else in their own text."""
    world.configure(masker=SecretMasker(("correct horse battery",)))
    ts = await world.started("Use correct horse battery and ghp_" + "a1B2" * 9)
    await world.reply(ts, "or correct horse battery", AT[0], wait=5)
    sent = [*world.job_api.created, *world.job_api.messages["job-1"]]
    assert sent == [
        "Use [masked: Pagehand's own credential] and ghp_" + "a1B2" * 9,
        "or [masked: Pagehand's own credential]",
    ]


async def test_context_by_others_is_sent_without_secrets_and_pagehands_messages(world: CoreWorld) -> None:
    """Including link previews with titles and addresses; a configured value is found without a name beside it."""
    world.configure(masker=SecretMasker(("correct horse battery",)))
    preview = LinkPreview(f"Log {GITHUB}", GITHUB, "https://ci.example/log?token=abc123def456ghi789")
    said = ThreadMessage("Cleo", f"see {preview.url}, or correct horse battery", "5.0", previews=(preview,))
    world.reading.threads["5.0"] = [said]
    await world.receive(Reply(ANA, "C1", "5.0", "6.0", "Fix it", mentions_us=True), wait=0)
    (created,) = world.job_api.created
    assert "a1B2" not in created
    assert "abc123" not in created
    assert "or [masked: Pagehand's own credential]" in created
    (told,) = world.chat.posted_as(ContextCut)
    assert told.masked == ("Pagehand's own credential", "GitHub token", "password or key")


async def test_context_chosen_by_the_person_is_sent_unchanged(world: CoreWorld) -> None:
    """A person who uses the message shortcut has seen and edited it."""
    asked = NewJob(ANA, "C1", "Fix it", "k", WayIn.SHORTCUT, thread_ts=AT[0], context=RequestContext("> edited"))
    await world.ask(asked, wait=5)
    assert "> edited" in world.job_api.created[0]
    assert not [call for call in world.reading.asked if call.startswith("thread")]


async def test_a_stop_before_sending_sends_nothing(world: CoreWorld) -> None:
    """The card and the thread say so, also to those who replied."""
    world.job_api.faults = [JobApiUnreachable("down")]
    ts = await world.started()
    await world.reply(ts, "and this", AT[0], BEN)
    await world.press_card(RequestKind.STOP, ts, BEN, key="p1")
    await world.press_card(RequestKind.STOP, ts, BEN, key="p2", wait=100)
    assert world.job_api.created == []
    assert world.chat.answers() == ["stopped_unsent", "nothing_to_stop"]
    assert world.chat.said(ts) == ["request_rejected", "request_rejected"]
    assert (await world.thread(ts)).state.failure.problem == "stopped"
    assert [each[:2] for each in await audited(world)][-1] == ("stopped", "UBEN")


async def test_a_failed_job_is_retried_once_as_a_new_job(world: CoreWorld) -> None:
    ts = await world.started()
    await world.press_card(RequestKind.RETRY, ts, BEN, key="p0")
    await world.show("failed", wait=5)
    for press in ("p1", "p2"):
        await world.press_card(RequestKind.RETRY, ts, BEN, key=press)
    await world.pass_time(5)
    assert world.job_api.created == ["Do it", "Do it"]
    assert sorted(world.chat.answers()) == ["not_to_be_retried", "not_to_be_retried", "started_again"]
    newest = await world.newest(ts)
    assert (newest.number, newest.requester_id, newest.options.way_in) == (1, "UBEN", WayIn.RETRY)
    assert AuditAction.RETRIED.value in [each[0] for each in await audited(world)]


async def test_a_retry_of_a_request_in_doubt_sends_it_again(world: CoreWorld) -> None:
    world.job_api.after = [JobApiUncertain("timeout")]
    ts = await world.started()
    assert world.chat.posted_as(RequestUncertain)
    await world.press_card(RequestKind.RETRY, ts, key="p1", wait=5)
    assert world.job_api.created == ["Do it", "Do it"]
    assert world.chat.answers() == ["sent_again"]


async def test_home_is_updated_even_if_slack_refuses_the_card(world: CoreWorld) -> None:
    """It shows what the card cannot."""
    await world.started()
    world.clock.advance(3)
    await world.service.open_home("UANA")
    await world.store.transact(lambda tx: tx.homes.claim("x", lease=30.0, limit=5))
    await world.store.transact(lambda tx: tx.homes.published("UANA", "x"))
    world.chat.fail(update_card=ChatRejected("message_not_found"))
    await world.show("completed", "https://git.example/pull/1", wait=60)
    claimed = await world.store.transact(lambda tx: tx.homes.claim("x", lease=30.0, limit=5))
    assert [home.person_id for home in claimed] == ["UANA"]


async def test_an_answer_by_another_person_to_an_unknown_action_does_nothing(world: CoreWorld) -> None:
    await world.service.act(Action(ANA, RequestKind.STOP, "k", channel_id="C1", card_ts="1.1"))
    assert await world.step(world.request_preparer) == 0


async def test_the_audit_trail_shows_each_way_in_and_refusal(world: CoreWorld) -> None:
    """A control word is not a command, and a person of another workspace is refused alike by each way in."""
    ts = await world.started()
    await world.reply(ts, "mine", AT[0], EVA)
    await world.press_card(RequestKind.MUTE, ts, EVA, key="m")
    await world.reply(ts, "mine", AT[1])
    await world.receive(Reply(ANA, "C1", ts, AT[2], "", word=ThreadWord.STOP), wait=5)
    entries = await world.store.transact(lambda tx: tx.audit.read(since=0.0, until=1e11, after=0, limit=50))
    assert [(each.entry.action, each.entry.person.id, each.entry.way_in) for each in entries] == [
        ("asked", "UANA", "command"),
        ("refused", "UEVA", "reply"),
        ("refused", "UEVA", "button"),
        ("steered", "UANA", "reply"),
        ("stopped", "UANA", "word"),
    ]


def asked(text: str) -> str:
    prompt = parse_slash(text)
    assert isinstance(prompt, Start)
    return prompt.prompt


def written(text: str) -> str:
    reply = parse_reply(text, bot_user_id="UBOT")
    assert isinstance(reply, FollowUp)
    return reply.prompt


async def test_starts_and_follow_ups_give_the_agent_names(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva", "U2": "Ben Okafor"}
    ts = await world.started(asked("Ask <@U1> and <@U2|ben>, not @U2"))
    await world.reply(ts, written("<@UBOT> and <@U2>, and <@U1> again"), "1700000002.000100", wait=5)
    assert world.job_api.created == ["Ask @Ana Silva and @ben, not @U2"]
    assert world.job_api.messages["job-1"] == ["and @Ben Okafor, and @Ana Silva again"]
    assert world.people.asked == ["U1", "U2", "U1"]


async def test_the_agent_gets_names_of_channels_and_groups(world: CoreWorld) -> None:
    """Also in forwarded messages."""
    world.people.state = {"C1": "guides", "C2": PRIVATE_CHANNEL, "S1": "writers"}
    shared = ForwardedMessage("Ben", written("as in <#C1>"))
    prompt = asked("As <!subteam^S1> say in <#C1> and <#C2>")
    await world.ask(NewJob(ANA, "C1", prompt, "k1", WayIn.MENTION, attachments=Attachments(forwarded=(shared,))))
    await world.settle()
    (created,) = world.job_api.created
    assert created.startswith("As @writers say in #guides and a private channel\n")
    assert "> as in #guides" in created


async def test_a_repeated_request_has_the_same_words(world: CoreWorld) -> None:
    """A server that honours keys rejects it with other names."""
    world.configure(idempotent=True)
    world.people.state = {"U1": "Ana Silva"}
    ts = await world.started("Do it")
    await world.reply(ts, written("Ask <@U1> and <@U2>"), "1700000002.000100")
    world.job_api.after = [JobApiUncertain("cut off")]
    world.clock.advance(2)
    await world.settle()
    world.people.state = {"U1": "Somebody else", "U2": "Ben Okafor"}
    await world.pass_time(30)
    assert world.job_api.messages["job-1"] == ["Ask @Ana Silva and @U2"] * 2
    assert world.people.asked == ["U1", "U2"]


async def test_look_ups_that_are_cancelled_before_they_begin_leave_nothing_behind(world: CoreWorld) -> None:
    """As after a pause of the process, when their time is over at once."""
    await world.service.start(NewJob(ANA, "C1", "Do it", "k1", WayIn.COMMAND))
    (item,) = await world.request_preparer.claim(1)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asked = asyncio.create_task(world.request_preparer._ask_slack(item))
        await asyncio.sleep(0)  # it has begun, and what it waits for has not
        asked.cancel()
        await asyncio.wait({asked})
        gc.collect()
    assert asked.cancelled()
    assert [str(each.message) for each in warned] == []
