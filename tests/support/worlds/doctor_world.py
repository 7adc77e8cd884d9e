"""A set-up for `pagehand doctor` to examine: the real workspace, a job API over HTTP, and a database."""

import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from support.servers.fake_job_api import KEY, PROJECT, FakeJobApiServer
from support.servers.slack_faults import FaultyWorkspace

from bot.app.checks.whole import Check, examine
from bot.cli.doctor import in_json
from bot.domain.findings import Finding, LastTime
from bot.store.store import open_store
from bot.workspace.model.app_config import AppConfig

SIGNING_SECRET = "planted-signing-secret-of-the-app"
REQUEST_URL = "https://docs.example.org/slack/events"


@dataclass
class Setup:
    """A set-up to be examined."""

    workspace: FaultyWorkspace
    job_api: FakeJobApiServer
    environ: dict[str, str]
    skew: float = 0.0
    found: dict[str, Finding] = field(default_factory=dict)

    async def examine(self, **settings: str) -> dict[str, Finding]:
        """Returns the findings by check; none of them may contain a secret."""
        credentials = self.workspace.credentials
        environ = {name: value for name, value in (self.environ | settings).items() if value}
        findings = await examine(
            environ,
            configuration_token=credentials.configuration_token,
            now=lambda: time.time() + self.skew,
        )
        text = in_json(findings)
        secrets = (credentials.bot_token, credentials.app_token, credentials.configuration_token, KEY, SIGNING_SECRET)
        given = [value for name, value in settings.items() if value and name.endswith(("TOKEN", "SECRET", "KEY"))]
        assert not [secret for secret in (*secrets, *given) if secret in text]
        self.found = {finding.check: finding for finding in findings}
        assert len(self.found) == len(findings), "each check has a name of its own"
        return self.found

    async def faults(self, **settings: str) -> dict[str, Finding]:
        return {check: finding for check, finding in (await self.examine(**settings)).items() if finding.is_fault}

    async def fault(self, check: str, **settings: str) -> Finding:
        """Returns the only fault."""
        faults = await self.faults(**settings)
        assert list(faults) == [check]
        assert faults[check].why
        assert faults[check].fix
        return faults[check]


@asynccontextmanager
async def set_up(app: AppConfig, database: str) -> AsyncIterator[Setup]:
    workspace, job_api = FaultyWorkspace(app), FakeJobApiServer()
    await workspace.start()
    await job_api.start()
    environ = {
        "SLACK_BOT_TOKEN": workspace.credentials.bot_token,
        "SLACK_APP_TOKEN": workspace.credentials.app_token,
        "SLACK_API_URL": workspace.api_url,
        "JOB_API_URL": job_api.url,
        "JOB_API_KEY": KEY,
        "JOB_API_PROJECT": PROJECT,
        "JOB_API_CANCEL": "true",
        "JOB_API_FILES": "true",
        "DATABASE_URL": database,
    }
    yield Setup(workspace, job_api, environ)
    await job_api.stop()
    await workspace.stop()


async def note(database: str, *kinds: LastTime) -> None:
    store = await open_store(database)
    await store.transact(lambda tx: tx.condition.note_last_times(kinds))
    await store.close()


def hurried(checks: Iterable[Check]) -> list[Check]:
    return [replace(check, limit=0.2) for check in checks]
