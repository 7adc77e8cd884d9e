"""Renames a page: its file, title, menu entries and links to it; adds a redirect if the site supports that."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.navigation import Navigation, read_navigation
from bot.jobserver.documents.navigation_entries import scalar
from bot.jobserver.documents.parsing import PAGE_SUFFIXES, parse_page
from bot.jobserver.editors.builtin.edits import Note, Rename, RenamePage, Replace, chosen, listed, plural, short
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.page_rewrites import (
    Relinker,
    Renaming,
    new_path,
    retitled,
    with_new_address,
    with_redirect,
)
from bot.jobserver.editors.builtin.places import find_page
from bot.jobserver.editors.builtin.word_edits import replace

_FIRST_PAGES = frozenset(("index", "readme", "_index", "home", "summary", "_sidebar", "_toc"))
_ADDRESS_KEYS = ("slug", "permalink", "url", "id")
_MINTLIFY = frozenset(("docs.json", "mint.json"))
_MENUS_OF_PAGES = frozenset(("SUMMARY.md", "_sidebar.md"))
_USUAL_ROOTS = tuple(
    map(PurePosixPath, (".", "docs", "content", "src", "src/content/docs", "src/pages", "pages", "website"))
)
_TOKEN = re.compile(r"[\w./~%-]+")
_INCLUDES = re.compile(r"^(?:import\s|.{0,40}include|--8<--).*$", re.MULTILINE)


@dataclass(frozen=True)
class _PageToRename:
    """The chosen page, and a sentence about others with the same name."""

    renaming: Renaming
    text: str
    also: str


def rename_page(edit: RenamePage, files: WorkingFiles) -> Note:
    """Renames the page that a person means. Raises OSError."""
    paths = files.paths()
    place = find_page(paths, edit.page, files.title)
    text = files.read(place.pages[0]) if place.pages else None
    if text is None:
        return Note(f'Nothing renamed: no page is called "{short(edit.page)}".', changed=False)
    old = place.pages[0]
    title = files.title(old) or ""
    wanted = _wanted(old, title, edit.title)
    if wanted is None:
        return Note(f"Nothing renamed: {old} can get another name, and no other folder or ending.", changed=False)
    kept = _why_file_stays(files, paths, wanted, text) if wanted.new != old else ""
    renaming = Renaming(old, old if kept else wanted.new, title, wanted.new_title)
    if renaming.new != old and renaming.new in set(paths):
        return Note(f"Nothing renamed: there already is {renaming.new}.", changed=False)
    if renaming.new == old and renaming.new_title == title:
        return Note(f"Nothing renamed: {old} is called so already{_because(kept)}.", changed=False)
    return _rename(files, paths, _PageToRename(renaming, text, chosen(edit.page, place)), kept)


def rename(edit: Rename, files: WorkingFiles) -> Note:
    """Renames the page of this name or, if there is none, replaces the words."""
    if not find_page(files.paths(), edit.old, files.title).pages:
        return replace(Replace(edit.old, edit.new), files)
    note = rename_page(RenamePage(edit.old, edit.new), files)
    words = f'Replace "{short(edit.old)}" with "{short(edit.new)}"'
    return Note(f"{note.text} The words in other pages stay; `{words}` changes them.", note.changed)


def _wanted(old: PurePosixPath, title: str, written: str) -> Renaming | None:
    """Reads a new name as a title, or as a file name in the same folder; None for any other path."""
    path = PurePosixPath(written.removeprefix("./"))
    if path.suffix.lower() not in PAGE_SUFFIXES:
        return None if "/" in written and " " not in written else Renaming(old, new_path(old, written), title, written)
    if path.suffix != old.suffix or path.parent not in {old.parent, PurePosixPath()} or path.name.startswith("."):
        return None
    return Renaming(old, old.with_name(path.name), title, title)


def _why_file_stays(files: WorkingFiles, paths: Sequence[PurePosixPath], wanted: Renaming, text: str) -> str:
    """Returns why the file must keep its name: something other than a page or menu refers to it."""
    old = wanted.old
    front = find_front_matter(text)
    address = next((key for key in _ADDRESS_KEYS if front and key in front.values), None)
    if old.stem.lower() in _FIRST_PAGES:
        return "it is the first page of its folder"
    if address:
        return f"its `{address}` says its address"
    settings = (*files.settings_above(old), *_unread_menus(files), *files.other_pages())
    named = next((path for path in settings if _names(files.read(path) or "", old)), None)
    if named:
        return f"{named} names it, which is for people to change"
    including = next((path for path in paths if _is_included(files.read(path) or "", old)), None)
    return f"{including} includes it" if including else ""


def _names(text: str, page: PurePosixPath) -> bool:
    """Tells whether a text contains a path that ends with the page's name, with or without suffix."""
    return any(
        PurePosixPath(token).name in {page.name, page.stem} for token in _TOKEN.findall(text) if token.strip("./")
    )


