"""Adds pages, sections and files."""

import contextlib
import html
import json
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.navigation import find_navigation, read_navigation, with_entry
from bot.jobserver.documents.navigation_entries import scalar
from bot.jobserver.documents.page import FrontMatter, slug
from bot.jobserver.editors.builtin import places
from bot.jobserver.editors.builtin.edits import AddAttachment, AddPage, AddSection, Note, short, taken
from bot.jobserver.editors.builtin.files import PICTURE_SUFFIXES, WorkingFiles
from bot.jobserver.editors.builtin.new_page_places import NewPlace, is_neighbour, place_for, suffix_in

# New pages that look like their neighbours, and new sections, in each format.

_COUNTING_KEYS = frozenset(("sidebar_position", "nav_order", "weight", "order", "position"))
_TITLE_KEYS = frozenset(("title", "sidebarTitle", "sidebar_label", "linkTitle", "nav_title"))
_SUMMARY_KEYS = frozenset(("description", "summary", "excerpt"))
_LONGEST_SUMMARY = 160
_FIRST_HEADING = re.compile(r"\s*+#[ \t]")


def page_text(suffix: str, title: str, text: str, neighbours: Sequence[str]) -> str:
    """Returns a new page: with the front matter that most of its neighbours have, and a heading unless that has it."""
    found = [front for neighbour in neighbours if (front := find_front_matter(neighbour)) is not None]
    if suffix.lower() not in {".md", ".mdx", ".markdown"} or 2 * len(found) <= len(neighbours):
        return _with_line_ends(f"{heading(suffix, title, level=1)}\n\n{body(suffix, text)}\n", neighbours)
    written = _front_matter(found, title, text)
    shows_title = not any(_FIRST_HEADING.match(neighbour[_end(neighbour) :]) for neighbour in neighbours)
    has_title = any("title" in matter.values for matter in found)
    opening = "" if shows_title and has_title else f"{heading(suffix, title, level=1)}\n\n"
    return _with_line_ends(f"{written}\n{opening}{body(suffix, text)}\n", neighbours)


def _end(text: str) -> int:
    front = find_front_matter(text)
    return front.span.end if front else 0


def _with_line_ends(text: str, neighbours: Sequence[str]) -> str:
    windows = sum("\r\n" in neighbour for neighbour in neighbours)
    return text.replace("\n", "\r\n") if 2 * windows > len(neighbours) > 1 else text


def _front_matter(found: Sequence[FrontMatter], title: str, text: str) -> str:
    is_toml = 2 * sum(front.text.strip() != "" and _mark(front) == "+++" for front in found) > len(found)
    mark, sign = ("+++", " = ") if is_toml else ("---", ": ")
    keys = dict.fromkeys(key for front in found for key in front.values)
    common = [key for key in keys if 2 * sum(key in front.values for front in found) > len(found)]
    quoted = is_toml or any(re.search(r'^title: *"', front.text, re.MULTILINE) for front in found)
    lines = []
    for key in common:
        value = _value(key, [front.values[key] for front in found if key in front.values], title, text)
        if value is not None:
            lines.append(f"{key}{sign}{_written(value, quoted=quoted)}")
    return "\n".join([mark, *lines, mark]) + "\n"


def _mark(front: FrontMatter) -> str:
    return "+++" if "=" in front.text.split("\n", 1)[0] else "---"


def _value(key: str, values: Sequence[object], title: str, text: str) -> str | int | bool | None:
    """Returns a new page's value of a key: its own where the key is known, else the one that all others share."""
    if key in _TITLE_KEYS:
        return title
    if key in _SUMMARY_KEYS:
        line = " ".join(text.split("\n\n", 1)[0].split())
        return line if len(line) <= _LONGEST_SUMMARY else f"{line[: _LONGEST_SUMMARY - 1]}…"
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if key in _COUNTING_KEYS:
        return max(numbers) + 1 if numbers else None
    first = values[0]
    is_shared = len(values) > 1 and all(value == first for value in values)
    return first if is_shared and isinstance(first, str | int | bool) else None


def _written(value: str | int | bool, *, quoted: bool) -> str:  # noqa: FBT001 (a value of YAML)
    return scalar(value) if isinstance(value, str) and not quoted else json.dumps(value, ensure_ascii=False)


def heading(suffix: str, title: str, *, level: int) -> str:
    match suffix.lower():
        case ".rst":
            return f"{title}\n{'=-'[level - 1] * len(title)}"
        case ".adoc" | ".asciidoc":
            return f"{'=' * level} {title}"
        case ".html" | ".htm":
            return f"<h{level}>{html.escape(title)}</h{level}>"
        case ".txt":
            return title
    return f"{'#' * level} {title}"


def body(suffix: str, text: str) -> str:
    if suffix.lower() in {".html", ".htm"}:
        return f"<p>{html.escape(text)}</p>"
    return text.replace("\r\n", "\n")


