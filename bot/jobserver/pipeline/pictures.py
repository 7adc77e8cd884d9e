"""The pictures of a change that its pages show."""

import hashlib
import html
import posixpath
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import PurePosixPath
from urllib.parse import unquote

from bot.jobapi.models import MAX_PICTURES, ChangeKind, Changes, Picture
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
_MOST_PAGES, _LOOKED_AT, _MOST_IMAGES = 100, 200_000, 2_000
"""Pages, characters of each, and images on all of them that are looked at."""


def shown_pictures(changes: Changes, files: Snapshot, mask: Mask) -> tuple[Picture, ...]:
    """Returns the first pictures of a change that a page of it shows, with the page's words for each. Blocking.

    Those that are larger than 5 MB are left out, and all that is no picture by its first bytes, or an SVG's name.
    """
    paths = [PurePosixPath(file.path) for file in changes.files if file.kind is not ChangeKind.DELETED]
    if all(map(is_page, paths)):
        return ()
    whole = {str(path): path for path in paths}
    # The root of a site can be any folder of its repository.
    below = {"/".join(path.parts[start:]): path for path in reversed(paths) for start in range(len(path.parts))}
    with suppress(OSError):  # then the change is told without them
        pages = files.read_all(list(filter(is_page, paths))[:_MOST_PAGES])
        shown = dict[PurePosixPath, str]()
        for page, address, alt in islice(_images(pages), _MOST_IMAGES):
            target = unquote(re.split("[#?]", address, maxsplit=1)[0])
            rooted = target.startswith("/")
            name = posixpath.normpath(target if rooted else f"/{page.parent}/{target}").strip("/")
            path = (below if rooted else whole).get(name)
            if path is not None and not shown.get(path):
                shown[path] = alt
        pictures = (_picture(path, data, mask(shown[path])) for path, data in files.read_all(shown))
        return tuple(islice((each for each in pictures if each.mimetype or each.path.endswith(".svg")), MAX_PICTURES))
    return ()


def _images(pages: Iterable[tuple[PurePosixPath, bytes]]) -> Iterator[tuple[PurePosixPath, str, str]]:
    """Yields the page, the address and the page's words of each image outside code and comments."""
    for page, data in pages:
        for found in _IMAGE.finditer(UNREAD.sub("", (decoded(data) or "")[:_LOOKED_AT])):
            attributes = {name.lower(): one or other for name, one, other in _ATTRIBUTE.findall(found["tag"] or "")}
            address = found["angle"] or found["inline"] or html.unescape(attributes.get("src", ""))
            yield page, address, one_line(found["alt"] or html.unescape(attributes.get("alt", "")), 200)


def _picture(path: PurePosixPath, data: bytes, alt: str) -> Picture:
    return Picture(
        id=hashlib.sha256(data).hexdigest(),
        path=str(path),
        alt=alt or None,
        mimetype=picture_type(data),
        size=len(data),
    )
