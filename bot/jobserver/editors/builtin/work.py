"""Carries out edits on the files of a working copy, and says in words what was done and what was left alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import assert_never

from bot.jobserver.documents.navigation import find_navigation, with_entry
from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.documents.slugs import slug
from bot.jobserver.documents.titles import quick_title
from bot.jobserver.editors.builtin import places
from bot.jobserver.editors.builtin.attachments import GivenFile, find_given, link_at_end, pictures_folder
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.links import LinkedAnchors
from bot.jobserver.editors.builtin.new_pages import page_text, with_section
from bot.jobserver.editors.builtin.places import Place
from bot.jobserver.editors.builtin.prompt_parser import (
    AddAttachment,
    AddPage,
    AddSection,
    Edit,
    FixSpelling,
    Replace,
)
from bot.jobserver.editors.builtin.replacement import Replacement, replace_in_page
from bot.jobserver.editors.builtin.spelling import Doubt, SpellingResult, fix_spelling

_MOST_NAMED = 3
"""Pages named in a sentence."""
_MOST_DOUBTS = 20
_NEIGHBOURS = 20


@dataclass(frozen=True)
class Note:
    """What came of one edit, in words. `used`: the name of the file that came with the prompt and is a part of it."""

    text: str
    changed: bool
    used: str = ""


def carry_out(edit: Edit, files: WorkingFiles, given: Sequence[GivenFile] = ()) -> Note:
    """Changes the files. Raises EditError where that could not be done, and OSError."""
    match edit:
        case Replace():
            return _replace(edit, files)
        case FixSpelling():
            return _fix_spelling(edit, files)
        case AddPage():
            return _add_page(edit, files)
        case AddSection():
            return _add_section(edit, files)
        case AddAttachment():
            return _add_attachment(edit, files, given)
        case _:
            assert_never(edit)


def _place(files: WorkingFiles, place: str | None) -> Place:
    paths = files.paths()
    if place is None:
        return Place(tuple(paths), is_folder=True)
    return places.find_place(paths, place, lambda path: _title(files, path))


def _title(files: WorkingFiles, path: PurePosixPath) -> str | None:
    text = files.read(path)
    return quick_title(text) if text else None


def _replace(edit: Replace, files: WorkingFiles) -> Note:
    words = f'Replaced "{_short(edit.old)}" with "{_short(edit.new)}"'
    place = _place(files, edit.where)
    if not place.pages:
        return _nothing_called(words, edit.where)
    results, notes = _replace_each(edit, files, place.pages)
    counts = {path: result.count for path, result in results.items() if result.count}
    left = sum((result.left for result in results.values()), Counter[str]())
    notes += _left_alone(left, [path for path, result in results.items() if result.left])
    return _note(words, counts, [_taken(edit.where, place), *notes])


def _replace_each(
    edit: Replace, files: WorkingFiles, paths: Sequence[PurePosixPath]
) -> tuple[dict[PurePosixPath, Replacement], list[str]]:
    anchors = LinkedAnchors(files)
    results, not_parsed = dict[PurePosixPath, Replacement](), dict[PurePosixPath, str]()
    for path in paths:
        text = files.read(path)
        if text is None or edit.old not in text:
            continue
        page = parse_page(path, text)
        results[path] = replace_in_page(page, edit.old, edit.new, anchors)
        if page.not_parsed:
            not_parsed[path] = page.not_parsed
        if results[path].count:
            files.write(path, results[path].text)
    return results, _not_read(not_parsed)


def _fix_spelling(edit: FixSpelling, files: WorkingFiles) -> Note:
    words = "Corrected the spelling"
    place = _place(files, edit.where)
    if not place.pages:
        return _nothing_called(words, edit.where)
    result = fix_spelling(files, place.pages)
    return _note(words, result.counts, [_taken(edit.where, place), *_spelling_notes(result)])


def _spelling_notes(result: SpellingResult) -> list[str]:
    notes = _not_read(result.not_parsed)
    if result.foreign:
        pages = _plural(result.foreign, "page")
        notes.append(f"{pages} not surely in English {_were(result.foreign)} left alone.")
    first: dict[str, Doubt] = {}
    for doubt in result.doubts:
        first.setdefault(doubt.wrong, doubt)
    if first:
        notes.append("Not changed, as they may be right or names; please look at them:")
        notes += [_doubt(doubt) for doubt in list(first.values())[:_MOST_DOUBTS]]
        more = len(first) - _MOST_DOUBTS
        notes += [f"- and {_plural(more, 'more word')}"] if more > 0 else []
    return ["\n".join(notes)] if first else notes


def _doubt(doubt: Doubt) -> str:
    meant = " or ".join(doubt.corrections[:3])
    return f'- "{doubt.wrong}" in {doubt.path}, line {doubt.line}' + (f" ({meant}?)" if meant else "")


def _note(words: str, counts: dict[PurePosixPath, int], notes: Iterable[str]) -> Note:
    more = " ".join(note for note in notes if note)
    if not counts:
        return Note(f"{words}: nothing to change. {more}".strip(), changed=False)
    done = f"{words}: {_plural(sum(counts.values()), 'place')} in {_plural(len(counts), 'file')}."
    return Note(f"{done} {more}".strip(), changed=True)


def _nothing_called(words: str, place: str | None) -> Note:
    called = f'no page or folder is called "{_short(place)}"' if place else "there are no pages here"
    return Note(f"{words}: nothing, as {called}.", changed=False)


def _taken(name: str | None, place: Place) -> str:
    """Says which page or folder was meant, where the name alone does not tell."""
    if name is None or not place.pages or (place.is_folder and not place.also_called):
        return ""
    if place.is_folder:
        return f'Other folders called "{_short(name)}" were left alone: {_listed(place.also_called)}.'
    taken = place.pages[0]
    others = f"; {_listed(place.also_called)} {_have(place.also_called)} that name, too" if place.also_called else ""
    return "" if str(taken) == name and not others else f'"{_short(name)}" was taken to be {taken}{others}.'


def _left_alone(left: Counter[str], paths: Sequence[PurePosixPath]) -> list[str]:
    if not left:
        return []
    first, *rest = (f"in {kind}" for kind in left)
    numbers = list(left.values())
    told = [f"{_plural(numbers[0], 'place')} {first}"]
    told += [f"{number} {kind}" for number, kind in zip(numbers[1:], rest, strict=True)]
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return [
        f"{listed} {_were(sum(numbers))} left as {'it was' if sum(numbers) == 1 else 'they were'} ({_listed(paths)})."
    ]


def _not_read(pages: dict[PurePosixPath, str]) -> list[str]:
    return [f"Not read in {path}: {why}." for path, why in list(pages.items())[:_MOST_NAMED]]


def _add_page(edit: AddPage, files: WorkingFiles) -> Note:
    paths = files.paths()
    folders = places.folders_of(paths)
    home = places.default_folder(folders)
    if edit.where is not None:
        named = places.named_folder(folders, edit.where)
        if named is None:
            return Note(f'No page added: there is no folder called "{_short(edit.where)}".', changed=False)
        home = named
    beside = [path for path in paths if path.parent == home] or paths
    suffix = places.most_common_suffix(beside)
    path = home / f"{slug(edit.title) or 'page'}{suffix}"
    neighbours = [text for path in beside if path.suffix == suffix and (text := files.read(path))][:_NEIGHBOURS]
    try:
        files.create(path, page_text(suffix, edit.title, edit.text, neighbours))
    except FileExistsError:
        return Note(f"No page added: there already is {path}.", changed=False)
    return Note(f"Added the page {path}{_add_entry(files, path, edit.title)}.", changed=True)


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


def _add_section(edit: AddSection, files: WorkingFiles) -> Note:
    place = places.find_page(files.paths(), edit.page, lambda path: _title(files, path))
    before = files.read(place.pages[0]) if place.pages else None
    if before is None:
        return Note(f'No section added: no page is called "{_short(edit.page)}".', changed=False)
    path = place.pages[0]
    text = with_section(path.suffix, before, edit.title, edit.text)
    if text is None:
        return Note(f'No section added: {path} already has a section "{_short(edit.title)}".', changed=False)
    files.write(path, text)
    others = f" {_taken(edit.page, place)}" if place.also_called else ""
    return Note(f'Added the section "{_short(edit.title)}" to {path}.{others}', changed=True)


def _add_attachment(edit: AddAttachment, files: WorkingFiles, given: Sequence[GivenFile]) -> Note:
    file = find_given(given, edit.file)
    if file is None:
        return Note(f'Nothing added: no file called "{_short(edit.file)}" came with this.', changed=False)
    place = places.find_page(files.paths(), edit.page, lambda path: _title(files, path))
    before = files.read(place.pages[0]) if place.pages else None
    if before is None:
        return Note(f'{file.name} was not added: no page is called "{_short(edit.page)}".', changed=False)
    page, target = place.pages[0], pictures_folder(files) / file.name
    try:
        files.place(target, file.path.read_bytes())
    except FileExistsError:
        return Note(f"{file.name} was not added: there already is {target}.", changed=False)
    files.write(page, link_at_end(before, page, target))
    others = f" {_taken(edit.page, place)}" if place.also_called else ""
    return Note(f"Added {target}, and a link to it at the end of {page}.{others}", changed=True, used=file.name)


def _listed(paths: Sequence[PurePosixPath]) -> str:
    named = ", ".join(map(str, paths[:_MOST_NAMED]))
    return named if len(paths) <= _MOST_NAMED else f"{named} and {len(paths) - _MOST_NAMED} more"


def _have(paths: Sequence[PurePosixPath]) -> str:
    return "has" if len(paths) == 1 else "have"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"  # noqa: PLR2004 (what fits one line of a summary)
