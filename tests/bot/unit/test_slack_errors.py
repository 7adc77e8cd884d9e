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
from bot.slack.sending.api_errors import APP_TOKEN, BOT_TOKEN, NOT_ALLOWED, chat_error_from, refusal

EVERY_METHOD: dict[type[ChatError], str] = {
    ChatNotAllowed: "accesslimited account_inactive ekm_access_denied invalid_auth not_allowed_token_type not_authed "
    "org_login_required team_access_not_granted token_expired token_revoked two_factor_setup_required",
    ChatMissingScope: "missing_scope",
    ChatUncertain: "fatal_error internal_error request_timeout service_unavailable team_added_to_org",
    ChatRateLimited: "ratelimited",
    ChatRejected: "access_denied deprecated_endpoint enterprise_is_restricted invalid_arg_name invalid_arguments "
    "invalid_array_arg invalid_charset invalid_form_data invalid_post_type method_deprecated missing_post_type "
    "no_permission",
}
METHODS: dict[str, dict[type[ChatError], str]] = {
    "chat.postMessage": {
        ChatNotInChannel: "not_in_channel",
        ChatRateLimited: "message_limit_exceeded rate_limited",
        ChatRejected: "as_user_not_supported attachment_payload_limit_exceeded cannot_reply_to_message "
        "channel_not_found duplicate_channel_not_found duplicate_message_not_found invalid_blocks "
        "invalid_blocks_format invalid_metadata_format invalid_metadata_schema is_archived markdown_text_conflict "
        "messages_tab_disabled metadata_must_be_sent_from_app metadata_too_large missing_file_data "
        "msg_blocks_too_long msg_too_long no_text restricted_action restricted_action_non_threadable_channel "
        "restricted_action_read_only_channel restricted_action_thread_locked restricted_action_thread_only_channel "
        "send_on_behalf_not_allowed slack_connect_canvas_sharing_blocked slack_connect_file_link_sharing_blocked "
        "slack_connect_lists_sharing_blocked team_not_found too_many_attachments too_many_contact_cards",
    },
    "chat.update": {
        ChatRateLimited: "external_channel_migrating message_limit_exceeded",
        ChatUncertain: "update_failed",
        ChatRejected: "block_mismatch cant_broadcast_message cant_update_message channel_not_found edit_window_closed "
        "invalid_attachments invalid_blocks invalid_blocks_format invalid_metadata_format invalid_metadata_schema "
        "is_inactive markdown_text_conflict message_not_found metadata_must_be_sent_from_app metadata_too_large "
        "msg_too_long no_dual_broadcast_content_update no_text streaming_state_conflict team_not_found "
        "too_many_attachments",
    },
    "chat.postEphemeral": {
        ChatRateLimited: "message_limit_exceeded",
        ChatNotInChannel: "not_in_channel",
        ChatRejected: "channel_not_found invalid_blocks invalid_blocks_format is_archived messages_tab_disabled "
        "msg_too_long no_text restricted_action too_many_attachments user_not_in_channel",
    },
    "reactions.add": {
        ChatNotInChannel: "not_in_channel",
        ChatRejected: "already_reacted bad_timestamp channel_not_found "
        "invalid_name is_archived message_not_found no_access no_item_specified not_reactable thread_locked "
        "too_many_emoji too_many_reactions",
    },
    "reactions.remove": {
        ChatRejected: "bad_timestamp channel_not_found invalid_name is_archived message_not_found no_access "
        "no_item_specified no_reaction not_reactable thread_locked",
    },
    "conversations.join": {
        ChatRejected: "channel_is_limited_access channel_not_found is_archived "
        "method_not_supported_for_channel_type too_many_members",
    },
    "conversations.history": {
        ChatNotInChannel: "not_in_channel",
        ChatRejected: "channel_is_limited_access channel_not_found invalid_cursor invalid_metadata_filter_keys "
        "invalid_ts_latest invalid_ts_oldest",
    },
    "conversations.replies": {
        ChatNotInChannel: "not_in_channel",
        ChatRejected: "channel_not_found invalid_cursor invalid_metadata_filter_keys invalid_ts_latest "
        "invalid_ts_oldest method_not_supported_for_channel_type thread_not_found",
    },
}
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
