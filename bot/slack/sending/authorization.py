"""What our tokens may do in Slack: its verdicts on them, in words that are the same at the start, later and in the
checks; the scopes that Pagehand needs, which of them are missing, and what to do about it.

manifest.yml requests the same scopes. An app can still have fewer: scopes added to a manifest are granted only when the
app is reinstalled (docs.slack.dev, "Installing with OAuth"), and whoever installs it can leave some out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NOT_ALLOWED: Mapping[str, str] = {
    "accesslimited": "it may not be used from this network",
    "account_inactive": "the app was uninstalled, or its workspace is gone",
    "ekm_access_denied": "the organization keeps the app out with its encryption keys",
    "invalid_auth": "Slack does not know it, or this machine's address is not on the app's list of allowed addresses",
    "not_allowed_token_type": "it is another kind of token",
    "not_authed": "it is empty",
    "org_login_required": "the workspace is being moved to another organization",
    "team_access_not_granted": "the app is not approved for this workspace",
    "token_expired": "it has expired",
    "token_revoked": "it was revoked",
    "two_factor_setup_required": "the workspace asks for two-factor authentication first",
}
"""Slack's error codes about the token or the whole workspace, and their meanings. Errors about one call (no_permission,
access_denied) are not among them.
"""
_MEANINGS = {**NOT_ALLOWED, "missing_scope": "it lacks the scope connections:write"}


@dataclass(frozen=True)
class TokenSetting:
    """A setting with a token: its `name`, what does not work while Slack rejects it, and where to get a valid one."""

    name: str
    without: str
    where: str


BOT_TOKEN = TokenSetting(
    "SLACK_BOT_TOKEN",
    "Pagehand can say nothing and look nothing up in Slack.",
    "At api.slack.com/apps, choose your app and then OAuth & Permissions: copy the Bot User OAuth Token (xoxb-…), "
    "after Reinstall to Workspace where it was revoked. Set SLACK_BOT_TOKEN to it, and start Pagehand again.",
)
APP_TOKEN = TokenSetting(
    "SLACK_APP_TOKEN",
    "Nothing that people do in Slack arrives.",
    "At api.slack.com/apps, choose your app and then Basic Information, App-Level Tokens: generate one with the scope "
    "connections:write. Set SLACK_APP_TOKEN to it (xapp-…), and start Pagehand again.",
)


def refusal(setting: TokenSetting, code: str) -> str:
    """Returns Slack's verdict on a token, with Slack's code."""
    meaning = _MEANINGS.get(code)
    return f"Slack does not accept {setting.name} ({code}){f': {meaning}' if meaning else ''}."


def refusal_of_call(url: str, code: str) -> str:
    """Returns Slack's verdict on the token of a call, by its URL; for a token that is in no setting, the code."""
    method = url.rpartition("/")[2]
    if method.startswith("apps.manifest."):
        return code
    return refusal(APP_TOKEN if method == "apps.connections.open" else BOT_TOKEN, code)


HOW_TO_GRANT = (
    "At api.slack.com/apps, choose your app and then OAuth & Permissions: add what is not among the Bot Token Scopes, "
    "and click Reinstall to Workspace (Install App has the same button)."
)
_SCOPE = re.compile(r"[a-z][a-z0-9_.:-]{0,60}")
_MOST_NAMED = 200


@dataclass(frozen=True)
class Scope:
    """A scope by Slack's name, and the effect of being `without` it. Pagehand does not start without a `required`
    one.
    """

    name: str
    without: str
    required: bool = False


NEEDED_SCOPES = (
    Scope("app_mentions:read", "a mention of Pagehand is heard only where it hears all messages"),
    Scope(
        "channels:history",
        "replies in public channels never arrive, threads there cannot be read, and a post whose answer was lost "
        "cannot be looked for",
        required=True,
    ),
    Scope("channels:join", "Pagehand cannot join a public channel by itself, and has to be invited first"),
    Scope(
        "channels:read",
        "what a public channel is cannot be found out, so nobody may ask for anything there",
        required=True,
    ),
    Scope("chat:write", "nothing can be posted", required=True),
    Scope("commands", "there are no slash command and no shortcuts", required=True),
    Scope("files:read", "the agent gets the names and links of files, and never what is in them"),
    Scope("files:write", "pictures of pages are named in the thread, and not shown"),
    Scope(
        "groups:history",
        "replies in private channels never arrive, threads there cannot be read, and a post there whose answer was "
        "lost cannot be looked for",
    ),
    Scope(
        "groups:read",
        "what a private channel is cannot be found out, so nobody may ask for anything there",
    ),
    Scope("im:history", "direct messages start no jobs, and replies there are not heard"),
    Scope("reactions:read", "a :x: on a card stops nothing (its button and !stop do)"),
    Scope("reactions:write", "replies get no marks"),
    Scope("usergroups:read", "nobody counts as a member of the user groups that may ask for jobs"),
    Scope(
        "users:read",
        "members cannot be told from guests and outsiders, so nobody may ask for anything",
        required=True,
    ),
)
_NEEDED = frozenset(scope.name for scope in NEEDED_SCOPES)


def granted_scopes(headers: Mapping[str, str]) -> frozenset[str] | None:
    """Returns the scopes that Slack's response headers list; None if a substitute or proxy leaves them out."""
    return frozenset(_names(headers.get("X-OAuth-Scopes", ""))) or None


def missing_scopes_in(needed: str, provided: str) -> tuple[str, ...]:
    """Returns the scopes that Slack's error `missing_scope` asks for. Slack lists those for every kind of channel, of
    which one would be enough, so only the ones that Pagehand needs are returned.
    """
    granted = _names(provided)
    missing = [name for name in _names(needed) if name not in granted]
    return tuple([name for name in missing if name in _NEEDED] or missing)


def _names(listed: str) -> list[str]:
    """Returns the scopes in a list as Slack writes it; anything else is left out."""
    names = (name.strip() for name in listed.split(",", _MOST_NAMED))
    return [name for name in names if _SCOPE.fullmatch(name)]
