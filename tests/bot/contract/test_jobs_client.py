import asyncio
import gzip
import json
import logging
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from aiohttp import web
from pydantic import SecretStr, ValidationError
from support.servers.certificates import make_certificate

import bot
from bot.errors import (
    ConfigError,
    JobApiBusy,
    JobApiError,
    JobApiFailed,
    JobApiNotAllowed,
    JobApiRejected,
    JobApiUncertain,
    JobApiUnreachable,
    JobApiUnreadable,
    JobGone,
    NoSuchProject,
    NotTheJobApi,
)
from bot.jobapi.client import HttpJobApi
from bot.jobapi.models import LARGEST_PICTURE, Job, JobDetails, Picture, PromptCall, Requester
from bot.jobapi.settings import JobApiSettings
from bot.jobapi.wire import MAX_WORDS
from bot.ports.job_api import JobApi

pytestmark = pytest.mark.promise("refusals")

KEY = "mk_admin_planted-key/7f3a"
JOB = b'{"id": "job_1", "status": "active", "source": {"repository": "acme/docs", "ref": "main"}, "prLink": null}'
SEEN = Job(id="job_1", status="active", repository="acme/docs", ref="main")
SECONDS = 20.0
"""How long a test waits for something that must happen at once."""

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]
Call = Callable[[JobApi], Awaitable[Job]]


def create(api: JobApi) -> Awaitable[Job]:
    return api.create("acme", PromptCall("Fix it", "k1"))


def message(api: JobApi) -> Awaitable[Job]:
    return api.send_message("acme", "job_1", PromptCall("And that", "k2"))


def get(api: JobApi) -> Awaitable[Job]:
    return api.get("acme", "job_1")


def cancel(api: JobApi) -> Awaitable[Job]:
    return api.cancel("acme", "job_1", idempotency_key="k3")


CALLS: tuple[Call, ...] = (create, message, get, cancel)
every_call = pytest.mark.parametrize("call", CALLS)


class Server:
    """A real HTTP server that records requests and then answers, or misbehaves, as `reply` says."""

    def __init__(self, log: pytest.LogCaptureFixture) -> None:
        self.log = log
        self.clients: list[HttpJobApi] = []
        self.reply: Reply = well
        self.came: list[tuple[str, str, Mapping[str, str], bytes, Any]] = []
        self.reached, self.released = asyncio.Event(), asyncio.Event()
        self.address = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        peer = request.transport.get_extra_info("peername") if request.transport else None
        self.came.append((request.method, request.raw_path, request.headers, body, peer))
        return await self.reply(request)  # type: ignore[arg-type]  # the low-level server has no routes

    async def hold(self, _: web.BaseRequest) -> web.StreamResponse:
        self.reached.set()
        await self.released.wait()
        return web.Response(body=JOB)

    def open(
        self,
        base_url: str = "",
        *,
        projects: Sequence[str] = ("acme",),
        transport: httpx.AsyncBaseTransport | None = None,
        **more: Any,
    ) -> HttpJobApi:
        """Returns a client of these projects, by default of this server; it is closed at the end of the test."""
        found = settings(base_url or self.address, **more)
        self.clients.append(HttpJobApi({name: (name, found) for name in projects}, transport=transport))
        return self.clients[-1]

    async def fault_of(self, call: Call, api: JobApi) -> JobApiError:
        (fault,) = await self._faults_of([call(api)], repr(api))
        return fault

    async def fault_of_each(self, apis: Sequence[JobApi]) -> list[JobApiError]:
        """Makes each call at the same time, with a client of its own."""
        return await self._faults_of([call(api) for call, api in zip(CALLS, apis, strict=True)], repr(apis))

    async def _faults_of(self, calls: Sequence[Awaitable[Job]], clients: str) -> list[JobApiError]:
        """Returns the errors of concurrent calls that must fail soon; searches for the key wherever it could leak,
        also in what `clients` shows, their `repr`.
        """
        with self.log.at_level(logging.DEBUG), ExitStack() as stack:
            for name in ("httpx", "httpcore", "aiohttp.client", "aiohttp.internal", "asyncio"):
                stack.enter_context(self.log.at_level(logging.DEBUG, logger=name))
            faults = await asyncio.gather(*(fault_of(call) for call in calls))
        assert not [text for text in (clients, self.log.text) if KEY in text]
        return faults


