"""The Slack app's manifest: manifest.yml, changed for a mode and a command; merged with an app's own,
and sent to Slack through `apps.manifest.*` with a configuration token that is never kept.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.errors import ConfigError, PagehandError
from bot.runtime.http.proxies import is_this_machine
from bot.runtime.text import printable_line
from bot.runtime.untrusted_json import object_at, objects_at, text_at
from bot.slack.sending.web_api import chat_error_from

Manifest = dict[str, Any]
_LONGEST = 120
EVENTS_PATH = "/slack/events"
_COMMAND = re.compile(r"/[\w.-]{1,31}")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+[A-Za-z0-9/._~-]*")


@dataclass(frozen=True)
class ManifestChoices:
    """What a manifest is for.

    Attributes:
        command: The slash command.
        address: Where Slack sends signed HTTP requests: `https://host`, or the whole request URL. Empty: Socket Mode.
    """

    command: str = "/docs"
    address: str = ""

    def __post_init__(self) -> None:
        form = "a slash and one word of at most 31 letters, digits, dots, hyphens and underscores"
        faults = [] if _COMMAND.fullmatch(self.command) else [f"the command must be {form}"]
        faults += _address_faults(self.address)
        if faults:
            raise ConfigError(faults)

    @property
    def request_url(self) -> str:
        """The URL for all that Slack sends; empty with Socket Mode."""
        address = self.address.rstrip("/")
        return address if not address or address.endswith(EVENTS_PATH) else f"{address}{EVENTS_PATH}"


def manifest_text(choices: ManifestChoices) -> str:
    """Returns the manifest in YAML; by default manifest.yml to the letter."""
    if choices == ManifestChoices():
        return template()
    return yaml.safe_dump(manifest_for(choices), sort_keys=False, allow_unicode=True, width=1000)


def manifest_for(choices: ManifestChoices) -> dict[str, Any]:
    """Returns the manifest."""
    manifest: dict[str, Any] = yaml.safe_load(template())
    settings, (command,), url = manifest["settings"], manifest["features"]["slash_commands"], choices.request_url
    events = settings["event_subscriptions"]
    command["command"] = choices.command
    if url:
        command["url"] = events["request_url"] = settings["interactivity"]["request_url"] = url
        settings["socket_mode_enabled"] = False
    return manifest


def template() -> str:
    """Returns manifest.yml: the package's own or, in a checkout, the one at the top level."""
    packaged = files("bot") / "manifest.yml"
    path = packaged if packaged.is_file() else Path(__file__).parents[2] / "manifest.yml"
    return path.read_text(encoding="utf-8")


def _address_faults(address: str) -> list[str]:
    if not address:
        return []
    if not _URL.fullmatch(address) or not urlsplit(address).hostname:
        return ["the address must be a URL like https://pagehand.example.org, without ? and #"]
    if urlsplit(address).scheme != "https" and not is_this_machine(urlsplit(address).hostname or ""):
        return ["the address must begin with https://: Slack sends to no other"]
    return []


_OURS = frozenset({"app_home", "interactivity", "request_url", "should_escape", "socket_mode_enabled", "url"})
"""What Pagehand cannot do without, so that an app's own values are replaced."""


def merge_manifest(existing: Mapping[str, Any], wanted: Mapping[str, Any]) -> Manifest:
    """Returns the existing manifest with all that is wanted.

    Names, descriptions, colors, further scopes, events, commands and redirect URLs stay as they are; so does a scope
    that is required.
    """
    merged = _merged(existing, wanted)
    scopes, old = merged["oauth_config"]["scopes"], object_at(object_at(existing, "oauth_config"), "scopes")
    required = set(_texts(old.get("bot"))) - set(_texts(old.get("bot_optional")))
    optional = [scope for scope in scopes.pop("bot_optional", ()) if scope not in required]
    if optional:
        scopes["bot_optional"] = optional
    return merged


def _merged(existing: Mapping[str, Any], wanted: Mapping[str, Any], *, is_ours: bool = False) -> Manifest:
    merged = dict(existing)
    for key, value in wanted.items():
        match value:
            case dict():
                merged[key] = _merged(object_at(existing, key), value, is_ours=key in _OURS)
            case [{}, *_]:
                merged[key] = _entries(objects_at(existing, key), value)
            case list():
                merged[key] = list(dict.fromkeys((*_texts(existing.get(key)), *value)))
            case _ if is_ours or key in _OURS or key not in merged:
                merged[key] = value
    return merged


