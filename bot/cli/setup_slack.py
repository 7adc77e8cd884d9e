"""The steps in Slack: the app, its tokens and its scopes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.app.checks.slack import SCOPES, app_id_of
from bot.app.checks.whole import examine_part
from bot.app.manifest import (
    ManifestChoices,
    SlackAppRefused,
    SlackApps,
    configuration_token_fault,
    manifest_for,
    manifest_text,
    scopes_of,
)
from bot.cli.setup_dialogue import Answers, Dialogue, SetupStopped
from bot.domain.findings import Finding, FindingStatus
from bot.slack.sending.web_api import SlackClient, new_session

T = TypeVar("T")
_APPS = "https://api.slack.com/apps"
_DEFAULT_API = "https://slack.com/api"
APP_ID = "SLACK_APP_ID"
"""Only setup reads it, so that an app that it created is not created again."""


@dataclass
class SlackSteps:
    """Sets up the app in Slack. Each step raises SetupStopped.

    Attributes:
        dialogue: Asks.
        answers: The bot's variables.
        choices: What the manifest is for.
        app_id: The app's id, once it is known.
    """

    dialogue: Dialogue
    answers: Answers
    choices: ManifestChoices
    app_id: str = ""

    def prepare_app(self, configuration_token: str) -> None:
        """Creates or updates the app with a configuration token, or says how to create it by hand."""
        bot_token = self.answers.get("SLACK_BOT_TOKEN")
        self.app_id = self.app_id or self._app_of(bot_token) or self.answers.get(APP_ID)
        if bot_token and not configuration_token:
            return
        self.dialogue.head("The app")
        self.dialogue.hide(configuration_token)
        token = configuration_token or self._ask_for_configuration_token()
        while token:
            try:
                self._with_token(token)
            except SlackAppRefused as error:
                if not error.about_token:
                    raise SetupStopped(f"{error}{self._about_kept_id}") from None
                self.dialogue.say(str(error))
                if self.dialogue.no_input:
                    raise SetupStopped("Set another PAGEHAND_CONFIGURATION_TOKEN, or none.") from None
                token = self._ask_for_configuration_token()
            else:
                return
        if self.app_id:
            self.dialogue.say(f"The app {self.app_id} stays as it is.")
        elif not self.dialogue.no_input:
            self.dialogue.say(manifest_text(self.choices))
            self.dialogue.say(
                f"At {_APPS}: click Create New App, From a manifest, choose the workspace, paste the lines above in "
                "the tab YAML (`pagehand manifest` prints them again), and click Next and Create."
            )
            self.dialogue.confirm("Done?")

    def install_app(self) -> None:
        """Asks for the bot token, and checks it and what was granted."""
        where = f"{self._page}, Install App"
        how = f"At {where}: click Install to Workspace and Allow, and copy the Bot User OAuth Token."
        token = self._ask_secret("SLACK_BOT_TOKEN", "bot token", "xoxb-…", how, "slack")
        while missing := self._missing_scopes(token):
            self.dialogue.show(missing)
            self.dialogue.say(
                f"At {where}, click Reinstall to Workspace: Slack grants scopes at each installation only."
            )
            if not self.dialogue.confirm("Look again?"):
                break
        if any(finding.status is FindingStatus.ERROR for finding in missing):
            raise SetupStopped("Pagehand does not start without these scopes. Reinstall the app, and run this again.")

    def receive(self) -> None:
        """Asks for what Slack's requests come with: the app-level token, or the signing secret."""
        if self.choices.address:
            if self.answers.get("SLACK_APP_TOKEN"):
                self.answers.keep("SLACK_APP_TOKEN", "")  # with it, Pagehand would use Socket Mode
            how = f"It is at {self._page}, Basic Information, App Credentials, Signing Secret."
            self._ask_secret("SLACK_SIGNING_SECRET", "signing secret", "", how, "slack.signing_secret")
            return
        how = (
            f"At {self._page}, Basic Information, App-Level Tokens: click Generate Token and Scopes, add the scope "
            "connections:write, click Generate, and copy the token."
        )
        self._ask_secret("SLACK_APP_TOKEN", "app-level token", "xapp-…", how, "slack.app_token")

    def _app_of(self, bot_token: str) -> str:
        """Returns the id of a token's app; empty if there is no token, or Slack does not say."""
        return self._run(lambda session: app_id_of(self._client(bot_token, session))) if bot_token else ""

    @property
    def _page(self) -> str:
        return f"{_APPS}/{self.app_id}" if self.app_id else f"{_APPS} (choose your app)"

    def _ask_for_configuration_token(self) -> str:
        self.dialogue.say(
            f"With a configuration token, this {'updates' if self.app_id else 'creates'} the app for you. At {_APPS}, "
            "under Your App Configuration Tokens, click Generate Token, and copy the Access Token. It is not kept."
        )
        return self.dialogue.ask(
            "Configuration token (empty: by hand)",
            instead="set PAGEHAND_CONFIGURATION_TOKEN",
            default="",
            is_secret=True,
        )

    @property
    def _about_kept_id(self) -> str:
        kept = self.app_id and self.app_id == self.answers.get(APP_ID)
        return f" Its id is {APP_ID}, which setup kept: remove that for another app." if kept else ""

    def _with_token(self, token: str) -> None:
        if fault := configuration_token_fault(token):
            raise SlackAppRefused(fault, about_token=True)
        wanted = manifest_for(self.choices)
        if not self.app_id:
            self.app_id, secret = self._manage(token, lambda apps: apps.create(wanted))
            self.dialogue.say(f"Slack created the app {self.app_id}: {self._page}")
            self.answers.keep(APP_ID, self.app_id)
            if self.choices.address and secret:
                self.dialogue.hide(secret)
                self.answers.keep("SLACK_SIGNING_SECRET", secret)
            return
        manifest, changes = self._manage(token, lambda apps: apps.plan_update(self.app_id, wanted))
        if not changes:
            self.dialogue.say(f"The app {self.app_id} has all that Pagehand needs.")
            return
        self.dialogue.say("\n  ".join([f"This changes in the app {self.app_id}:", *changes]))
        if not self.dialogue.confirm("Change it?", without_input=True):
            return
        if self._manage(token, lambda apps: apps.update(self.app_id, manifest)):
            self.dialogue.say(
                f"Slack grants new scopes only when the app is installed again: {self._page}, Install App, "
                "Reinstall to Workspace."
            )

    def _ask_secret(self, name: str, what: str, like: str, how: str, check: str) -> str:
        """Asks for a secret until its check finds no error, and keeps it. `how` says where it is."""
        given = self.answers.get(name)
        self.dialogue.hide(given)
        self.dialogue.head(f"The {what}")
        if not given:
            self.dialogue.say(how)

        def ask(refused: str | None) -> str:
            question = f"{what.capitalize()}{f' ({like})' if like else ''}"
            return (given if refused is None else "") or self.dialogue.ask(
                question, instead=f"set {name} or {name}_FILE", is_secret=True
            )

        def checked(value: str) -> Sequence[Finding]:
            """Leaves missing scopes out: they are another step."""
            findings = asyncio.run(examine_part(self.answers.values | {name: value}, check))
            return [finding for finding in findings if not finding.check.startswith(f"{SCOPES}.")]

        secret = self.dialogue.until_right(ask, checked)
        self.answers.keep(name, secret)
        return secret

    def _missing_scopes(self, token: str) -> list[Finding]:
        """Returns a finding for each scope that the manifest requests and Slack has not granted."""
        wanted = scopes_of(manifest_for(self.choices))
        findings = asyncio.run(examine_part(self.answers.values | {"SLACK_BOT_TOKEN": token}, "slack"))
        missing = (each for each in findings if each.check.removeprefix(f"{SCOPES}.") in wanted)
        return [finding for finding in missing if finding.is_fault]

    def _client(self, token: str, session: aiohttp.ClientSession) -> AsyncWebClient:
        return SlackClient(token, session, base_url=f"{self.answers.get('SLACK_API_URL').rstrip('/') or _DEFAULT_API}/")

    def _manage(self, token: str, work: Callable[[SlackApps], Awaitable[T]]) -> T:
        return self._run(lambda session: work(SlackApps(self._client(token, session))))

    @staticmethod
    def _run(work: Callable[[aiohttp.ClientSession], Awaitable[T]]) -> T:
        async def in_session() -> T:
            async with new_session() as session:
                return await work(session)

        return asyncio.run(in_session())
