"""A job in the image of the job server: its coding agent works in its sandbox, with a model that follows a script.

`.ci/deploy image` runs this inside the image, as its user: `PYTHONPATH=tests python3 -m support.agent_image_job`. The
agent is Claude Code, which the image has by default.
"""

import asyncio
import json
import os
import secrets
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.servers.free_ports import free_port
from support.servers.model_script import Say, WriteFile
from support.servers.model_server import ModelServer

from bot.jobserver.repository.sample import make_sample_repository
from bot.jobserver.sandbox.bubblewrap import COPY

KEY = secrets.token_hex(16)
PAGE = "docs/new-page.md"
START_S, JOB_S = 60.0, 180.0


def settings(folder: Path, port: int, model_url: str) -> Mapping[str, str]:
    """What an operator would set; the rest is the image's."""
    return {
        "PAGEHAND_JOBSERVER_REPOSITORY": str(make_sample_repository(folder)),
        "PAGEHAND_JOBSERVER_API_KEY": KEY,
        "PAGEHAND_JOBSERVER_PORT": str(port),
        "PAGEHAND_JOBSERVER_AGENT": "claude",
        "PAGEHAND_JOBSERVER_MODEL": "opus",
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "planted-key-of-the-model",
    }


def call(url: str, body: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Calls the job server: POST with a body, GET without."""
    content = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, content, headers), timeout=10) as answer:  # noqa: S310 - loopback
        found: dict[str, Any] = json.load(answer)
    return found


def do_job(url: str) -> dict[str, Any]:
    """Waits for the server, and returns the job when it has ended."""
    until = time.monotonic() + START_S
    while True:
        try:
            call(f"{url}/health")
            break
        except urllib.error.URLError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
    jobs = f"{url}/v2/agent/docs/job"
    job = call(jobs, {"prompt": "Add the new page"})
    until = time.monotonic() + JOB_S
    while job["status"] == "active" and time.monotonic() < until:
        time.sleep(0.5)
        job = call(f"{jobs}/{job['id']}")
    return job


async def main() -> None:
    """Runs one job, and exits with an error unless the agent's page is in its pull request."""
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer().running() as model:
            model.script.on("Add the new page", WriteFile(str(COPY / PAGE), "# New page\n"), Say("I added the page."))
            port = free_port()
            environment = os.environ | settings(Path(folder), port, model.url)
            server = await asyncio.create_subprocess_exec("pagehand", "jobserver", env=environment, cwd=folder)
            try:
                job = await asyncio.to_thread(do_job, f"http://127.0.0.1:{port}")
            finally:
                server.terminate()
                await server.wait()
    details = job["details"] or {}
    if job["status"] != "completed" or not job["prLink"] or details["summary"] != "I added the page.":
        raise SystemExit(f"The job failed: {json.dumps(job)}")
    words = f"The agent's job is done, as user {os.getuid()}, in the sandbox: {details['changes']}"
    print(words)  # noqa: T201 - for whoever runs the script


if __name__ == "__main__":
    asyncio.run(main())
