"""The pictures of a change that its pages show."""

import hashlib
import html
import posixpath
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote

from bot.jobapi.models import MAX_PICTURES, PICTURE_TYPES, ChangeKind, Changes, Picture
from bot.jobserver.documents import UNREAD, decoded, is_page
from bot.jobserver.pipeline.descriptions import Mask
from bot.jobserver.repository.listings import Snapshot
from bot.jobserver.text import one_line
from bot.runtime.pictures import picture_type

_IMAGE = re.compile(
    r"!\[(?P<alt>[^\[\]]{0,500})\]\([ ]{0,9}(?:<(?P<angle>[^<>\n]{1,500})>|(?P<inline>[^\s<>()]{1,500}))"
    r"|<img\s(?P<tag>[^<>]{1,1000})>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"(?<![\w-])(alt|src)=(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_MOST_PAGES = 100
_LONGEST_ALT = 200


def shown_pictures(changes: Changes, files: Snapshot, mask: Mask) -> tuple[Picture, ...]:
    """Returns the first pictures of a change that a page of it shows, with the page's words for each. Blocking.

    Those that are larger than 5 MB, and all that is no picture by its first bytes, are left out.
    """
    paths = [PurePosixPath(file.path) for file in changes.files if file.kind is not ChangeKind.DELETED]
    shown = dict[PurePosixPath, str]()
    for page, data in files.read_all(list(filter(is_page, paths))[:_MOST_PAGES]):
        for target, alt in _images(decoded(data) or ""):
            path = next((path for path in paths if _is_meant(path, target, page)), None)
            if path is not None and not shown.get(path):
                shown[path] = alt
    pictures = (_picture(path, data, mask(shown[path])) for path, data in files.read_all(shown))
    return tuple(picture for picture in pictures if picture.mimetype in PICTURE_TYPES)[:MAX_PICTURES]


def _images(text: str) -> Iterator[tuple[str, str]]:
    """Yields the address of each image outside code and comments, and what the page says of it."""
    for found in _IMAGE.finditer(UNREAD.sub("", text)):
        attributes = {name.lower(): one or other for name, one, other in _ATTRIBUTE.findall(found["tag"] or "")}
        address = found["angle"] or found["inline"] or html.unescape(attributes.get("src", ""))
        yield address, one_line(found["alt"] or html.unescape(attributes.get("alt", "")), _LONGEST_ALT)


def _is_meant(path: PurePosixPath, address: str, page: PurePosixPath) -> bool:
    """Whether an address on a page means a file. Where the root of a site is in its repository, only the site knows."""
    target = unquote(re.split("[#?]", address, maxsplit=1)[0])
    if target.startswith("/"):
        return f"/{path}".endswith(posixpath.normpath(target))
    return str(path) == posixpath.normpath(f"{page.parent}/{target}")


def _picture(path: PurePosixPath, data: bytes, alt: str) -> Picture:
    return Picture(
        id=hashlib.sha256(data).hexdigest(),
        path=str(path),
        alt=alt or None,
        mimetype=picture_type(data),
        size=len(data),
    )
