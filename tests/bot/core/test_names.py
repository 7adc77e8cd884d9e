"""The agent gets the names of people mentioned in a request, if they are available."""

from typing import Any

from support.fakes.attachments import holding
from support.worlds.core_world import ANA, CoreWorld

from bot.domain.commands.commands import FollowUp, Start, parse_reply, parse_slash
from bot.domain.context.message_text import PRIVATE_CHANNEL, with_names
from bot.domain.context.slack_files import ForwardedMessage
from bot.domain.requests.new_jobs import NewJob
from bot.domain.requests.request import Attachments, Reply, Request, RequestState, WayIn
from bot.errors import JobApiRejected, JobApiUncertain, JobApiUnreachable
from bot.notices.questions import ReplyEdited
from bot.notices.requests import RequestRejected
from bot.service.start import request_id

AT = "1700000005.000100"


def asked(text: str) -> str:
    prompt = parse_slash(text)
    assert isinstance(prompt, Start)
    return prompt.prompt


def written(text: str) -> str:
    reply = parse_reply(text, bot_user_id="UBOT")
    assert isinstance(reply, FollowUp)
    return reply.prompt


async def follow_up(world: CoreWorld, at: str) -> Request:
    request = await world.store.transact(lambda tx: tx.requests.get(request_id(f"message/C1/{at}")))
    assert request is not None
    return request


async def test_starts_and_follow_ups_give_the_agent_names(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva", "U2": "Ben Okafor"}
    ts = await world.started(asked("Ask <@U1> and <@U2|ben>, not @U2"))
    await world.reply(ts, written("<@UBOT> and <@U2>, and <@U1> again"), "1700000002.000100")
    await world.pass_time(5)
    assert world.job_api.created == ["Ask @Ana Silva and @ben, not @U2"]
    assert world.job_api.messages["job-1"] == ["and @Ben Okafor, and @Ana Silva again"]
    assert world.people.asked == ["U1", "U2", "U1"]


async def test_the_agent_gets_names_of_channels_and_groups(world: CoreWorld) -> None:
    """Also in forwarded messages."""
    world.people.state = {"C1": "guides", "C2": PRIVATE_CHANNEL, "S1": "writers"}
    shared = ForwardedMessage("Ben", written("as in <#C1>"))
    prompt = asked("As <!subteam^S1> say in <#C1> and <#C2>")
    await world.service.start(
        NewJob(ANA, "C1", prompt, "k1", WayIn.MENTION, attachments=Attachments(forwarded=(shared,)))
    )
    await world.settle()
    (created,) = world.job_api.created
    assert created.startswith("As @writers say in #guides and a private channel\n")
    assert "> as in #guides" in created


async def test_without_a_name_the_id_is_sent_without_delay(world: CoreWorld) -> None:
    ts = await world.started(asked("Ask <@U1>"))
    await world.reply(ts, written("and &lt;@U2&gt;"), "1700000002.000100")
    await world.pass_time(5)
    assert world.job_api.created == ["Ask @U1"]
    assert world.job_api.messages["job-1"] == ["and <@U2>"]
    assert world.people.asked == ["U1"]


async def test_text_recorded_by_an_earlier_version_is_sent_unchanged(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva"}
    await world.started("Ask @U1")
    assert world.job_api.created == ["Ask @U1"]
    assert world.people.asked == []


async def test_a_repeated_request_has_the_same_words(world: CoreWorld) -> None:
    """A server that honours keys rejects it with other names."""
    world.idempotent = True
    world.assemble()
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


async def test_names_are_looked_up_once_during_a_long_outage(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva"}
    world.job_api.faults = [JobApiUnreachable("no connection") for _ in range(3)]
    await world.started(asked("Ask <@U1>"))
    await world.pass_time(60)
    assert world.job_api.created == ["Ask @Ana Silva"]
    assert world.people.asked == ["U1"]


async def test_a_request_taken_over_by_another_process_is_left_unchanged(world: CoreWorld) -> None:
    ts = await world.started("Do it")
    at = "1700000002.000100"
    await world.reply(ts, written("Ask <@U1>"), at)
    world.clock.advance(2)
    claimed_at = world.clock.monotonic()
    (item,) = await world.request_sender.claim(10)
    world.clock.advance(31)
    other = CoreWorld("two")
    other.store, other.clock, other.job_api, other.chat = world.store, world.clock, world.job_api, world.chat
    other.assemble()
    (again,) = await other.request_sender.claim(10)
    world.people.state = {"U1": "Ana Silva"}
    await world.request_sender.process(item, claimed_at)
    assert (await follow_up(world, at)).text == written("Ask <@U1>")
    assert world.job_api.messages["job-1"] == []
    await other.request_sender.process(again, world.clock.monotonic())
    assert (await follow_up(world, at)).state is RequestState.UNCERTAIN


async def revised(world: CoreWorld, ts: str, text: str, at: str, **changes: Any) -> None:
    words = parse_reply(text, bot_user_id="UBOT")
    assert isinstance(words, FollowUp)
    await world.service.revise(Reply(ANA, "C1", ts, AT, words.prompt, edited_at=at, **changes))
    await world.pass_time(5)


def offers(world: CoreWorld) -> list[str]:
    return [offer.text for offer in world.chat.private_as(ReplyEdited)]


async def test_naming_people_does_not_make_the_words_new(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva"}
    ts = await world.started("Do it")
    await world.reply(ts, written("Ask <@U1> first"), AT)
    await world.pass_time(5)
    await revised(world, ts, "Ask <@U1> first", "1700000006.000100", attachments=holding("a.png"))
    await revised(world, ts, "Ask her first", "1700000007.000100")
    await revised(world, ts, "Ask <@U1> first", "1700000008.000100")
    assert offers(world) == ["Ask her first"]
    assert (await follow_up(world, AT)).latest_text is None


async def test_mentioning_another_person_makes_the_words_new(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva", "U2": "Ana Silva"}
    ts = await world.started("Do it")
    await world.reply(ts, written("Ask <@U1> first"), AT)
    await world.pass_time(5)
    await revised(world, ts, "Ask <@U2> first", "1700000006.000100")
    assert offers(world) == [written("Ask <@U2> first")]


async def test_a_named_request_is_quoted_without_cutting_names(world: CoreWorld) -> None:
    world.people.state = {"U1": "Ana Silva"}
    ts = await world.started("Do it")
    await world.reply(ts, written("x" * 190 + " <@U1> first"), AT)
    world.clock.advance(1.5)
    world.job_api.faults = [JobApiRejected("400", words="no")]
    await world.step(world.request_sender)
    await world.pass_time(5)
    (rejected,) = world.chat.posted_as(RequestRejected)
    assert with_names(rejected.request.text, {}).strip() == "x" * 190
