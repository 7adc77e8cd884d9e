"""Slack's documented error codes by method, with the remedy for each (docs.slack.dev, reference/methods)."""

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.errors import (
    ChatError,
    ChatMissingScope,
    ChatNotAllowed,
    ChatNotInChannel,
    ChatRateLimited,
    ChatRejected,
    ChatUncertain,
)
from bot.slack.sending.tokens import APP_TOKEN, BOT_TOKEN, NOT_ALLOWED, refusal
from bot.slack.sending.web_api import chat_error_from

EVERY_METHOD: dict[type[ChatError], str] = {
    ChatNotAllowed: "accesslimited account_inactive ekm_access_denied invalid_auth not_allowed_token_type not_authed "
    "org_login_required team_access_not_granted token_expired token_revoked two_factor_setup_required",
    ChatMissingScope: "missing_scope",
    ChatUncertain: "fatal_error internal_error request_timeout service_unavailable team_added_to_org",
    ChatRateLimited: "ratelimited",
    ChatRejected: "channel_not_found invalid_blocks is_archived restricted_action no_permission",
}
METHODS: dict[str, dict[type[ChatError], str]] = {
    "chat.postMessage": {
        ChatNotInChannel: "not_in_channel",
        ChatRateLimited: "message_limit_exceeded rate_limited",
    },
    "chat.update": {
        ChatRateLimited: "external_channel_migrating message_limit_exceeded",
        ChatUncertain: "update_failed",
    },
    "chat.postEphemeral": {ChatRateLimited: "message_limit_exceeded", ChatNotInChannel: "not_in_channel"},
    "reactions.add": {ChatNotInChannel: "not_in_channel"},
    "conversations.history": {ChatNotInChannel: "not_in_channel"},
}
"""Without most of those that mean a rejection, as every other code does."""
ANY_HISTORY = "channels:history,groups:history,mpim:history,im:history"
CASES = [
    pytest.param(method, code, kind, id=f"{method}-{code}")
    for method, own in METHODS.items()
    for table in (EVERY_METHOD, own)
    for kind, codes in table.items()
    for code in codes.split()
]


def answer(method: str, **body: object) -> ChatError:
    response = AsyncSlackResponse(
        client=AsyncWebClient(),
        http_verb="POST",
        api_url=f"https://slack.com/api/{method}",
        req_args={},
        data={"ok": False, **body},
        headers={},
        status_code=200,
    )
    return chat_error_from(SlackApiError("it said no", response))  # type: ignore[no-untyped-call]  # not typed by slack-sdk


@pytest.mark.parametrize(("method", "code", "kind"), CASES)
def test_each_error_code_has_its_remedy(method: str, code: str, kind: type[ChatError]) -> None:
    error = answer(method, error=code)
    assert type(error) is kind
    assert error.reason == code


@pytest.mark.parametrize("code", sorted(NOT_ALLOWED))
def test_the_log_explains_a_code_about_the_token_and_names_its_setting(code: str) -> None:
    assert str(answer("chat.postMessage", error=code)) == refusal(BOT_TOKEN, code)
    assert str(answer("apps.connections.open", error=code)) == refusal(APP_TOKEN, code)
    assert str(answer("apps.manifest.export", error=code)) == code, "its token is in no setting"
    assert str(answer("chat.postMessage", error="is_archived")) == "is_archived"


def test_an_unknown_error_code_concerns_the_message_only() -> None:
    assert type(answer("chat.postMessage", error="a_code_of_next_year")) is ChatRejected


@pytest.mark.parametrize(
    ("needed", "provided", "scopes"),
    [
        ("reactions:write", "chat:write,commands", ("reactions:write",)),
        (ANY_HISTORY, "chat:write", ("channels:history", "groups:history", "im:history")),
        (ANY_HISTORY, "channels:history", ("groups:history", "im:history")),
        ("im:write", "chat:write", ("im:write",)),
        ("reactions:write", None, ("reactions:write",)),
        ("", "", ()),
        (None, None, ()),
        (["reactions:write"], {}, ()),
        ("<!channel>\nreactions:write, x y", "", ()),
        ("reactions:write,<!here>", "", ("reactions:write",)),
    ],
)
def test_a_missing_scope_has_slacks_name(needed: object, provided: object, scopes: tuple[str, ...]) -> None:
    error = answer("reactions.add", error="missing_scope", needed=needed, provided=provided)
    assert isinstance(error, ChatMissingScope)
    assert error.scopes == scopes
