"""Checks what only the app's manifest shows: what Slack sends to it, where to, and what people see of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.app.settings.config import CONFIGURATION_TOKEN
from bot.domain.findings import Finding
from bot.errors import ChatError, ChatNotAllowed, ChatRejected
from bot.runtime.json_fields import object_at, objects_at, text_at
from bot.runtime.text import printable_line
from bot.slack.receiving.listeners.shortcuts import HAND_TO_PAGEHAND, NEW_TASK
from bot.slack.sending.identity import identify
from bot.slack.sending.web_api import call

MANIFEST = "manifest"
NEEDED_EVENTS: Mapping[str, str] = {
    "app_home_opened": "nobody's Home shows anything",
    "app_mention": "a mention of Pagehand is heard only where it hears all messages",
    "channel_id_changed": "the jobs of a channel whose id Slack changes are lost sight of",
    "member_joined_channel": "Pagehand does not introduce itself where it is invited",
    "message.channels": "replies in public channels never arrive",
    "message.groups": "replies in private channels never arrive",
    "message.im": "direct messages start no jobs, and replies there are not heard",
    "reaction_added": "a :x: on a card stops nothing (its button and !stop do)",
}
"""The events that the app has to subscribe to, with the effect of each one missing; manifest.yml has the same."""
_REQUIRED_EVENTS = frozenset({"message.channels"})
_PAGE = "At api.slack.com/apps, choose your app and then {page}: {what}."


@dataclass(frozen=True)
class Receiving:
    """How this instance receives from Slack. `command` is the slash command's name; `left_out` are events that the app
    does without on purpose.
    """

    command: str
    by_socket: bool
    left_out: frozenset[str] = frozenset()


async def check_manifest(
    client: AsyncWebClient, configuration: AsyncWebClient, receiving: Receiving
) -> Sequence[Finding]:
    """Reads the app's manifest, and compares it with what Pagehand needs. `configuration` is a client with a
    configuration token, `client` one with the bot's token, which identifies the app.
    """
    try:
        app_id = (await identify(client)).app_id
    except ChatError as error:
        return [Finding.not_checked(MANIFEST, f"Slack does not say which app this is ({error.reason}).")]
    if not app_id:
        return [Finding.not_checked(MANIFEST, "Slack does not say which app this is: the scope users:read is missing.")]
    try:
        answer = await call(configuration.api_call("apps.manifest.export", json={"app_id": app_id}))
    except (ChatNotAllowed, ChatRejected) as error:
        return [_refused(error)]
    except ChatError as error:
        return [Finding.not_checked(MANIFEST, f"Slack could not be asked ({error.reason}).")]
    return list(manifest_findings(object_at(answer, "manifest"), receiving))


def manifest_findings(manifest: Mapping[str, Any], receiving: Receiving) -> Iterator[Finding]:
    """Compares a manifest with what Pagehand needs."""
    settings, features = object_at(manifest, "settings"), object_at(manifest, "features")
    yield from _events(object_at(settings, "event_subscriptions"), receiving.left_out)
    yield _socket_mode(settings, receiving)
    yield _interactivity(object_at(settings, "interactivity"))
    yield _command(features, receiving)
    yield _home(object_at(features, "app_home"), receiving.left_out)
    yield _shortcuts(features)
    if not receiving.by_socket:
        yield _addresses(settings, features, receiving)


def _refused(error: ChatError) -> Finding:
    fix = (
        "At api.slack.com/apps, under Your App Configuration Tokens, generate a token for this workspace, as somebody "
        "who may manage the app (it is good for 12 hours), and give it as --configuration-token or "
        f"{CONFIGURATION_TOKEN}."
    )
    found = f"Slack does not show the app's manifest ({error.reason})."
    return Finding.error(MANIFEST, found, why="What only the manifest shows cannot be checked.", fix=fix)


def _events(subscriptions: Mapping[str, Any], left_out: Collection[str]) -> Iterator[Finding]:
    names = subscriptions.get("bot_events")
    subscribed = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    missing = [name for name in NEEDED_EVENTS if name not in subscribed]
    count = len(NEEDED_EVENTS) - len(missing)
    yield Finding.ok(f"{MANIFEST}.events", f"The app is subscribed to {count} of the {len(NEEDED_EVENTS)} events.")
    for name in missing:
        check, why = f"{MANIFEST}.events.{name}", f"Without it, {NEEDED_EVENTS[name]}."
        if name in left_out:
            yield Finding.ok(check, f"The app leaves out the event {name}, as PAGEHAND_WITHOUT says. {why}")
            continue
        kind = Finding.error if name in _REQUIRED_EVENTS else Finding.warning
        what = f"under Subscribe to bot events, add {name}, click Save Changes, and reinstall the app"
        yield kind(
            check,
            f"The app is not subscribed to the event {name}.",
            why=why,
            fix=_PAGE.format(page="Event Subscriptions", what=what),
        )


def _socket_mode(settings: Mapping[str, Any], receiving: Receiving) -> Finding:
    is_on, check = settings.get("socket_mode_enabled") is True, f"{MANIFEST}.socket_mode"
    if is_on is receiving.by_socket:
        return Finding.ok(check, f"Socket Mode is {'on' if is_on else 'off'}, as the settings have it.")
    if is_on:
        found = "Socket Mode is on, but SLACK_APP_TOKEN is not set: Pagehand waits for requests over HTTP."
        what = "turn off Enable Socket Mode (or set SLACK_APP_TOKEN, to receive over Socket Mode)"
    else:
        found = "Socket Mode is off, but SLACK_APP_TOKEN is set."
        what = "turn on Enable Socket Mode (or leave SLACK_APP_TOKEN out, to receive over HTTP)"
    why = "Nothing that people do in Slack arrives."
    return Finding.error(check, found, why=why, fix=_PAGE.format(page="Socket Mode", what=what))


def _interactivity(interactivity: Mapping[str, Any]) -> Finding:
    check = f"{MANIFEST}.interactivity"
    if interactivity.get("is_enabled") is True:
        return Finding.ok(check, "Interactivity is on.")
    fix = _PAGE.format(page="Interactivity & Shortcuts", what="turn on Interactivity, and click Save Changes")
    return Finding.error(check, "Interactivity is off.", why="Buttons, menus, shortcuts and forms do nothing.", fix=fix)


def _command(features: Mapping[str, Any], receiving: Receiving) -> Finding:
    check, wanted = f"{MANIFEST}.command", receiving.command
    commands = {text_at(entry, "command"): entry for entry in objects_at(features, "slash_commands")}
    page = "Slash Commands"
    if wanted not in commands:
        others = ", ".join(printable_line(name, 40) for name in sorted(commands)) or "none"
        return Finding.error(
            check,
            f"The app has no command {wanted} (it has: {others}).",
            why=f"Slack does not know {wanted}.",
            fix=_PAGE.format(
                page=page, what=f"Create New Command, {wanted}; or set PAGEHAND_COMMAND to the one there is"
            ),
        )
    if commands[wanted].get("should_escape") is not True:
        why = "Mentions of people and channels in a task arrive as bare words."
        what = f"edit {wanted}, and tick Escape channels, users, and links sent to your app"
        found = f"The command {wanted} does not escape what people write."
        return Finding.warning(check, found, why=why, fix=_PAGE.format(page=page, what=what))
    return Finding.ok(check, f"The command is {wanted}.")


def _home(app_home: Mapping[str, Any], left_out: Collection[str]) -> Finding:
    check = f"{MANIFEST}.home"
    missing = [
        words
        for words, is_off in (
            ("the Home tab is off", app_home.get("home_tab_enabled") is not True),
            ("the Messages tab is off", app_home.get("messages_tab_enabled") is not True),
            (
                "people cannot write in the Messages tab",
                app_home.get("messages_tab_read_only_enabled") is True and "message.im" not in left_out,
            ),
        )
        if is_off
    ]
    if not missing:
        return Finding.ok(check, "The Home tab is on, and so is the Messages tab.")
    what = (
        "turn on Home Tab and Messages Tab, and tick Allow users to send Slash commands and messages from the "
        "messages tab"
    )
    why = "People do not see their jobs, or cannot ask for one in a direct message."
    found = f"In the app, {' and '.join(missing)}."
    return Finding.warning(check, found, why=why, fix=_PAGE.format(page="App Home", what=what))


def _shortcuts(features: Mapping[str, Any]) -> Finding:
    check = f"{MANIFEST}.shortcuts"
    there = {(text_at(entry, "callback_id"), text_at(entry, "type")) for entry in objects_at(features, "shortcuts")}
    missing = [each for each in ((HAND_TO_PAGEHAND, "message"), (NEW_TASK, "global")) if each not in there]
    if not missing:
        return Finding.ok(check, "Both shortcuts are there.")
    named = " and ".join(
        f"on {kind}s, Callback ID {name}" if kind == "message" else f"global, Callback ID {name}"
        for name, kind in missing
    )
    fix = _PAGE.format(page="Interactivity & Shortcuts", what=f"Create New Shortcut: {named}")
    return Finding.warning(check, "A shortcut is missing.", why="It is not in Slack's menus, or does nothing.", fix=fix)


def _addresses(settings: Mapping[str, Any], features: Mapping[str, Any], receiving: Receiving) -> Finding:
    """Checks that Slack sends everything to one https address."""
    check = f"{MANIFEST}.addresses"
    commands = [
        each for each in objects_at(features, "slash_commands") if text_at(each, "command") == receiving.command
    ]
    addresses = {
        "Event Subscriptions": text_at(settings, "event_subscriptions", "request_url"),
        "Interactivity & Shortcuts": text_at(settings, "interactivity", "request_url"),
        "Slash Commands": text_at(commands[0], "url") if commands else "",
    }
    missing = [page for page, address in addresses.items() if not address.endswith("/slack/events")]
    if not missing and len(set(addresses.values())) == 1:
        return Finding.ok(check, f"Slack sends everything to {printable_line(addresses['Slash Commands'], 200)}.")
    pages = ", ".join(missing or addresses)
    return Finding.error(
        check,
        f"Not all that Slack sends goes to one Request URL that ends in /slack/events ({pages}).",
        why="What goes elsewhere does not arrive.",
        fix=_PAGE.format(page=f"each of {pages}", what="set the Request URL to https://YOUR-HOST/slack/events"),
    )
