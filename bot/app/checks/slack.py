"""Checks Slack's side: the tokens, the scopes, the clock, which app receives, the channels, and what has arrived."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime

from slack_sdk.web.async_client import AsyncWebClient

from bot.domain.findings import Finding, LastTime
from bot.errors import ChatError, ChatMissingScope, ChatNotAllowed, ChatRejected
from bot.runtime.untrusted_json import object_at, text_at
from bot.slack.sending.authorization import (
    APP_TOKEN,
    BOT_TOKEN,
    HOW_TO_GRANT,
    NEEDED_SCOPES,
    Scope,
    TokenSetting,
    granted_scopes,
    refusal,
)
from bot.slack.sending.identity import identify
from bot.slack.sending.web_api import call, call_with_headers

TOKEN, SCOPES, CLOCK = "slack.bot_token", "slack.scopes", "slack.clock"
CONNECTION = "slack.app_token"
CHANNELS = "channels"
MOST = 40
"""How many channels one check looks up: Slack allows about fifty look-ups a minute."""
_NO_JOBS = "Nobody can ask for a job there."
_WHERE = "Correct the channel's id in PAGEHAND_ALLOWED_CHANNELS or the file of PAGEHAND_PROJECTS"
_ID = "Slack shows it at the end of a channel's details"
_UNREACHABLE = "Look at this machine's network, its proxy (HTTPS_PROXY) and SLACK_API_URL."
_CLOCK_TOLERANCE = 60.0
"""Seconds. Slack's signatures are valid for 300, and leases and reports are wrong long before."""
_APP_ID = re.compile("xapp-[0-9]+-(A[A-Z0-9]{6,})-")


async def check_bot(
    client: AsyncWebClient, *, now: Callable[[], float], left_out: Collection[str] = ()
) -> Sequence[Finding]:
    """Checks the bot token, the scopes and the clock, by one `auth.test`. `left_out`: scopes that the app does without
    on purpose.
    """
    try:
        answer, headers = await call_with_headers(client.auth_test())
    except ChatError as error:
        why = "Slack could not be asked."
        rest = [Finding.not_checked(SCOPES, why), Finding.not_checked(CLOCK, why)]
        return [token_finding(TOKEN, BOT_TOKEN, error), *rest]
    who = f"This is {text_at(answer, 'user')} ({text_at(answer, 'user_id')}) in {text_at(answer, 'team')}."
    return [Finding.ok(TOKEN, who), *scope_findings(granted_scopes(headers), left_out), clock_finding(headers, now())]


async def check_app_token(client: AsyncWebClient, bot: AsyncWebClient) -> Sequence[Finding]:
    """Checks the app-level token by asking for the address of a connection, which is never opened, and that it is of
    the bot token's app.
    """
    token = client.token or ""
    try:
        await call(client.apps_connections_open(app_token=token))
    except ChatError as error:
        if error.reason != "socket_mode_not_enabled":
            return [token_finding(CONNECTION, APP_TOKEN, error)]
        found = "SLACK_APP_TOKEN is set, but Socket Mode is off in the app."
        fix = (
            "At api.slack.com/apps, choose your app and then Socket Mode: turn on Enable Socket Mode. Or leave "
            "SLACK_APP_TOKEN out and set SLACK_SIGNING_SECRET, to receive over HTTP."
        )
        return [Finding.error(CONNECTION, found, why=APP_TOKEN.without, fix=fix)]
    named, app_id = _APP_ID.match(token), await app_id_of(bot)
    if named and app_id and named[1] != app_id:
        found = f"SLACK_APP_TOKEN is of another app ({named[1]}) than SLACK_BOT_TOKEN ({app_id})."
        fix = f"Take both from https://api.slack.com/apps/{app_id}: OAuth & Permissions, and Basic Information."
        why = "What people write arrives at one app, and the other answers."
        return [Finding.error(CONNECTION, found, why=why, fix=fix)]
    return [Finding.ok(CONNECTION, "Slack opens Socket Mode connections with SLACK_APP_TOKEN.")]