async def well(_: web.Request) -> web.StreamResponse:
    return web.Response(body=JOB, content_type="application/json")


def answering(status: int, body: bytes = b"", **headers: str) -> Reply:
    async def reply(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, body=body, headers=named)

    return reply


def raw(*parts: bytes, cut: bool = False, again: bytes = b"") -> Reply:
    """Sends raw bytes; then closes the connection, or sends `again` forever, or waits for the client to close it."""

    async def reply(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        for part in parts:
            transport.write(part)
        if cut:
            transport.close()
        while not transport.is_closing():
            if again:
                transport.write(again)
            await asyncio.sleep(0.01)  # the pace of the drip
        return web.Response()

    return reply


async def abort(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b" " * 65536)


@pytest.fixture
async def server(caplog: pytest.LogCaptureFixture) -> AsyncIterator[Server]:
    state = Server(caplog)
    runner = web.ServerRunner(web.Server(state.handle, handler_cancellation=True), shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    state.address = f"http://{host}:{port}"
    yield state
    for api in state.clients:
        await api.aclose()
    state.released.set()
    await runner.cleanup()


def settings(base_url: str, **more: Any) -> JobApiSettings:
    return JobApiSettings(base_url=base_url, api_key=SecretStr(KEY), **more)


async def fault_of(call: Awaitable[object]) -> JobApiError:
    with pytest.raises(JobApiError) as caught:
        await asyncio.wait_for(call, SECONDS)
    fault = caught.value
    shown = [*traceback.format_exception(fault), repr(fault), str(fault), repr(vars(fault))]
    assert not [text for text in shown if KEY in text]
    assert fault.__cause__ is None
    assert fault.__context__ is None
    assert str(fault).isprintable()
    return fault


# -- what is sent -----------------------------------------------------------------------------------------------------


async def test_the_client_sends_requests_as_specified(server: Server) -> None:
    api = server.open()
    assert [await call(api) for call in CALLS] == [SEEN] * 4
    assert [(method, path) for method, path, *_ in server.came] == [
        ("POST", "/v2/agent/acme/job"),
        ("POST", "/v2/agent/acme/job/job_1/message"),
        ("GET", "/v2/agent/acme/job/job_1"),
        ("POST", "/v2/agent/acme/job/job_1/cancel"),
    ]
    for _, _, headers, _, _ in server.came:
        assert headers["Authorization"] == f"Bearer {KEY}"
        assert headers["Content-Type"] == "application/json"
        assert headers["User-Agent"] == f"Pagehand/{bot.__version__}"
    assert [headers.get("Idempotency-Key") for _, _, headers, _, _ in server.came] == ["k1", "k2", None, "k3"]
    bodies = [b'{"prompt":"Fix it"}', b'{"prompt":"And that"}', b"", b"{}"]
    assert [body for *_, body, _ in server.came] == bodies


@pytest.mark.parametrize("status", [200, 299])
@every_call
async def test_any_2xx_is_success(server: Server, call: Call, status: int) -> None:
    server.reply = answering(status, JOB, content_type="text/plain", location="/v2/agent/acme/job/job_1")
    assert await call(server.open()) == SEEN


@pytest.mark.parametrize(
    "name", ["a/b", "a b", "..%2f", "%2e%2e", "a?b#c", "ü/待", "{id}", "a;b=c,d", "a+b&c", "...", "a\\..", "~"]
)
async def test_path_segments_arrive_as_one_segment(server: Server, name: str) -> None:
    api = server.open(projects=[name])
    await api.get(name, name)
    await api.send_message(name, name, PromptCall("x", "k"))
    (_, polled, *_), (_, told, *_) = server.came
    assert [unquote(part) for part in polled.split("/")] == ["", "v2", "agent", name, "job", name]
    assert [unquote(part) for part in told.split("/")] == ["", "v2", "agent", name, "job", name, "message"]


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_ids_that_would_climb_the_path_are_not_sent(server: Server, name: str) -> None:
    for call in (server.open().get("acme", name), server.open(projects=[name]).create(name, PromptCall("x", "k"))):
        with pytest.raises(JobApiRejected):
            await call
    assert server.came == []


async def test_the_base_url_may_have_a_prefix_and_the_get_path_may_differ(server: Server) -> None:
    api = server.open(server.address + "/api/docs/", get_path="/jobs?id={id}&in={projectId}")
    await api.create("acme", PromptCall("x", "k"))
    await api.get("acme", "a&b=c")
    assert [path for _, path, *_ in server.came] == [
        "/api/docs/v2/agent/acme/job",
        "/api/docs/jobs?id=a%26b%3Dc&in=acme",
    ]


async def test_the_requester_is_sent_and_details_come_back_without_our_key(server: Server) -> None:
    server.reply = answering(200, JOB[:-1] + b', "details": {"summary": "The key is ' + KEY.encode() + b'"}}')
    who = Requester("Ana", "U0ANA", "https://slack.example/p1")
    job = await server.open().send_message("acme", "job_1", PromptCall("And that", "k", requester=who))
    asked = {"name": "Ana", "id": "U0ANA", "url": "https://slack.example/p1"}
    assert json.loads(server.came[0][3]) == {"prompt": "And that", "requestedBy": asked}
    assert job.details == JobDetails(summary="The key is ***")


PICTURED = JOB[:-1] + b', "details": {"pictures": [{"id": "ab/c", "path": "x.png", "size": 3}, {"id": 7}]}}'


async def test_pictures_are_told_where_they_are_wanted_and_read_by_their_id(server: Server) -> None:
    server.reply = answering(200, PICTURED)
    assert (await server.open().get("acme", "job_1")).details == JobDetails()
    wanted = server.open(pictures=True)
    told = (await wanted.get("acme", "job_1")).details or JobDetails()
    assert told == JobDetails(pictures=(Picture(id="ab/c", path="x.png", size=3),))
    server.reply = answering(200, b"\x89PNG\x00\xff", content_type="image/png")
    assert await wanted.picture("acme", "job_1", told.pictures[0].id) == b"\x89PNG\x00\xff"
    assert server.came[-1][:2] == ("GET", "/v2/agent/acme/job/job_1/picture/ab%2Fc")


async def test_a_pull_request_is_read_at_its_job(server: Server) -> None:
    server.reply = answering(200, b"{}")
    assert await server.open().pull_request("acme", "job_1") == b"{}"
    assert server.came[-1][:2] == ("GET", "/v2/agent/acme/job/job_1/pull-request")


async def test_a_picture_that_is_too_large_is_not_read_to_its_end(server: Server) -> None:
    server.reply = answering(200, bytes(2 * LARGEST_PICTURE))
    read = await server.open().picture("acme", "job_1", "x")
    assert LARGEST_PICTURE < len(read) < 1.1 * LARGEST_PICTURE


@pytest.mark.parametrize("status", [404, 410])
async def test_a_picture_that_is_gone_says_so(server: Server, status: int) -> None:
    server.reply = answering(status, b'{"error": "this picture is no longer in the repository"}')
    assert isinstance(await fault_of(server.open().picture("acme", "job_1", "x")), JobGone)


# -- the table of faults: answers -------------------------------------------------------------------------------------

HTML = b"<!doctype html><title>nginx</title><h1>Sorry</h1>"


REMEDIES: dict[type[JobApiError], tuple[int, ...]] = {
    JobApiRejected: (304, 400, 405, 413, 415, 422, 499),
    JobApiNotAllowed: (401, 403),
    JobApiUnreachable: (407, 425),
    JobApiUncertain: (408, 799),
    JobApiBusy: (409, 429),
    JobGone: (410,),
    JobApiFailed: (500, 501, 502, 503, 504, 599),
}


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        *((status, {}, kind) for kind, statuses in REMEDIES.items() for status in statuses),
        (423, {"retry_after": "3"}, JobApiBusy),
        (429, {"retry_after": "soon"}, JobApiBusy),
        (500, {"retry_after": "3"}, JobApiFailed),
        (503, {"retry_after": "soon"}, JobApiFailed),
        (503, {"retry_after": "-1"}, JobApiFailed),
        (503, {"retry_after": "3"}, JobApiBusy),
        (301, {"location": "https://elsewhere.example/x"}, JobApiRejected),
        (302, {"location": "http://[broken"}, JobApiRejected),
        (307, {"location": "/login"}, JobApiRejected),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "You sent ' + KEY.encode() + b', sorry"}',
        pytest.param(HTML, marks=pytest.mark.full),
        pytest.param(b"", marks=pytest.mark.full),
    ],
)
async def test_each_status_maps_to_a_remedy(
    server: Server, *, status: int, headers: dict[str, str], kind: type[JobApiError], body: bytes
) -> None:
    server.reply = answering(status, body, **headers)
    for call in CALLS:
        fault = await server.fault_of(call, server.open())
        assert type(fault) is (JobApiRejected if call is create and kind is JobGone else kind)
        assert not isinstance(fault, JobApiNotAllowed) or fault.status == status
        sorry = body.startswith(b"{") and status not in {304, 407}
        assert fault.words == ("You sent ***, sorry" if sorry else "")
    asked_about_the_key = 2 if (status, body) == (403, HTML) else 0
    assert len(server.came) == len(CALLS) + asked_about_the_key