def with_section(suffix: str, page: str, title: str, text: str) -> str | None:
    """Returns a page with a new last section; None if it has one of that title."""
    newline = "\r\n" if "\r\n" in page else "\n"
    written = heading(suffix, title, level=2)
    if written in page.replace("\r\n", "\n").split("\n") or ("\n" in written and written in page):
        return None
    ending = "" if page.endswith("\n") or not page else newline
    blank = "" if not page or page.endswith(("\n\n", "\n\r\n")) else newline
    section = f"{written}\n\n{body(suffix, text)}\n".replace("\n", newline)
    return f"{page}{ending}{blank}{section}"


# Files that came with a prompt: which one is meant, where it goes, and the link to it in each format.

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


_NEIGHBOURS = 20
_MOST_FOLDERS = 3


def add_page(edit: AddPage, files: WorkingFiles) -> Note:
    paths = files.paths()
    place = _place(edit, files, paths)
    if place is None:
        return Note(f'No page added: there is no folder called "{short(edit.where or "")}".', changed=False)
    path = place.folder / f"{slug(edit.title) or 'page'}{place.suffix}"
    beside = [neighbour for neighbour in paths if is_neighbour(neighbour, place)]
    neighbours = [text for neighbour in beside[:_NEIGHBOURS] if (text := files.read(neighbour))]
    try:
        files.create(path, page_text(place.suffix, edit.title, edit.text, neighbours))
    except FileExistsError:
        return Note(f"No page added: there already is {path}.", changed=False)
    return Note(f"Added the page {path}{_add_entry(files, path, edit.title)}.{_doubt(edit, place)}", changed=True)


def _place(edit: AddPage, files: WorkingFiles, paths: Sequence[PurePosixPath]) -> NewPlace | None:
    if edit.where is None:
        return place_for(edit.title, paths, _sites(files))
    named = places.named_folder(places.folders_of(paths), edit.where)
    return NewPlace(named, suffix_in(named, paths)) if named is not None else None


def _sites(files: WorkingFiles) -> set[PurePosixPath]:
    """Returns the folders that tables of contents list pages of."""
    found = set[PurePosixPath]()
    for path in files.navigation_files():
        with contextlib.suppress(ValueError):
            if menu := read_navigation(path, files.read(path) or ""):
                found.add(menu.root)
    return found


def _doubt(edit: AddPage, place: NewPlace) -> str:
    if not place.others:
        return ""
    named = " or ".join(f"`{folder}`" for folder in place.others[:_MOST_FOLDERS])
    way = f'Add a page called "{short(edit.title)}" in {place.others[0]} with the text: …'
    return f" It could be in {named} as well: `{way}`."


def _add_entry(files: WorkingFiles, page: PurePosixPath, title: str) -> str:
    """Adds a page to the navigation and says so; says nothing where there is none."""
    try:
        navigation = find_navigation(page, files.navigation_files(), files.read)
        text = with_entry(navigation, page, title) if navigation else None
    except ValueError as error:
        return f"; the navigation could not be read ({error}), so it has no entry there"
    if navigation is None:
        return ""
    if text is None:
        return f"; it has no entry in {navigation.path}, as no page near it has one"
    files.write(navigation.path, text)
    return f", with an entry in {navigation.path}"


def add_section(edit: AddSection, files: WorkingFiles) -> Note:
    place = places.find_page(files.paths(), edit.page, files.title)
    before = files.read(place.pages[0]) if place.pages else None
    if before is None:
        return Note(f'No section added: no page is called "{short(edit.page)}".', changed=False)
    path = place.pages[0]
    text = with_section(path.suffix, before, edit.title, edit.text)
    if text is None:
        return Note(f'No section added: {path} already has a section "{short(edit.title)}".', changed=False)
    files.write(path, text)
    others = f" {taken(edit.page, place)}" if place.also_called else ""
    return Note(f'Added the section "{short(edit.title)}" to {path}.{others}', changed=True)


def add_attachment(edit: AddAttachment, files: WorkingFiles, given: Sequence[GivenFile]) -> Note:
    file = find_given(given, edit.file)
    if file is None:
        return Note(f'Nothing added: no file called "{short(edit.file)}" came with this.', changed=False)
    place = places.find_page(files.paths(), edit.page, files.title)
    before = files.read(place.pages[0]) if place.pages else None
    if before is None:
        return Note(f'{file.name} was not added: no page is called "{short(edit.page)}".', changed=False)
    page, target = place.pages[0], pictures_folder(files) / file.name
    try:
        files.place(target, file.path.read_bytes())
    except FileExistsError:
        return Note(f"{file.name} was not added: there already is {target}.", changed=False)
    files.write(page, link_at_end(before, page, target))
    others = f" {taken(edit.page, place)}" if place.also_called else ""
    return Note(f"Added {target}, and a link to it at the end of {page}.{others}", changed=True, used=file.name)