async def app_id_of(bot: AsyncWebClient) -> str:
    """Returns the id of a bot token's app; empty if Slack does not say."""
    with contextlib.suppress(ChatError):
        return (await identify(bot)).app_id
    return ""


def token_finding(check: str, setting: TokenSetting, error: ChatError) -> Finding:
    """Interprets an error of Slack's for the token of the call."""
    match error:
        case ChatNotAllowed() | ChatRejected():
            code = "missing_scope" if isinstance(error, ChatMissingScope) else error.reason
            return Finding.error(check, refusal(setting, code), why=setting.without, fix=setting.where)
        case _:
            found = f"Slack cannot be reached, or does not answer ({error.reason})."
            return Finding.error(check, found, why=setting.without, fix=_UNREACHABLE, passing=True)


def scope_findings(granted: Collection[str] | None, left_out: Collection[str] = ()) -> Sequence[Finding]:
    """Compares the granted scopes with the needed ones; yields a finding for each that is missing. One that was left
    out on purpose is no fault.
    """
    if granted is None:
        return [Finding.not_checked(SCOPES, "Slack's answer does not tell which scopes are granted.")]
    missing = [scope for scope in NEEDED_SCOPES if scope.name not in granted]
    granted_count = len(NEEDED_SCOPES) - len(missing)
    known = Finding.ok(SCOPES, f"{granted_count} of the {len(NEEDED_SCOPES)} scopes are granted.")
    return [known, *(_missing_scope(scope, on_purpose=scope.name in left_out) for scope in missing)]


def _missing_scope(scope: Scope, *, on_purpose: bool) -> Finding:
    check, why = f"{SCOPES}.{scope.name}", f"Without it, {scope.without}."
    found = f"Slack has not granted the scope {scope.name}"
    if scope.required:
        return Finding.error(check, f"{found}.", why=why, fix=HOW_TO_GRANT)
    if on_purpose:
        return Finding.ok(check, f"{found}, as PAGEHAND_WITHOUT says. {why}")
    otherwise = f"If it was declined on purpose, add {scope.name} to PAGEHAND_WITHOUT."
    return Finding.warning(check, f"{found}.", why=why, fix=f"{HOW_TO_GRANT} {otherwise}")


def clock_finding(headers: Mapping[str, str], now: float) -> Finding:
    """Compares this machine's clock with Slack's, using a response's Date header."""
    try:
        date = parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return Finding.not_checked(CLOCK, "Slack's answer does not tell the time.")
    ahead = now - date.replace(tzinfo=date.tzinfo or UTC).timestamp()
    if abs(ahead) <= _CLOCK_TOLERANCE:
        return Finding.ok(CLOCK, "This machine's clock agrees with Slack's.")
    return Finding.error(
        CLOCK,
        f"This machine's clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} Slack's.",
        why="Slack's signed requests are refused when the clocks differ by five minutes, and all times are wrong.",
        fix="Turn on time synchronization: `timedatectl set-ntp true`, or chrony.",
    )


async def check_channels(client: AsyncWebClient, channel_ids: Collection[str]) -> Sequence[Finding]:
    """Checks that the channels of the settings exist and that the bot is in them, or can join."""
    if not channel_ids:
        return [Finding.ok(CHANNELS, "The settings name no channels.")]
    looked_up = sorted(channel_ids)[:MOST]
    faults = await asyncio.gather(*(_channel_fault(client, channel_id) for channel_id in looked_up))
    found = [fault for fault in faults if fault is not None]
    well = len(looked_up) - len(found)
    return [
        Finding.ok(CHANNELS, f"Pagehand can work in {well} of the {len(channel_ids)} channels of the settings."),
        *found,
    ]


