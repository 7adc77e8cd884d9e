"""Adds pages, sections and files."""

import contextlib
from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.jobserver.documents.navigation import find_navigation, read_navigation, with_entry
from bot.jobserver.documents.slugs import slug
from bot.jobserver.editors.builtin import places
from bot.jobserver.editors.builtin.answers import Note, short, taken
from bot.jobserver.editors.builtin.attachments import GivenFile, find_given, link_at_end, pictures_folder
from bot.jobserver.editors.builtin.edits import AddAttachment, AddPage, AddSection
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.new_page_places import NewPlace, is_neighbour, place_for, suffix_in
from bot.jobserver.editors.builtin.new_pages import page_text, with_section

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
