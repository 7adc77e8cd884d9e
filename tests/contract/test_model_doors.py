"""A program in the sandbox and its model: by the relay, with a worthless key, and nothing of the real one in reach."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.servers.relayed_model import KEY, Upstream, upstream_server
from support.worlds.hostile_world import PYTHON, findings, hostile_world, needs_bubblewrap

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


async def test_a_command_asks_its_model_without_ever_holding_the_key(tmp_path: Path, upstream: Upstream) -> None:
    """Not in a file, its environment, an argument or anything else that it can read."""
    program = ASK + SEARCH + 'attempt("asked", lambda: ask("/v1/messages"))\nreport()'
    async with hostile_world(tmp_path, program, "{model_url}", **model(upstream)) as world:
        found = await findings(world)
    assert found["asked"] == str((200, '{"ok": true}'))
    assert (found["places"], found["environment"]) == ("[]", "[]")
    assert [request.headers["x-api-key"] for request, _ in upstream.asked] == [KEY]


async def test_what_the_relay_refuses_is_told_to_the_program_and_to_people(tmp_path: Path, upstream: Upstream) -> None:
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


async def test_checks_have_no_way_to_the_model(tmp_path: Path, upstream: Upstream) -> None:
    """A command of the repository's runs what the change brought in."""
    check = (PYTHON, "-c", "import socket; socket.create_connection(('127.0.0.1', 8701), 5)")
    async with hostile_world(tmp_path, "report()", **model(upstream, checks=(check,))) as world:
        job = await world.done("go")
    results = {result["name"]: result["status"] for result in job["details"]["pullRequest"]["checks"]}
    assert "failed" in results.values()
    assert not upstream.asked