async def _channel_fault(client: AsyncWebClient, channel_id: str) -> Finding | None:
    name = f"{CHANNELS}.{channel_id}"
    try:
        answer = await call(client.conversations_info(channel=channel_id))
    except ChatMissingScope as error:
        return Finding.not_checked(
            name, f"Slack does not say what {channel_id} is: it needs {', '.join(error.scopes)}."
        )
    except ChatRejected as error:
        found = f"Slack does not show Pagehand the channel {channel_id} ({error.reason})."
        fix = f"{_WHERE} ({_ID}); if it is private, write `/invite @Pagehand` in it."
        return Finding.warning(name, found, why=_NO_JOBS, fix=fix)
    except ChatError as error:
        return Finding.not_checked(name, f"Slack could not be asked about {channel_id} ({error.reason}).")
    fields = object_at(answer, "channel")
    if fields.get("is_archived") is True:
        return Finding.warning(
            name, f"The channel {channel_id} is archived.", why=_NO_JOBS, fix=f"{_WHERE}, or restore it."
        )
    if fields.get("is_private") is True and fields.get("is_member") is False:
        found = f"Pagehand is not a member of the private channel {channel_id}."
        return Finding.warning(name, found, why=_NO_JOBS, fix="Write `/invite @Pagehand` in that channel.")
    return None


ARRIVALS, SIGNATURES = "arrivals", "slack.signing_secret"
_KINDS: Mapping[LastTime, tuple[str, str]] = {
    LastTime.COMMAND: ("slash command", "write `{command} help` in a channel of Slack's"),
    LastTime.EVENT: ("event (a message, a mention, a reaction)", "invite Pagehand to a channel, and mention it there"),
    LastTime.CLICK: ("click (a button, a menu, a form)", "write `{command}` in a channel, and close the form"),
}
_LATELY = 3600.0
"""Seconds for which a wrong signature counts, unless a correctly signed request came later."""


def arrival_findings(last: Mapping[LastTime, float], now: float, *, command: str) -> Iterator[Finding]:
    """Reports when each kind last arrived; one that never did is a warning."""
    for kind, (words, attempt) in _KINDS.items():
        check = f"{ARRIVALS}.{kind}"
        if kind in last:
            yield Finding.ok(check, f"The last {words} came {ago(now - last[kind])}.")
        else:
            yield Finding.warning(
                check,
                f"No {words} has come yet.",
                why="Whether Slack's requests arrive is not known before one does.",
                fix=f"Start Pagehand, {attempt.format(command=command)}, and run this again half a minute later. If "
                "nothing comes, a configuration token (`pagehand doctor --help`) shows how the app is set up.",
            )


def signature_finding(last: Mapping[LastTime, float], now: float, *, by_socket: bool) -> Finding:
    """Reports whether Slack's requests are signed with our signing secret, which only a request shows."""
    if by_socket:
        return Finding.ok(SIGNATURES, "It is not needed: Slack is reached over Socket Mode.")
    arrived = max((last[kind] for kind in _KINDS if kind in last), default=None)
    refused = last.get(LastTime.BAD_SIGNATURE)
    if refused is not None and refused > (arrived or 0.0) and (arrived is None or now - refused < _LATELY):
        return Finding.error(
            SIGNATURES,
            f"A request came {ago(now - refused)} that is not signed with SLACK_SIGNING_SECRET.",
            why="If it was Slack's, all that people do in Slack is turned away.",
            fix="At api.slack.com/apps, choose your app and then Basic Information, App Credentials: copy the Signing "
            "Secret (not the Client Secret) into SLACK_SIGNING_SECRET, and start Pagehand again.",
        )
    if arrived is None:
        return Finding.not_checked(SIGNATURES, "Whether SLACK_SIGNING_SECRET is right shows with the first request.")
    return Finding.ok(SIGNATURES, f"A request that came {ago(now - arrived)} was signed with it.")


def ago(seconds: float) -> str:
    """Returns how long ago something was, as text."""
    seconds = max(seconds, 0.0)
    for length, unit in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "less than a minute ago"