@pytest.mark.parametrize("body", [b"{}", b'{"error": "You sent nothing"}', HTML, b"Not Found", b'"no"', b""])
@every_call
async def test_only_json_is_the_job_apis_own_404(server: Server, call: Call, body: bytes) -> None:
    server.reply = answering(404, body)
    own = NoSuchProject if call is create else JobGone
    with pytest.raises(own if body.startswith(b"{") else NotTheJobApi) as caught:
        await call(server.open())
    assert caught.value.words == ("You sent nothing" if b"sent" in body else "")


OWN_404 = answering(404, b'{"error": "no such job"}')


@pytest.mark.parametrize(
    ("body", "on_get", "is_firewalls"),
    [
        (HTML, OWN_404, True),
        (b"error code: 1020", OWN_404, True),
        (HTML, well, True),
        (HTML, answering(404, HTML), False),
        (HTML, answering(403, b"{}"), False),
        (HTML, answering(401), False),
        (HTML, answering(500), False),
        (HTML, abort, False),
        (b'{"error": "wrong scope"}', OWN_404, False),
        (b"", OWN_404, False),
    ],
)
async def test_a_page_that_refuses_words_is_a_firewalls_if_the_key_is_taken(
    server: Server, body: bytes, on_get: Reply, *, is_firewalls: bool
) -> None:
    refuse = answering(403, body)
    server.reply = lambda request: (on_get if request.method == "GET" else refuse)(request)
    for call in (create, message):
        fault = await server.fault_of(call, server.open())
        assert type(fault) is (JobApiRejected if is_firewalls else JobApiNotAllowed)
        assert fault.status == 403
    fault = await server.fault_of(cancel, server.open())
    assert isinstance(fault, JobApiNotAllowed), "no words, so nothing to change"
    refuse = answering(401, body)
    fault = await server.fault_of(create, server.open())
    assert isinstance(fault, JobApiNotAllowed), "whatever says 401 is about the key"