def _entries(existing: Sequence[Manifest], wanted: Sequence[Manifest]) -> list[Manifest]:
    """Returns the commands or shortcuts."""
    by_name = {text_at(entry, "command") or text_at(entry, "callback_id"): entry for entry in existing}
    for entry in wanted:
        name = entry.get("command") or entry["callback_id"]
        by_name[name] = _merged(by_name.get(name, {}), entry)
    return list(by_name.values())


def manifest_changes(before: Mapping[str, Any], after: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yields a line for each difference: what is added, removed or changed, and where."""
    for key in dict.fromkeys((*before, *after)):
        old, new, place = before.get(key), after.get(key), f"{path}{key}"
        if isinstance(new, dict):
            yield from manifest_changes(old if isinstance(old, dict) else {}, new, f"{place}.")
        elif isinstance(new, list):
            yield from _list_changes(old if isinstance(old, list) else [], new, place)
        elif old != new:
            yield f"{place}: {_shown(new)}" if old is None else f"{place}: {_shown(old)} -> {_shown(new)}"


def scopes_of(manifest: Mapping[str, Any]) -> frozenset[str]:
    """Returns the bot scopes that a manifest requests."""
    return frozenset(_texts(object_at(object_at(manifest, "oauth_config"), "scopes").get("bot")))


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _list_changes(old: list[Any], new: list[Any], place: str) -> Iterator[str]:
    before, after = ({_shown(item): item for item in items} for items in (old, new))
    yield from (f"{place}: + {name}" for name in after if name not in before)
    yield from (f"{place}: - {name}" for name in before if name not in after)
    for name in after:
        if name in before and isinstance(after[name], dict):
            yield from manifest_changes(before[name], after[name], f"{place}.{name}.")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("command") or value.get("name") or value
    return printable_line(str(value).lower() if isinstance(value, bool) else str(value), _LONGEST)


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

    async def create(self, manifest: Mapping[str, Any]) -> tuple[str, str]:
        """Creates an app, which still has to be installed, and returns its id and its signing secret."""
        await self._call("apps.manifest.validate", manifest=json.dumps(manifest))
        answer = await self._call("apps.manifest.create", manifest=json.dumps(manifest))
        return text_at(answer, "app_id"), text_at(answer, "credentials", "signing_secret")

    async def manifest_of(self, app_id: str) -> Manifest:
        """Returns an app's manifest."""
        return object_at(await self._call("apps.manifest.export", app_id=app_id), "manifest")

    async def plan_update(self, app_id: str, wanted: Mapping[str, Any]) -> tuple[Manifest, Sequence[str]]:
        """Returns what an app's manifest would be with all that is wanted, and a line for each change."""
        existing = await self.manifest_of(app_id)
        merged = merge_manifest(existing, wanted)
        return merged, list(manifest_changes(existing, merged))

    async def update(self, app_id: str, manifest: Manifest) -> bool:
        """Changes an app. Returns whether it has to be reinstalled."""
        changed = json.dumps(manifest)
        await self._call("apps.manifest.validate", manifest=changed, app_id=app_id)
        answer = await self._call("apps.manifest.update", manifest=changed, app_id=app_id)
        return answer.get("permissions_updated") is True

    async def _call(self, method: str, **arguments: str) -> Mapping[str, Any]:
        try:
            # In the body: slack-sdk's own methods put the manifest into the URL, where long ones are refused.
            response = await self._client.api_call(method, json=arguments)
        except SlackApiError as error:
            raise _refusal(error, method) from None
        except Exception as error:  # noqa: BLE001 - every library error is translated
            reason = chat_error_from(error).reason
            raise SlackAppRefused(
                f"Slack cannot be reached, or does not answer ({reason}). Look at this machine's network and its proxy "
                "(HTTPS_PROXY), and run this again."
            ) from None
        return response.data if isinstance(response.data, dict) else {}


def _refusal(error: SlackApiError, method: str) -> SlackAppRefused:
    data = error.response.data if isinstance(error.response.data, dict) else {}
    code = printable_line(text_at(data, "error"), 60) or "no reason given"
    problems = [
        f"  {printable_line(text_at(each, 'pointer') + ': ' + text_at(each, 'message'), 300)}"
        for each in objects_at(data, "errors")
    ]
    if problems:
        return SlackAppRefused("\n".join([f"Slack does not accept the manifest ({code}):", *problems]))
    if code in _MEANINGS:
        return SlackAppRefused(f"{_MEANINGS[code]} ({code})")
    if code in {"invalid_auth", "not_authed", "not_allowed_token_type", "token_expired", "token_revoked"}:
        return SlackAppRefused(f"Slack does not accept the configuration token ({code}). {_GENERATE}", about_token=True)
    return SlackAppRefused(f"Slack refuses {method} ({code}).")
