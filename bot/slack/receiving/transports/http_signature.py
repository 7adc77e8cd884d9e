"""Slack's signature on an HTTP request: HMAC-SHA256 of `v0:<timestamp>:<body>` (docs.slack.dev, "Verifying requests").

Bolt's own check answers 500 to headers that are not numbers or not ASCII, and logs the bodies it turns away.
"""

import hashlib
import hmac
import re

MAX_AGE = 300.0
"""Seconds between Slack's clock and ours; an older request is a replay."""
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def is_signed(secret: str, timestamp: str, signature: str, body: bytes, *, now: float) -> bool:
    """Returns whether Slack signed this body lately (MAX_AGE). Never raises; nothing passes with an empty secret."""
    if not secret or not _TIMESTAMP.fullmatch(timestamp) or abs(now - int(timestamp)) > MAX_AGE:
        return False
    return hmac.compare_digest(signature_of(secret, timestamp, body), signature.encode("utf-8", "surrogateescape"))


def signature_of(secret: str, timestamp: str, body: bytes) -> bytes:
    """Returns the signature that Slack puts on a body."""
    message = b"v0:" + timestamp.encode("ascii") + b":" + body
    return b"v0=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest().encode("ascii")