async def test_a_redirect_is_reported_with_its_host_and_not_followed(server: Server) -> None:
    server.reply = answering(308, location="https://elsewhere.example/x?token=secret")
    fault = await server.fault_of(create, server.open())
    assert isinstance(fault, JobApiRejected)
    assert fault.status == 308
    assert "elsewhere.example" in str(fault)
    assert "secret" not in str(fault)
    assert len(server.came) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_a_call_held_back_repeats_the_earlier_reason(server: Server, status: int) -> None:
    api = server.open()
    server.reply = answering(status, b'{"error": "100 uses an hour"}', retry_after="60")
    first = await server.fault_of(create, api)
    assert isinstance(first, JobApiBusy)
    assert (first.status, first.retry_after) == (status, 60.0)
    server.reply = answering(429, b'{"error": "of polls"}', retry_after="90")
    await server.fault_of(get, api)
    fault = await server.fault_of(message, api)
    assert isinstance(fault, JobApiBusy)
    assert (fault.status, fault.words) == (status, "100 uses an hour")
    assert len(server.came) == 2


@pytest.mark.parametrize("status", [409, 423])
async def test_a_conflict_of_one_job_holds_back_no_other(server: Server, status: int) -> None:
    server.reply = answering(status, b'{"error": "a turn is running"}', retry_after="60")
    api = server.open()
    with pytest.raises(JobApiBusy, match="Something else") as caught:
        await message(api)
    assert (caught.value.status, caught.value.retry_after, caught.value.words) == (status, 60.0, "a turn is running")
    server.reply = well
    assert await message(api) == SEEN


