"""What kind of picture bytes are, whatever their name says."""

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def picture_type(contents: bytes) -> str | None:
    """Returns the media type by the first bytes; None for other formats, and for those that can contain scripts."""
    if contents.startswith(b"RIFF") and contents[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _SIGNATURES.items() if contents.startswith(start)), None)
