"""Files that came with a prompt: which one is meant, where it goes, and the link to it in each format."""

import html
import posixpath
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bot.jobserver.editors.builtin import places
from bot.jobserver.editors.builtin.files import PICTURE_SUFFIXES, WorkingFiles

_ANY = frozenset({"image", "picture", "screenshot", "diagram", "file"})
"""What people call the only one."""


@dataclass(frozen=True)
class GivenFile:
    """Where it lies, under a name that is safe, and what the person called it."""

    path: Path
    called: str

    @property
    def name(self) -> str:
        return self.path.name


def find_given(given: Sequence[GivenFile], words: str) -> GivenFile | None:
    """Returns the file that a person means: by its name, with or without its ending, or the only one."""
    wanted = words.strip().casefold()
    for file in given:
        names = {name.casefold() for name in (file.name, file.called)}
        if wanted in names | {PurePosixPath(name).stem for name in names}:
            return file
    return given[0] if len(given) == 1 and wanted in _ANY else None


def pictures_folder(files: WorkingFiles) -> PurePosixPath:
    """Returns the folder with the most pictures; where there are none, `images` beside the pages."""
    folders = (path.parent for path in files.pictures())
    counts = Counter(folder for folder in folders if not any(part.startswith(".") for part in folder.parts))
    if counts:
        return max(counts, key=lambda folder: (counts[folder], str(folder)))
    return places.default_folder(places.folders_of(files.paths())) / "images"


def link_at_end(text: str, page: PurePosixPath, target: PurePosixPath) -> str:
    """Returns the page with a last paragraph that shows the file, or links to what is no picture."""
    newline = "\r\n" if "\r\n" in text else "\n"
    ending = "" if text.endswith("\n") or not text else newline
    address = quote(posixpath.relpath(str(target), str(page.parent)))
    return f"{text}{ending}{newline}{_link(page.suffix.lower(), address, target).replace(chr(10), newline)}{newline}"


def _link(suffix: str, address: str, target: PurePosixPath) -> str:
    words = target.stem.replace("-", " ").replace("_", " ").strip() or target.name
    is_picture = target.suffix.lower() in PICTURE_SUFFIXES
    match suffix:
        case ".rst":
            return f".. image:: {address}\n   :alt: {words}" if is_picture else f"`{words} <{address}>`__"
        case ".adoc" | ".asciidoc":
            return f"image::{address}[{words}]" if is_picture else f"link:{address}[{words}]"
        case ".html" | ".htm":
            link = f'<a href="{address}">{html.escape(words)}</a>'
            return f'<p><img src="{address}" alt="{html.escape(words)}"></p>' if is_picture else f"<p>{link}</p>"
        case ".txt":
            return f"{words}: {address}"
    return f"{'!' if is_picture else ''}[{words}]({address})"
