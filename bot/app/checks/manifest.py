"""Checks what only the app's manifest shows, by what `pagehand setup` would change in it."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from slack_sdk.web.async_client import AsyncWebClient

from bot.app.settings.config import CONFIGURATION_TOKEN
from bot.app.settings.features import Feature
from bot.app.setup.manifest import EVENTS_PATH, ManifestChoices, manifest_changes, manifest_for, merge_manifest
from bot.app.setup.slack_apps import SlackAppRefused, SlackApps
from bot.domain.findings import Finding
from bot.errors import ChatError, ConfigError
from bot.runtime.json_fields import text_at
from bot.slack.sending.identity import identify

MANIFEST = "manifest"
_UNKNOWN_HOST = "https://YOUR-HOST"


class _Part(NamedTuple):
    """A part of the manifest: the changes to it, the name of its check, the kind of fault, and why it matters."""

    changes: re.Pattern[str]
    check: str
    fault: Callable[..., Finding]
    why: str


_PARTS = (
    _Part(re.compile("url: "), "addresses", Finding.error, "What comes to no address of Pagehand's is not seen."),
    _Part(
        re.compile(r"bot_events: \+ (?=message\.channels)"),
        "events.",
        Finding.error,
        "Without it, replies in public channels never arrive.",
    ),
    _Part(re.compile(r"bot_events: \+ "), "events.", Finding.warning, "Without it, Pagehand does not hear of this."),
    _Part(
        re.compile(r"^settings\.socket_mode_enabled"),
        "socket_mode",
        Finding.error,
        "Nothing that people do in Slack arrives: Socket Mode has to be on with SLACK_APP_TOKEN, and off without it.",
    ),
    _Part(
        re.compile(r"^settings\.interactivity"),
        "interactivity",
        Finding.error,
        "Buttons, menus, shortcuts and forms do nothing.",
    ),
    _Part(
        re.compile(r"^features\.slash_commands: \+ "),
        "command",
        Finding.error,
        "Slack does not know the command of PAGEHAND_COMMAND (/docs if it is not set).",
    ),
    _Part(
        re.compile(r"^features\.slash_commands"), "command", Finding.warning, "Mentions in a task arrive as bare words."
    ),
    _Part(
        re.compile(r"^features\.app_home"),
        "home",
        Finding.warning,
        "People see no jobs on Home, or cannot write to Pagehand.",
    ),
    _Part(
        re.compile(r"^features\.shortcuts"),
        "shortcuts",
        Finding.warning,
        "It is not in Slack's menus, or does nothing.",
    ),
)
"""What is checked: the first that matches a change. Which scopes are granted is another check."""


async def check_manifest(
    client: AsyncWebClient,
    configuration: AsyncWebClient,
    *,
    command: str,
    by_socket: bool,
    without: Collection[Feature],
) -> Sequence[Finding]:
    """Reads the app's manifest, and compares it with Pagehand's own. `configuration` is a client with a configuration
    token, `client` one with the bot's token, which identifies the app.
    """
    try:
        app_id = (await identify(client)).app_id
    except ChatError as error:
        return [Finding.not_checked(MANIFEST, f"Slack does not say which app this is ({error.reason}).")]
    if not app_id:
        return [Finding.not_checked(MANIFEST, "Slack does not say which app this is: the scope users:read is missing.")]
    try:
        manifest = await SlackApps(configuration).manifest_of(app_id)
    except SlackAppRefused as error:
        fix = f"{error} Give it as --configuration-token or {CONFIGURATION_TOKEN}." if error.about_token else str(error)
        why = "What only the manifest shows cannot be checked."
        return [Finding.error(MANIFEST, "Slack does not show the app's manifest.", why=why, fix=fix)]
    choices = ManifestChoices(command, "" if by_socket else _address(manifest), frozenset(without))
    faults = list(manifest_faults(manifest, choices, app_id))
    return faults or [Finding.ok(MANIFEST, "The app has all that Pagehand's manifest has.")]


def manifest_faults(manifest: Mapping[str, Any], choices: ManifestChoices, app_id: str) -> Iterator[Finding]:
    """Yields what an app's manifest does not have."""
    wanted = manifest_for(choices)
    over_http = f" --http {choices.address}" if choices.address else ""
    found = defaultdict[tuple[str, _Part], list[str]](list)
    for change in manifest_changes(manifest, merge_manifest(manifest, wanted)):
        for part in _PARTS:
            if matched := part.changes.search(change):
                name = part.check + (change[matched.end() :] if part.check.endswith(".") else "")
                found[name, part].append(change)
                break
    for (name, part), changes in found.items():
        yield part.fault(
            f"{MANIFEST}.{name}",
            f"This is to change in the app's manifest: {'; '.join(changes)}.",
            why=part.why,
            fix=f"Run `pagehand setup --app-id {app_id} --configuration-token-file FILE{over_http}`, which does it. Or "
            f"change it at https://api.slack.com/apps/{app_id}, under App Manifest, and reinstall the app.",
        )


def _address(manifest: Mapping[str, Any]) -> str:
    """Returns the address to which Slack sends events, if it can be right."""
    address = text_at(manifest, "settings", "event_subscriptions", "request_url")
    try:
        ManifestChoices(address=address)
    except ConfigError:
        return _UNKNOWN_HOST
    return address if address.endswith(EVENTS_PATH) else _UNKNOWN_HOST
