"""Checks what only the app's manifest shows, by what `pagehand setup` would change in it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.app.manifest import (
    EVENTS_PATH,
    ManifestChoices,
    SlackAppRefused,
    SlackApps,
    manifest_changes,
    manifest_for,
    merge_manifest,
)
from bot.app.settings.config import CONFIGURATION_TOKEN, Config
from bot.domain.findings import Finding
from bot.errors import ChatError, ConfigError
from bot.runtime.untrusted_json import text_at
from bot.slack.sending.identity import identify

MANIFEST = "manifest"
_UNKNOWN_HOST = "https://YOUR-HOST"
_NOTHING_ARRIVES = "Nothing arrives from Slack: Socket Mode has to be on with SLACK_APP_TOKEN, and off without it."


_PARTS = (
    ("url: ", "addresses", Finding.error, "What comes to no address of Pagehand's is not seen."),
    ("bot_events: + message.channels", "events.", Finding.error, "Replies in public channels never arrive."),
    ("bot_events: + ", "events.", Finding.warning, "Without it, Pagehand does not hear of this."),
    ("settings.socket_mode_enabled", "socket_mode", Finding.error, _NOTHING_ARRIVES),
    ("settings.interactivity", "interactivity", Finding.error, "Buttons, menus, shortcuts and forms do nothing."),
    ("features.slash_commands: + ", "command", Finding.error, "Slack does not know the command of PAGEHAND_COMMAND."),
    ("features.slash_commands", "command", Finding.warning, "Mentions in a task arrive as bare words."),
    ("features.app_home", "home", Finding.warning, "People see no jobs on Home, or cannot write to Pagehand."),
    ("features.shortcuts", "shortcuts", Finding.warning, "It is not in Slack's menus, or does nothing."),
)
"""What is checked: a part of the change, the name of the check, the kind of fault, and why it matters. The first
that fits counts. Which scopes are granted is another check.
"""


async def check_manifest(client: AsyncWebClient, configuration: AsyncWebClient, config: Config) -> Sequence[Finding]:
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
        fix = f"{error} Set {CONFIGURATION_TOKEN} to it." if error.about_token else str(error)
        why = "What only the manifest shows cannot be checked."
        return [Finding.error(MANIFEST, "Slack does not show the app's manifest.", why=why, fix=fix)]
    address = "" if config.slack_app_token is not None else _address(manifest)
    choices = ManifestChoices(config.command, address)
    faults = list(manifest_faults(manifest, choices, app_id))
    return faults or [Finding.ok(MANIFEST, "The app has all that Pagehand's manifest has.")]


def manifest_faults(manifest: Mapping[str, Any], choices: ManifestChoices, app_id: str) -> Iterator[Finding]:
    """Yields what an app's manifest does not have."""
    wanted = manifest_for(choices)
    over_http = f" --http {choices.address}" if choices.address else ""
    found = defaultdict[tuple[str, Callable[..., Finding], str], list[str]](list)
    for change in manifest_changes(manifest, merge_manifest(manifest, wanted)):
        for part, check, fault, why in _PARTS:
            if part in change:
                name = check + (change.rpartition(" ")[2] if check.endswith(".") else "")
                found[name, fault, why].append(change)
                break
    for (name, fault, why), changes in found.items():
        yield fault(
            f"{MANIFEST}.{name}",
            f"This is to change in the app's manifest: {'; '.join(changes)}.",
            why=why,
            fix=f"Run `pagehand setup --app-id {app_id}{over_http}`, which does it with a configuration token. Or "
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
