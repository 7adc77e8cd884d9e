"""Errors as Slack names them.

SlackError: a call is refused; its code is what Slack's answer has under "error".
"""

from typing import Any


class SlackError(Exception):
    """A refusal with Slack's own code, such as ``channel_not_found``.

    Args:
        code: Slack's error code.
        detail: More fields of the answer, for instance ``needed`` and ``provided``.
        messages: Sentences for ``response_metadata.messages``, without their ``[ERROR]`` prefix.
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
