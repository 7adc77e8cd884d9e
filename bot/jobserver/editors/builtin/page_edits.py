"""Adds pages that look like their neighbours, and adds sections."""

import contextlib
import json
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.navigation import find_navigation, read_navigation, with_entry
from bot.jobserver.documents.navigation_entries import scalar
from bot.jobserver.documents.page import FrontMatter, slug
from bot.jobserver.editors.builtin import places
from bot.jobserver.editors.builtin.edits import AddPage, AddSection, Note, chosen, short
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.new_page_places import NewPlace, is_neighbour, place_for, suffix_in
from bot.jobserver.repository.tree_files import folders_of
from bot.jobserver.text import cut

_COUNTING_KEYS = frozenset(("sidebar_position", "nav_order", "weight", "order", "position"))
_TITLE_KEYS = frozenset(("title", "sidebarTitle", "sidebar_label", "linkTitle", "nav_title"))
_SUMMARY_KEYS = frozenset(("description", "summary", "excerpt"))
_LONGEST_SUMMARY = 160
_FIRST_HEADING = re.compile(r"\s*+#[ \t]")
_NEIGHBOURS = 20
_MOST_FOLDERS = 3


def page_text(title: str, text: str, neighbours: Sequence[str]) -> str:
    """Returns a new page with the front matter of most of its neighbours, and a heading if they have one."""
    found = [front for neighbour in neighbours if (front := find_front_matter(neighbour)) is not None]
    text = text.replace("\r\n", "\n")
    if 2 * len(found) <= len(neighbours):
        return _with_line_ends(f"# {title}\n\n{text}\n", neighbours)
    written = _front_matter(found, title, text)
    shows_title = not any(_FIRST_HEADING.match(neighbour[_end(neighbour) :]) for neighbour in neighbours)
    has_title = any("title" in matter.values for matter in found)
    opening = "" if shows_title and has_title else f"# {title}\n\n"
    return _with_line_ends(f"{written}\n{opening}{text}\n", neighbours)


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
    """Returns the value of a key: the page's own if the key is known, else the one that all others share."""
    if key in _TITLE_KEYS:
        return title
    if key in _SUMMARY_KEYS:
        return cut(" ".join(text.split("\n\n", 1)[0].split()), _LONGEST_SUMMARY)
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if key in _COUNTING_KEYS:
        return max(numbers) + 1 if numbers else None
    first = values[0]
    is_shared = len(values) > 1 and all(value == first for value in values)
    return first if is_shared and isinstance(first, str | int | bool) else None


def _written(value: str | int | bool, *, quoted: bool) -> str:  # noqa: FBT001 (a value of YAML)
    return scalar(value) if isinstance(value, str) and not quoted else json.dumps(value, ensure_ascii=False)


def with_section(page: str, title: str, text: str) -> str | None:
    """Returns a page with a new last section; None if it has one with that title."""
    newline = "\r\n" if "\r\n" in page else "\n"
    heading = f"## {title}"
    if heading in page.replace("\r\n", "\n").split("\n"):
        return None
    ending = "" if page.endswith("\n") or not page else newline
    blank = "" if not page or page.endswith(("\n\n", "\n\r\n")) else newline
    section = f"{heading}\n\n{text}\n".replace("\r\n", "\n").replace("\n", newline)
    return f"{page}{ending}{blank}{section}"


def add_page(edit: AddPage, files: WorkingFiles) -> Note:
    paths = files.paths()
    place = _place(edit, files, paths)
    if place is None:
        return Note(f'No page added: there is no folder called "{short(edit.where or "")}".', changed=False)
    path = place.folder / f"{slug(edit.title) or 'page'}{place.suffix}"
    beside = [neighbour for neighbour in paths if is_neighbour(neighbour, place)]
    neighbours = [text for neighbour in beside[:_NEIGHBOURS] if (text := files.read(neighbour))]
    try:
        files.create(path, page_text(edit.title, edit.text, neighbours))
    except FileExistsError:
        return Note(f"No page added: there already is {path}.", changed=False)
    return Note(f"Added the page {path}{_add_entry(files, path, edit.title)}.{_doubt(edit, place)}", changed=True)


def _place(edit: AddPage, files: WorkingFiles, paths: Sequence[PurePosixPath]) -> NewPlace | None:
    if edit.where is None:
        return place_for(edit.title, paths, _sites(files))
    named = places.named_folder(folders_of(paths), edit.where)
    return NewPlace(named, suffix_in(named, paths)) if named is not None else None


def _sites(files: WorkingFiles) -> set[PurePosixPath]:
    """Returns the root folders of navigation files."""
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
    """Adds a page to the navigation, and returns a phrase about it; empty if there is no navigation."""
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
    text = with_section(before, edit.title, edit.text)
    if text is None:
        return Note(f'No section added: {path} already has a section "{short(edit.title)}".', changed=False)
    files.write(path, text)
    others = f" {chosen(edit.page, place)}" if place.also_called else ""
    return Note(f'Added the section "{short(edit.title)}" to {path}.{others}', changed=True)
