"""What a person has who installs Pagehand: a Slack workspace with the app of the printed manifest, and a job API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import yaml
from support.servers.fake_job_api import FakeJobApiServer

from bot.app.manifest import ManifestChoices, manifest_text
from bot.workspace import Credentials, WorkspaceServer
from bot.workspace.model.app_config import AppConfig

SIGNING_SECRET = "planted-signing-secret-of-the-app"
_PULL_REQUEST = "https://git.example/docs/pull/"
"""The prefix of the job API's pull request links."""


@dataclass(frozen=True)
class NewUser:
    """Each job completes with a pull request."""

    workspace: WorkspaceServer
    job_api: FakeJobApiServer

    async def gets_a_job_done(self, prompt: str, patience: float) -> None:
        """Asks for a job with the slash command, and waits for its pull request in the thread."""
        people, channels = self.workspace.people, self.workspace.channels
        known = {message.ts for message in channels.messages("docs")}
        await people["ana"].command("docs", "/docs", prompt)

        def announced() -> bool:
            threads = (channels.thread("docs", card.ts) for card in channels.messages("docs") if card.ts not in known)
            return any(_PULL_REQUEST in message.text for thread in threads for message in thread[1:])

        await self.workspace.changes.wait_for(announced, patience)
        assert self.job_api.job_of(prompt)


@asynccontextmanager
async def new_user(address: str = "", ack_timeout: float = 3.0) -> AsyncIterator[NewUser]:
    """The workspace delivers to `address` over HTTP; if it is empty, over Socket Mode."""
    app = AppConfig.from_manifest(yaml.safe_load(manifest_text(ManifestChoices(address=address))))
    workspace = WorkspaceServer(app, credentials=Credentials(signing_secret=SIGNING_SECRET), ack_timeout=ack_timeout)
    job_api = FakeJobApiServer()
    job_api.autopilot()
    await job_api.start()
    await workspace.start()
    try:
        yield NewUser(workspace, job_api)
    finally:
        await workspace.stop()
        await job_api.stop()
