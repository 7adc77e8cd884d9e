"""Webhooks over real HTTP on both databases: they make the pull requests that they name due, and do nothing else."""

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.agents.packages import NotInstalled
from support.fakes.ports import FakeClock
from support.hypothesis_settings import examples
from support.secret_files import SecretFileWorld
from support.webhooks import PATH, about, links_told, recorded, webhook
from support.worlds.app_world import a_world
from support.worlds.doctor_world import SIGNING_SECRET
from support.worlds.store_world import LEASE, Sql, StoreWorld, a_thread, on_sqlite

from bot.app.application import Role
from bot.app.code_hosts import webhook_routes
from bot.codehosts.github_webhook import LARGEST
from bot.domain.pull_requests import FollowedPullRequest
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job
from bot.runtime.http.server import HttpServer, listening_socket
from bot.runtime.rotating_secrets import RotatingSecret
from bot.slack.receiving.http_receiver import MAX_BODY, HttpReceiver
from bot.store.pull_requests import ClaimedPullRequest

SECRET, OTHER_SECRET = "planted-webhook-secret", "planted-other-webhook-secret"
WEB, OTHER_WEB = "https://github.com", "https://git.example"
LINK = f"{WEB}/acme/docs/pull/7"
EVENT = about("acme/docs", 7)
REST = 15.0


class Hooks:
    """Takes webhooks into a store."""

    def __init__(self, store: StoreWorld, session: aiohttp.ClientSession, secret: RotatingSecret) -> None:
        self.store = store
        self._session = session
        senders = [(WEB, secret), (OTHER_WEB, RotatingSecret(OTHER_SECRET))]
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_routes(webhook_routes(senders, store.store))
        self._server = HttpServer(application)

    async def start(self) -> None:
        await self._server.start(listening_socket("127.0.0.1", 0))

    async def stop(self) -> None:
        await self._server.stop()

    async def send(self, payload: object = EVENT, secret: str = SECRET, **head: str) -> int:
        return await self.post(**webhook(secret, payload, **head))

    async def post(self, **request: Any) -> int:
        async with self._session.post(f"http://127.0.0.1:{self._server.port}{PATH}", **request) as answer:
            assert "planted" not in await answer.text()
            return answer.status

    async def follow(self, **links: str) -> None:
        """Follows these links in threads of these names; each was read, and is due again in ten minutes."""
        for name, link in links.items():
            await self.store.add(a_thread(name, ts=f"{name}.1"))
            job = Job(f"job-{name}", "completed", link)
            await self.store.save(name, ThreadState(job=job), poll_in=None)
        for each in await self.claim():
            await self.save(each)

    async def claim(self) -> Sequence[ClaimedPullRequest]:
        return await self.store.transact(lambda tx: tx.pull_requests.claim("one", lease=LEASE, limit=100))

    async def save(self, read: ClaimedPullRequest, *, next_in: float | None = 600.0, rest: float = REST) -> None:
        name, followed = read.thread.id, FollowedPullRequest()
        await self.store.transact(
            lambda tx: tx.pull_requests.save(name, followed, next_read_in=next_in, rests_for=rest)
        )

    async def due(self) -> set[str]:
        """Claims what is due; returns the links."""
        return {each.link for each in await self.claim()}


@pytest.fixture
async def hooks(store: StoreWorld) -> AsyncIterator[Hooks]:
    async with aiohttp.ClientSession() as session:
        made = Hooks(store, session, RotatingSecret(SECRET))
        await made.start()
        yield made
        await made.stop()


async def test_a_webhook_makes_due_what_it_names_after_a_rest(hooks: Hooks, clock: FakeClock) -> None:
    """Whichever thread has it; the others keep their time."""
    await hooks.follow(one=LINK, two=LINK, three=f"{WEB}/acme/docs/pull/8", four=f"{OTHER_WEB}/acme/docs/pull/7")
    assert await hooks.send() == 202
    assert await hooks.due() == set(), "all were read just now"
    clock.advance(REST)
    assert {each.thread.id for each in await hooks.claim()} == {"one", "two"}