def _is_included(text: str, page: PurePosixPath) -> bool:
    return page.stem in text and any(_names(line[0], page) for line in _INCLUDES.finditer(text) if "](" not in line[0])


def _rename(files: WorkingFiles, paths: Sequence[PurePosixPath], found: _PageToRename, kept: str) -> Note:
    renaming = found.renaming
    menus = list(_menus(files))
    relinker = Relinker(renaming, paths, _roots(menus))
    links, linking = _relink(files, paths, relinker, renaming)
    page = files.read(renaming.old) or found.text
    files.move(renaming.old, renaming.new, retitled(page, renaming))
    done = [f"{plural(links, 'link')} in {listed(linking)}"] if links else []
    for menu in menus:
        done += _change_menu(files, menu, relinker, renaming)
    renamed = f"Renamed {renaming.old} to {renaming.new}" if renaming.old != renaming.new else f"Renamed {renaming.old}"
    if renaming.new_title != renaming.old_title:
        renamed += f', and its title to "{short(renaming.new_title)}"'
    along = f"; with it {_and(done)}" if done else ""
    note = f"{renamed}{along}.{f' The file keeps its name{_because(kept)}.' if kept else ''}"
    if renaming.old != renaming.new and not any("redirect" in part for part in done):
        note += " No redirect from the old address was added."
    return Note(f"{note} {found.also}".strip(), changed=True)


def _relink(
    files: WorkingFiles, paths: Sequence[PurePosixPath], relinker: Relinker, renaming: Renaming
) -> tuple[int, list[PurePosixPath]]:
    count, linking = 0, list[PurePosixPath]()
    for path in paths:
        text = files.read(path)
        if text is None or not (path == renaming.old or renaming.old.stem in text):
            continue
        changed, links = relinker.relinked(path, parse_page(path, text))
        if links:
            files.write(path, changed)
            count += links
            linking.append(path)
    return count, linking


def _menus(files: WorkingFiles) -> Iterator[Navigation]:
    yield from (menu for path in _menu_files(files) if (menu := _menu(files, path)) is not None)


def _menu_files(files: WorkingFiles) -> list[PurePosixPath]:
    found = [path for path in files.navigation_files() if path.name not in _MENUS_OF_PAGES]
    return sorted(found, key=lambda path: len(path.parts))


def _menu(files: WorkingFiles, path: PurePosixPath) -> Navigation | None:
    with contextlib.suppress(ValueError):
        return read_navigation(path, files.read(path) or "")
    return None


def _unread_menus(files: WorkingFiles) -> Iterator[PurePosixPath]:
    """Yields menus that are broken, too large, or empty."""
    yield from (path for path in _menu_files(files) if _menu(files, path) is None)


def _roots(menus: Sequence[Navigation]) -> list[PurePosixPath]:
    return list(dict.fromkeys([*(menu.root for menu in menus), *_USUAL_ROOTS]))


def _change_menu(files: WorkingFiles, menu: Navigation, relinker: Relinker, renaming: Renaming) -> list[str]:
    """Changes a menu, and returns descriptions of the changes."""
    if menu.path.name in _MINTLIFY:
        return _change_mintlify(files, menu, renaming) if menu.root in renaming.old.parents else []
    text = menu.text
    for entry in reversed(menu.entries):
        if menu.target(entry) == renaming.old and (new := relinker.moved(entry.target)) is not None:
            start = text.rindex(entry.target, 0, entry.end)
            before = _titled(text[:start], renaming)
            text = before + new + text[start + len(entry.target) :]
    if text == menu.text:
        return []
    files.write(menu.path, text)
    return [f"its entry in {menu.path}"]


def _titled(before: str, renaming: Renaming) -> str:
    """Returns the text before an entry of `nav`, with the entry's title changed if it was the page's."""
    line_start = before.rfind("\n") + 1
    line, sign, space = before[line_start:].rpartition(":")
    dash, _, title = line.partition("- ")
    if not sign or title.strip().strip("\"'") != renaming.old_title or not renaming.old_title:
        return before
    return f"{before[:line_start]}{dash}- {scalar(renaming.new_title)}:{space}"


def _change_mintlify(files: WorkingFiles, menu: Navigation, renaming: Renaming) -> list[str]:
    old, new = (path.relative_to(menu.root).with_suffix("") for path in (renaming.old, renaming.new))
    if old == new:
        return []
    text = with_new_address(menu.text, old, new)
    redirected = with_redirect(text, old, new)
    done = ["its entry in " + str(menu.path)] if text != menu.text else []
    if text != menu.text or redirected:
        files.write(menu.path, redirected or text)
    return [*done, f"a redirect from /{old}"] if redirected else done


def _because(why: str) -> str:
    return f", as {why}" if why else ""


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
