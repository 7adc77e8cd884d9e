"""Updates the version that the pages name, where they name one."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from bot.jobserver.documents.records import is_record
from bot.jobserver.editors.builtin.answers import Note, nothing_called, plural, short
from bot.jobserver.editors.builtin.edits import Replace, UpdateVersion
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.places import Place
from bot.jobserver.editors.builtin.word_edits import pages_at, replace_on

_NAMED = re.compile(r"\b(?P<word>[Vv]ersion|VERSION)[ \t]{1,4}(?P<number>v?\d{1,5}(?:\.\d{1,5}){0,3})(?![\w-]|\.\d)")
_MOST_NAMED = 4


def update_version(edit: UpdateVersion, files: WorkingFiles) -> Note:
    """Replaces "version 2.0", where that is the only one that pages name; those that tell of the past stay."""
    words = f"Updated the version to {edit.new}"
    place = pages_at(files, edit.where)
    if not place.pages:
        return nothing_called(words, edit.where)
    pages = tuple(path for path in place.pages if not is_record(path))
    named = _named(files, pages)
    versions = Counter[str]()
    for (_, number), count in named.items():
        versions[number] += count
    if len(versions) != 1:
        return Note(_which(versions, edit.new), changed=False)
    if edit.new in versions:
        return Note(f"Nothing changed: the pages name version {edit.new} already.", changed=False)
    notes = [
        replace_on(Place(pages, is_folder=True), Replace(f"{word} {old}", f"{word} {edit.new}"), files)
        for word, old in named
    ]
    return Note(" ".join(note.text for note in notes), any(note.changed for note in notes))


def _named(files: WorkingFiles, paths: Sequence[PurePosixPath]) -> Counter[tuple[str, str]]:
    found = Counter[tuple[str, str]]()
    for path in paths:
        found.update((match["word"], match["number"]) for match in _NAMED.finditer(files.read(path) or ""))
    return found


def _which(versions: Counter[str], new: str) -> str:
    if not versions:
        return (
            'Nothing changed: no page says "version" with a number. Name the old words, too: '
            f'`Replace "the old version" with "{short(new)}"`.'
        )
    told = ", ".join(f"{number} ({plural(count, 'place')})" for number, count in versions.most_common(_MOST_NAMED))
    first = versions.most_common(1)[0][0]
    return f'Nothing changed: pages name several versions, {told}. Say which: `Replace "{first}" with "{short(new)}"`.'
