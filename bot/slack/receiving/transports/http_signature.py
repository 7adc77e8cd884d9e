"""Slack's signature on an HTTP request: HMAC-SHA256 of `v0:<timestamp>:<body>` (docs.slack.dev, "Verifying requests").

Bolt's own check answers 500 to headers that are not numbers or not ASCII, and logs the bodies it turns away.
"""

import hashlib
import hmac
import re

MAX_AGE = 300.0
"""Seconds between Slack's clock and ours; an older request is a replay."""
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")


def may_be_signed(timestamp: str, signature: str, *, now: float) -> bool:
    """Returns whether the headers are such as Slack sends: of lately (MAX_AGE), and of the right form. It takes no
    body, so that none has to be read of what cannot be Slack's.
    """
    is_of_form = _TIMESTAMP.fullmatch(timestamp) and _SIGNATURE.fullmatch(signature)
    return bool(is_of_form) and abs(now - int(timestamp)) <= MAX_AGE


def is_signed(secret: str, timestamp: str, signature: str, body: bytes, *, now: float) -> bool:
    """Returns whether Slack signed this body lately (MAX_AGE). Never raises; nothing passes with an empty secret."""
    if not secret or not may_be_signed(timestamp, signature, now=now):
        return False
    return hmac.compare_digest(signature_of(secret, timestamp, body), signature.encode("ascii"))


def signature_of(secret: str, timestamp: str, body: bytes) -> bytes:
    """Returns the signature that Slack puts on a body."""
    signed = hmac.new(secret.encode(), b"v0:" + timestamp.encode("ascii") + b":", hashlib.sha256)
    signed.update(body)
    return b"v0=" + signed.hexdigest().encode("ascii")
