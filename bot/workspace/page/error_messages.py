"""What the page says for Slack's error codes."""

_MESSAGES = {
    "action_not_found": "That button or choice is no longer there.",
    "cant_delete_file": "You can delete only your own files.",
    "cant_delete_message": "You can delete only your own messages.",
    "cant_update_message": "You can edit only your own messages.",
    "channel_not_found": "There is no such channel, or you cannot see it.",
    "dispatch_failed": "No app is connected, so nothing answered.",
    "dispatch_unknown_error": "The app answered with something that Slack does not understand.",
    "file_not_found": "That file is no longer there. Attach it again.",
    "file_too_large": "That file is too large.",
    "invalid_name": "That name cannot be used.",
    "invalid_option": "That choice is no longer offered.",
    "is_archived": "This channel is archived.",
    "message_not_found": "That message is no longer there.",
    "messages_tab_not_open": "Sending messages to this app has been turned off.",
    "method_not_supported_for_channel_type": "That does not work in this kind of channel.",
    "msg_too_long": "That is too long for a message.",
    "no_text": "There is nothing to send.",
    "not_found": "That is no longer open.",
    "not_in_channel": "Join the channel first.",
    "operation_timeout": "The app did not answer in time.",
    "shortcut_not_found": "That shortcut is no longer there, or not for you.",
    "storage_limit_reached": "This workspace has no room for more files.",
    "thread_not_found": "That thread is no longer there.",
    "too_many_files": "Those are too many files for one message.",
    "user_not_found": "There is nobody of that name here.",
}


def error_message(code: str) -> str:
    return _MESSAGES.get(code, f"That did not work ({code}).")