async def test_a_replay_costs_no_reading(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    reads = 0
    for _ in range(60):
        assert await hooks.send() == 202
        for each in await hooks.claim():
            reads += 1
            await hooks.save(each)
        clock.advance(1.0)
    assert reads == 3, "one each 15 s"


async def test_news_while_it_is_read_is_read_after_the_rest(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    clock.advance(600)
    (reading,) = await hooks.claim()
    clock.advance(2)
    assert await hooks.send() == 202
    assert await hooks.due() == set(), "it is being read"
    await hooks.save(reading)
    clock.advance(REST - 1)
    assert await hooks.due() == set()
    clock.advance(1)
    assert await hooks.due() == {LINK}


async def test_news_while_it_is_read_survives_the_reader(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    clock.advance(600)
    assert await hooks.due() == {LINK}
    assert await hooks.send() == 202
    clock.advance(LEASE)
    assert await hooks.due() == {LINK}


async def test_a_host_that_asks_to_wait_is_not_asked_sooner(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    clock.advance(600)
    (reading,) = await hooks.claim()
    await hooks.save(reading, next_in=900.0, rest=400.0)
    assert await hooks.send() == 202
    clock.advance(399)
    assert await hooks.due() == set()
    clock.advance(1)
    assert await hooks.due() == {LINK}


async def test_what_is_followed_no_more_stays_so(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    clock.advance(600)
    (reading,) = await hooks.claim()
    assert await hooks.send() == 202
    await hooks.save(reading, next_in=None)
    assert await hooks.send() == 202
    clock.advance(3_600)
    assert await hooks.due() == set()


async def test_each_secret_is_for_its_own_host(hooks: Hooks, clock: FakeClock) -> None:
    elsewhere = f"{OTHER_WEB}/acme/docs/pull/7"
    await hooks.follow(one=LINK, two=elsewhere)
    clock.advance(REST)
    assert await hooks.send(secret=OTHER_SECRET) == 202
    assert await hooks.due() == {elsewhere}


async def test_a_link_as_long_as_one_may_be_can_be_followed(hooks: Hooks) -> None:
    """PostgreSQL's usual index would refuse it."""
    long = WEB + "".join(f"/{number:x}" for number in range(700))
    await hooks.follow(one=long[:3_000])


@on_sqlite
@pytest.mark.parametrize("status", [401, 400, 413])
async def test_what_is_refused_makes_nothing_due(hooks: Hooks, clock: FakeClock, status: int) -> None:
    await hooks.follow(one=LINK)
    clock.advance(REST)
    refused: dict[int, list[dict[str, Any]]] = {
        401: [
            {"secret": "planted-wrong"},
            {"X_Hub_Signature_256": ""},
            {"X_Hub_Signature_256": "sha256=" + "0" * 64},
            {"X_Hub_Signature_256": "sha1=" + "0" * 40},
        ],
        400: [
            {"X_GitHub_Event": ""},
            {"X_GitHub_Delivery": ""},
            {"Content_Type": "application/x-www-form-urlencoded"},
            {"payload": b"{"},
            {"payload": b"\xff"},
            {"payload": b"[" * 100_000},
        ],
        413: [{"payload": b" " * (LARGEST + 1)}],
    }
    statuses = [await hooks.send(**each) for each in refused[status]]
    assert statuses == [status] * len(refused[status])
    assert await hooks.due() == set()


@on_sqlite
async def test_a_large_one_without_a_length_is_refused_as_it_comes(hooks: Hooks) -> None:
    request = webhook(SECRET, b" " * (LARGEST + 1))
    request["data"] = _chunks(request["data"])
    assert await hooks.post(**request) == 413


async def _chunks(whole: io.BytesIO) -> AsyncIterator[bytes]:
    while part := whole.read(1 << 16):
        yield part
        await asyncio.sleep(0)


@on_sqlite
@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {"repository": None, "pull_request": 7},
        {"zen": "Design for failure."},
        about("acme/docs/pull/7", 7),
        about("acme/docs?", 7),
        about("acme/..", 7),
        about("acme", 7),
        {"repository": {"full_name": "acme/docs"}, "check_run": {"pull_requests": [{"number": 7, "url": "/pulls/7"}]}},
        about("acme/docs", -7),
        {"repository": {"full_name": "acme/docs"}, "check_run": {"pull_requests": {"number": 7}}},
        {"repository": {"full_name": "acme/docs"}, "merge_group": {"head_ref": "refs/heads/pr-7-"}},
    ],
)  # fmt: skip
async def test_what_names_no_pull_request_makes_nothing_due(hooks: Hooks, clock: FakeClock, payload: object) -> None:
    await hooks.follow(one=LINK)
    clock.advance(REST)
    assert await hooks.send(payload) == 202
    assert await hooks.due() == set()


@on_sqlite
async def test_a_queue_names_its_pull_request(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK)
    clock.advance(REST)
    ref = f"refs/heads/gh-readonly-queue/release/2/pr-7-{'a' * 40}"
    event = {"repository": {"full_name": "acme/docs"}, "merge_group": {"head_ref": ref}}
    assert await hooks.send(event, X_GitHub_Event="merge_group") == 202
    assert await hooks.due() == {LINK}


@on_sqlite
async def test_a_forks_checks_name_the_pull_request_of_its_origin(hooks: Hooks, clock: FakeClock) -> None:
    await hooks.follow(one=LINK, two=f"{WEB}/mine/docs/pull/7")
    clock.advance(REST)
    named = {"number": 7, "url": "https://planted.example/api/v3/repos/acme/docs/pulls/7"}
    event = {"repository": {"full_name": "mine/docs"}, "check_suite": {"pull_requests": [named]}}
    assert await hooks.send(event, X_GitHub_Event="check_suite") == 202
    assert await hooks.due() == {LINK}


@on_sqlite
async def test_every_recorded_event_makes_exactly_what_it_names_due(hooks: Hooks, sql: Sql) -> None:
    """Those of github.com and of several versions of GitHub Enterprise Server; in the default lane every tenth."""
    try:
        events = list(recorded())[:: 100 // examples(100)]
    except NotInstalled as error:
        pytest.skip(str(error))
    told = {link for _, example in events for link in links_told(example)}
    await hooks.follow(**{f"t{number}": link for number, link in enumerate(sorted(told))}, other=LINK)
    named = 0
    for event, example in events:
        await sql("UPDATE pull_requests SET due_at = 4e9, not_before = NULL, claimed_by = NULL, claimed_until = NULL")
        assert await hooks.send(example, X_GitHub_Event=event) == 202
        if event != "merge_group":
            expected = links_told(example)
            assert await hooks.due() == expected, event
            named += bool(expected)
    assert named > examples(100)


@on_sqlite
async def test_githubs_own_example_of_a_signature_is_right(store: StoreWorld) -> None:
    """From "Validating webhook deliveries": what is signed right is only no JSON."""
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    async with aiohttp.ClientSession() as session:
        hooks = Hooks(store, session, RotatingSecret("It's a Secret to Everybody"))
        await hooks.start()
        assert await hooks.send(b"Hello, World!", X_Hub_Signature_256=signature) == 400
        assert await hooks.send(b"Hello, world!", X_Hub_Signature_256=signature) == 401
        await hooks.stop()


@on_sqlite
async def test_a_secret_is_replaced_without_an_outage(store: StoreWorld, tmp_path: Any) -> None:
    file = SecretFileWorld(tmp_path)
    file.put(SECRET)
    async with aiohttp.ClientSession() as session:
        hooks = Hooks(store, session, file.secret())
        await hooks.start()

        async def statuses() -> list[int]:
            return [await hooks.send(secret=each) for each in (SECRET, "planted-new-secret")]

        assert await statuses() == [202, 401]
        file.put(f"planted-new-secret\n{SECRET}\n")
        assert await statuses() == [202, 202]
        file.put("planted-new-secret")
        assert await statuses() == [401, 202]
        await hooks.stop()


@on_sqlite
@pytest.mark.parametrize(("secret", "status"), [(SECRET, 202), ("", 404)])
async def test_the_bot_takes_them_over_http_if_it_has_the_secret(database: str, secret: str, status: int) -> None:
    async with a_world(database, SLACK_APP_TOKEN="", SLACK_SIGNING_SECRET=SIGNING_SECRET, PORT="0") as bots:
        bot = await bots.start(Role.WEB, CODE_HOST_WEBHOOK_SECRET=secret)
        assert isinstance(bot.app.receiver, HttpReceiver)
        url = f"http://127.0.0.1:{bot.app.receiver.port}{PATH}"
        async with aiohttp.ClientSession() as session, session.post(url, **webhook(SECRET, EVENT)) as answer:
            assert answer.status == status


@on_sqlite
async def test_a_database_that_fails_is_told(hooks: Hooks, sql: Sql) -> None:
    """GitHub shows it with the delivery; the next poll makes up for it."""
    await sql("ALTER TABLE pull_requests RENAME TO lost")
    assert await hooks.send() == 503
