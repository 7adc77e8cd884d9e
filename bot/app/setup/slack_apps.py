"""Creates and updates the app in Slack through `apps.manifest.*`, with a configuration token that is never kept."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.app.setup.manifest import Manifest, manifest_changes, merge_manifest, scopes_of
from bot.errors import ChatError, PagehandError
from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.runtime.text import printable_line
from bot.slack.sending.web_api import chat_error_from

_LONGEST = 300
_GENERATE = (
    "At https://api.slack.com/apps, under Your App Configuration Tokens, click Generate Token, choose the workspace, "
    "and copy the Access Token (xoxe.xoxp-…). It is good for 12 hours."
)
_MEANINGS = {
    "invalid_app_id": "Slack knows no app with this id that the configuration token's owner may manage. The id is "
    "under Basic Information, App ID.",
    "no_permission": "The configuration token's owner may not manage this app: ask one of its collaborators.",
    "app_not_eligible": "This app cannot be configured by a manifest.",
}


class SlackAppRefused(PagehandError):
    """Slack did not create or change the app; the message says why, and what to do.

    `about_token`: another token may do.
    """

    def __init__(self, message: str, *, about_token: bool = False) -> None:
        self.about_token = about_token
        super().__init__(message)


@dataclass(frozen=True)
class CreatedApp:
    """An app that Slack has just created."""

    app_id: str
    signing_secret: str = field(repr=False)


@dataclass(frozen=True)
class ManifestUpdate:
    """An update that was not applied yet. `changes` describes it, a line each; `adds_scopes`: it needs a reinstall."""

    manifest: Manifest
    changes: tuple[str, ...]
    adds_scopes: bool


def configuration_token_fault(token: str) -> str:
    """Returns what is wrong with the form of a configuration token; empty if nothing is."""
    if token.startswith("xoxe.xoxp-"):
        return ""
    if token.startswith("xoxe-"):
        return f"This is the Refresh Token. {_GENERATE}"
    return f"This is not a configuration token (xoxe.xoxp-…). {_GENERATE}"


class SlackApps:
    """The apps that a configuration token can manage. `client` calls with that token. Each method raises
    SlackAppRefused.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client

    async def create(self, manifest: Mapping[str, Any]) -> CreatedApp:
        """Creates an app. It still has to be installed."""
        await self._call("apps.manifest.validate", manifest=json.dumps(manifest))
        answer = await self._call("apps.manifest.create", manifest=json.dumps(manifest))
        return CreatedApp(text_at(answer, "app_id"), text_at(answer, "credentials", "signing_secret"))

    async def manifest_of(self, app_id: str) -> Manifest:
        """Returns an app's manifest."""
        return object_at(await self._call("apps.manifest.export", app_id=app_id), "manifest")

    async def plan_update(self, app_id: str, wanted: Mapping[str, Any]) -> ManifestUpdate:
        """Compares an app with what is wanted, and changes nothing."""
        existing = await self.manifest_of(app_id)
        merged = merge_manifest(existing, wanted)
        adds_scopes = not scopes_of(merged) <= scopes_of(existing)
        return ManifestUpdate(merged, tuple(manifest_changes(existing, merged)), adds_scopes)

    async def update(self, app_id: str, update: ManifestUpdate) -> bool:
        """Applies an update. Returns whether the app has to be reinstalled."""
        manifest = json.dumps(update.manifest)
        await self._call("apps.manifest.validate", manifest=manifest, app_id=app_id)
        answer = await self._call("apps.manifest.update", manifest=manifest, app_id=app_id)
        return update.adds_scopes or answer.get("permissions_updated") is True

    async def _call(self, method: str, **arguments: str) -> Mapping[str, Any]:
        try:
            # In the body: slack-sdk's own methods put the manifest into the URL, where long ones are refused.
            response = await self._client.api_call(method, json=arguments)
        except SlackApiError as error:
            raise _refusal(error, method) from None
        except Exception as error:  # noqa: BLE001 - every library error is translated
            raise _unreachable(chat_error_from(error)) from None
        return response.data if isinstance(response.data, dict) else {}


def _refusal(error: SlackApiError, method: str) -> SlackAppRefused:
    data = error.response.data if isinstance(error.response.data, dict) else {}
    code = printable_line(text_at(data, "error"), 60) or "no reason given"
    problems = [
        f"  {printable_line(text_at(each, 'pointer'), _LONGEST)}: {printable_line(text_at(each, 'message'), _LONGEST)}"
        for each in objects_at(data, "errors")
    ]
    if problems:
        return SlackAppRefused("\n".join([f"Slack does not accept the manifest ({code}):", *problems]))
    if code in _MEANINGS:
        return SlackAppRefused(f"{_MEANINGS[code]} ({code})")
    if code in {"invalid_auth", "not_authed", "not_allowed_token_type", "token_expired", "token_revoked"}:
        return SlackAppRefused(f"Slack does not accept the configuration token ({code}). {_GENERATE}", about_token=True)
    return SlackAppRefused(f"Slack refuses {method} ({code}).")


def _unreachable(error: ChatError) -> SlackAppRefused:
    return SlackAppRefused(
        f"Slack cannot be reached, or does not answer ({error.reason}). Look at this machine's network and its proxy "
        "(HTTPS_PROXY), and run this again."
    )