@pytest.mark.parametrize(("headers", "at_most"), [({"retry_after": "1.5"}, 1.5), ({}, 1.0)])
async def test_a_busy_project_is_left_alone_so_long(server: Server, headers: dict[str, str], at_most: float) -> None:
    """Its creates and messages together, and its polls separately; another project is unaffected."""
    server.reply = answering(429, b"", **headers)
    api = server.open(default_pause=1.0, projects=["acme", "another"])
    with pytest.raises(JobApiBusy):
        await create(api)
    server.reply = well
    with pytest.raises(JobApiBusy) as turned_away:
        await message(api)
    assert len(server.came) == 1
    assert await get(api) == SEEN
    assert await cancel(api) == SEEN, "it may be what helps"
    assert await api.create("another", PromptCall("Fix it", "k3")) == SEEN
    left = turned_away.value.retry_after
    assert left is not None
    assert 0 < left <= at_most
    await asyncio.sleep(left)
    assert await message(api) == SEEN


async def test_error_texts_are_bounded_and_never_show_part_of_the_key(server: Server) -> None:
    server.reply = answering(400, json.dumps({"error": "x" * (MAX_WORDS - 10) + KEY + "y" * 99}).encode())
    fault = await server.fault_of(create, server.open())
    assert len(fault.words) == MAX_WORDS
    assert KEY[:5] not in fault.words


@pytest.mark.parametrize("reason", [b"Bearer " + KEY.encode(), b"Requ\xeate incorrecte", b""])
async def test_a_reason_phrase_is_neither_logged_nor_breaks_parsing(server: Server, reason: bytes) -> None:
    said = b'{"error": "no"}'
    head = b"HTTP/1.1 400 %s\r\nContent-Length: %d\r\nX-Key: %s\r\n\r\n" % (reason, len(said), KEY.encode())
    server.reply = raw(head, said)
    fault = await server.fault_of(create, server.open())
    assert type(fault) is JobApiRejected
    assert fault.words == "no"


async def test_a_job_that_echoes_the_key_is_shown_without_it(server: Server) -> None:
    echo = {"id": "job_1", "status": f"as {KEY}", "prLink": f"https://x/?k={KEY}", "source": {"ref": KEY}, "model": KEY}
    server.reply = answering(200, json.dumps(echo).encode())
    assert await get(server.open()) == Job(
        id="job_1", status="as ***", pr_link="https://x/?k=***", ref="***", model="***"
    )


@pytest.mark.parametrize(
    "reply",
    [
        answering(200, gzip.compress(JOB), content_encoding="gzip"),
        answering(200, JOB, content_encoding="gzip"),
        answering(200, JOB[:-1] + b', "a": "\xe9\x01", "b": %s}' % (b"1" * 10_000)),
    ],
    ids=["gzip", "called gzip", "no JSON"],
)
@every_call
async def test_an_unusual_answer_is_read(server: Server, call: Call, reply: Reply) -> None:
    server.reply = reply
    assert await call(server.open()) == SEEN


# -- the table of faults: success that can't be read ------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.full
@pytest.mark.parametrize(
    "reply",
    [
        answering(200, HTML),
        answering(200),
        answering(204),
        answering(200, b"{}"),
        answering(200, JOB[:40]),
        answering(200, b"\x1f\x8b\x08\x00 not what it says", content_encoding="gzip"),
        answering(200, JOB[:-1] + b" " * 10_000_000 + b"}"),
        endless,
        raw(OK + b"Content-Length: 500\r\n\r\n" + JOB, cut=True),
        raw(OK + b"Content-Length: 500\r\n\r\n", again=b" "),
    ],
    ids=["html", "empty", "204", "object", "cut-json", "compressed", "10MB", "endless", "cut", "drip"],
)
async def test_a_success_that_is_not_a_job_is_unreadable(server: Server, reply: Reply) -> None:
    server.reply = reply
    faults = await server.fault_of_each([server.open(timeout=3.0) for _ in CALLS])
    assert {type(fault) for fault in faults} == {JobApiUnreadable}
    assert len(server.came) == len(CALLS)


@every_call
async def test_a_success_that_says_error_keeps_its_words(server: Server, call: Call) -> None:
    server.reply = answering(200, b'{"error": {"message": "No credit for %s"}}' % KEY.encode())
    with pytest.raises(JobApiUnreadable) as caught:
        await call(server.open())
    assert caught.value.words == "No credit for ***"


