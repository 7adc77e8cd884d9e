"""Slack's errors."""

from typing import Any


class SlackError(Exception):
    """A refused call.

    Args:
        code: Slack's error code, such as ``channel_not_found``.
        detail: More fields of the answer, such as ``needed`` and ``provided``.
        messages: Sentences for ``response_metadata.messages``, without the prefix ``[ERROR]``.
    """

    def __init__(self, code: str, *, detail: dict[str, Any] | None = None, messages: list[str] | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail or {}
        self.messages = messages or []

    def response_body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"ok": False, "error": self.code, **self.detail}
        if self.messages:
            body["response_metadata"] = {"messages": [f"[ERROR] {text}" for text in self.messages]}
        return body
