"""Slack's verdicts on our tokens, in words that are the same at the start, later, and in the checks."""

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