# -- the table of faults: no answer -----------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize(
    "reply",
    [
        abort,
        raw(cut=True),
        raw(b"HTTP/1.1 200", cut=True),
        raw(b"SSH-2.0-OpenSSH\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"),
        raw(),
        raw(b"HTTP/1.1 2"),
        raw(again=b"HTTP/1.1 102 Processing\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\n", again=b"X: y\r\n"),
    ],
    ids=["reset", "closed", "cut-head", "not-http", "long-head", "silence", "half-a-line", "endless-1xx", "head-drip"],
)
async def test_a_post_that_may_have_arrived_is_uncertain_and_sent_once(server: Server, reply: Reply) -> None:
    server.reply = reply
    faults = await server.fault_of_each([server.open(timeout=2.0) for _ in CALLS])
    assert {type(fault) for fault in faults} == {JobApiUncertain}
    posted = [path for method, path, *_ in server.came if method == "POST"]
    assert len(posted) == len(set(posted)) == 3
    assert len(server.came) in {4, 5}  # aiohttp may repeat a GET, once


@every_call
async def test_a_refused_connection_is_unreachable(server: Server, call: Call) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # not listening: refused, and nobody else gets the port
        fault = await server.fault_of(call, server.open(f"http://127.0.0.1:{unused.getsockname()[1]}"))
    assert type(fault) is JobApiUnreachable


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
async def tls_server(server: Server, certificate: Path) -> AsyncIterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    runner = web.ServerRunner(web.Server(server.handle), shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_an_untrusted_certificate_is_unreachable(server: Server, tls_server: str) -> None:
    for call in CALLS:
        fault = await server.fault_of(call, server.open(tls_server))
        assert type(fault) is JobApiUnreachable
        assert "certificate" in str(fault)
    assert server.came == []


async def test_a_private_ca_is_trusted_when_configured(
    server: Server, tls_server: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert await create(server.open(tls_server)) == SEEN


@every_call
async def test_a_stalled_handshake_times_out(server: Server, call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        api = server.open(f"https://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.2)
        assert type(await server.fault_of(call, api)) is JobApiUnreachable


@pytest.mark.parametrize("call", [create, get])
async def test_concurrent_connections_are_bounded(server: Server, call: Call) -> None:
    server.reply = server.hold
    api = server.open(max_connections=2, connect_timeout=1.5)
    held = [asyncio.ensure_future(call(api)) for _ in range(2)]
    while len(server.came) < len(held):  # noqa: ASYNC110 - on Python 3.12 nothing else lets them go first
        await asyncio.sleep(0.01)
    assert type(await server.fault_of(call, api)) is JobApiUnreachable
    assert len(server.came) == 2
    server.released.set()
    assert await asyncio.gather(*held) == [SEEN, SEEN]
    assert await call(api) == SEEN


async def test_slow_polls_do_not_delay_requests_of_people(server: Server) -> None:
    api = server.open(max_connections=1)

    async def hold_polls(request: web.Request) -> web.StreamResponse:
        return await (server.hold(request) if request.method == "GET" else well(request))

    server.reply = hold_polls
    poll = asyncio.ensure_future(get(api))
    assert await asyncio.wait_for(create(api), SECONDS) == SEEN
    server.released.set()
    assert await poll == SEEN


async def test_a_cancelled_call_releases_its_connection(server: Server) -> None:
    api = server.open(max_connections=1)
    server.reply = server.hold
    call = asyncio.ensure_future(get(api))
    await asyncio.wait_for(server.reached.wait(), SECONDS)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    server.reply = well
    assert await asyncio.wait_for(get(api), SECONDS) == SEEN


@pytest.mark.parametrize("call", [create, message])
async def test_each_post_uses_its_own_connection_and_polls_share_one(server: Server, call: Call) -> None:
    api = server.open()
    for _ in range(3):
        await get(api)
        await call(api)
    assert len({peer for method, *_, peer in server.came if method == "GET"}) == 1
    assert len({peer for method, *_, peer in server.came if method == "POST"}) == 3


async def test_a_poll_survives_a_closed_keep_alive_connection(server: Server) -> None:
    api = server.open()
    await get(api)

    async def cut_once(request: web.Request) -> web.StreamResponse:
        server.reply = well
        return await abort(request)

    server.reply = cut_once
    assert await get(api) == SEEN
    assert len(server.came) == 3


BEFORE_SENDING = (
    *(httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout),
    *(httpx.ProxyError, httpx.UnsupportedProtocol, httpx.InvalidURL),
)
WHILE_SENDING_OR_WAITING = (
    *(httpx.ReadTimeout, httpx.WriteTimeout, httpx.ReadError, httpx.WriteError, httpx.CloseError),
    *(httpx.RemoteProtocolError, httpx.LocalProtocolError, httpx.DecodingError, RuntimeError, OSError, TimeoutError),
)


@pytest.mark.parametrize("fault", [*BEFORE_SENDING, *WHILE_SENDING_OR_WAITING])
async def test_an_error_of_httpx_after_sending_began_is_uncertain(server: Server, fault: type[Exception]) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise fault(KEY)

    for call in CALLS:
        api = server.open("http://jobs.example", transport=httpx.MockTransport(fail))
        kind = JobApiUnreachable if fault in BEFORE_SENDING else JobApiUncertain
        assert type(await server.fault_of(call, api)) is kind


# -- proxies ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy_environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


# httpx-aiohttp's way of passing a proxy's password
@pytest.mark.filterwarnings("ignore:.*BasicAuth.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*proxy_auth.*:DeprecationWarning")
async def test_the_environments_proxy_is_used(server: Server, proxy_environment: pytest.MonkeyPatch) -> None:
    proxy_environment.setenv("HTTP_PROXY", server.address.replace("//", "//user:word@"))
    api = server.open("http://jobs.example")
    assert [await call(api) for call in CALLS] == [SEEN] * 4
    assert {headers["Host"] for _, _, headers, *_ in server.came} == {"jobs.example"}
    assert {headers["Proxy-Authorization"] for _, _, headers, *_ in server.came} == {"Basic dXNlcjp3b3Jk"}


async def test_a_proxy_that_refuses_tunnels_is_unreachable(
    server: Server, proxy_environment: pytest.MonkeyPatch
) -> None:
    proxy_environment.setenv("ALL_PROXY", server.address.removeprefix("http://"))
    server.reply = answering(403)
    api = server.open("https://jobs.example")
    for call in CALLS:
        fault = await server.fault_of(call, api)
        assert type(fault) is JobApiUnreachable
        assert "proxy" in str(fault)
    assert {method for method, *_ in server.came} == {"CONNECT"}
    assert not [headers for _, _, headers, *_ in server.came if "Authorization" in headers]


async def test_no_proxy_is_used_for_loopback_or_exempt_hosts(
    server: Server, proxy_environment: pytest.MonkeyPatch
) -> None:
    proxy_environment.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert await get(server.open()) == SEEN
    assert await get(server.open(server.address.replace("127.0.0.1", "localhost"))) == SEEN
    proxy_environment.setenv("NO_PROXY", "jobs.example")
    proxy_environment.setenv("HTTP_PROXY", "socks5://127.0.0.1:9")  # refused on use
    server.open("http://jobs.example")
    with pytest.raises(ConfigError):
        server.open("http://other.example")


# -- settings ---------------------------------------------------------------------------------------------------------


MALFORMED: dict[str, tuple[object, ...]] = {
    "base_url": (
        *("", "jobs.example", "ftp://jobs.example", "https://", "https://jobs.example:99999", "https://[broken"),
        *("https://bot:hidden@jobs.example", "https://jobs.example/?key=hidden", "https://jobs.example/#hidden"),
        "https://jobs.example/a b",
    ),
    "api_key": ("", "hidden", "two hidden words", "hidden\r\nX: y", "hiddén"),
    "get_path": ("v2/{id}", "//evil.example/{id}", "/v2/job", "/v2/{project}/{id}", "/v2/{id}#x"),
    "timeout": (0,),
    "connect_timeout": (-1,),
    "max_connections": (0,),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in MALFORMED.items() for value in values])
def test_malformed_settings_are_refused_and_not_quoted(name: str, value: object) -> None:
    with pytest.raises(ValidationError) as caught:
        JobApiSettings.model_validate({"base_url": "https://jobs.example", "api_key": "planted-key", name: value})
    assert "hidden" not in str(caught.value)
    assert [fault["loc"] for fault in caught.value.errors()] == [(name,)]
