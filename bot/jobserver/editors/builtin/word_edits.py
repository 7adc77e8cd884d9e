"""Replaces words and fixes spelling on pages, and reports what was left alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.editors.builtin.edits import (
    FixSpelling,
    Note,
    Replace,
    chosen,
    listed,
    nothing_called,
    plural,
    short,
    were,
)
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.places import Place, find_place
from bot.jobserver.editors.builtin.replacement import OTHER_WORDS, LinkedAnchors, Replacement, replace_in_page
from bot.jobserver.editors.builtin.spelling import DoubtfulWord, SpellingResult, fix_spelling

_MOST_NAMED = 3
"""How many pages that could not be read are named."""
_MOST_DOUBTS = 20
_MOST_WORDS = 8


def pages_at(files: WorkingFiles, place: str | None) -> Place:
    """Returns the pages that a person means; all of them if no place was named."""
    paths = files.paths()
    return Place(tuple(paths), is_folder=True) if place is None else find_place(paths, place, files.title)


def replace(edit: Replace, files: WorkingFiles) -> Note:
    place = pages_at(files, edit.where)
    words = f'Replaced "{short(edit.old)}" with "{short(edit.new)}"'
    if not place.pages:
        return nothing_called(words, edit.where)
    results, notes = _replace_each(edit, files, place.pages)
    counts = {path: result.count for path, result in results.items() if result.count}
    left = sum((result.left for result in results.values()), Counter[str]())
    words_around = sum((result.other_words for result in results.values()), Counter[str]())
    notes += _left_alone(left, words_around, [path for path, result in results.items() if result.left])
    return _note(words, counts, [chosen(edit.where, place), *notes])


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


def correct_spelling(edit: FixSpelling, files: WorkingFiles) -> Note:
    words = "Corrected the spelling"
    place = pages_at(files, edit.where)
    if not place.pages:
        return nothing_called(words, edit.where)
    result = fix_spelling(files, place.pages)
    if not result.counts and not result.doubts and result.elsewhere:
        note = f"{chosen(edit.where, place)} Misspellings may be in {listed(result.elsewhere)}: `Fix the spelling`."
        return _note(words, {}, [note.strip(), *_spelling_notes(result)])
    return _note(words, result.counts, [chosen(edit.where, place), *_spelling_notes(result)])


def _spelling_notes(result: SpellingResult) -> list[str]:
    notes = _not_read(result.not_parsed)
    if result.foreign:
        pages = plural(result.foreign, "page")
        notes.append(f"{pages} not surely in English {were(result.foreign)} left alone.")
    first: dict[str, DoubtfulWord] = {}
    for doubt in result.doubts:
        first.setdefault(doubt.wrong, doubt)
    if first:
        notes.append("Not changed, as they may be right or names; please look at them:")
        notes += [_doubt(doubt) for doubt in list(first.values())[:_MOST_DOUBTS]]
        more = len(first) - _MOST_DOUBTS
        notes += [f"- and {plural(more, 'more word')}"] if more > 0 else []
    return ["\n".join(notes)] if first else notes


def _doubt(doubt: DoubtfulWord) -> str:
    meant = " or ".join(doubt.corrections[:3])
    return f'- "{doubt.wrong}" in {doubt.path}, line {doubt.line}' + (f" ({meant}?)" if meant else "")


def _note(words: str, counts: dict[PurePosixPath, int], notes: Iterable[str]) -> Note:
    more = " ".join(note for note in notes if note)
    if not counts:
        return Note(f"{words}: nothing to change. {more}".strip(), changed=False)
    done = f"{words}: {plural(sum(counts.values()), 'place')} in {plural(len(counts), 'file')}."
    return Note(f"{done} {more}".strip(), changed=True)


def _left_alone(left: Counter[str], other_words: Counter[str], paths: Sequence[PurePosixPath]) -> list[str]:
    if not left:
        return []
    kinds = [kind + (_in_brackets(other_words) if kind == OTHER_WORDS else "") for kind in left]
    numbers = list(left.values())
    counts_by_kind = [f"{plural(numbers[0], 'place')} in {kinds[0]}"]
    counts_by_kind += [f"{number} in {kind}" for number, kind in zip(numbers[1:], kinds[1:], strict=True)]
    places = (
        counts_by_kind[0] if len(counts_by_kind) == 1 else f"{', '.join(counts_by_kind[:-1])} and {counts_by_kind[-1]}"
    )
    return [
        f"{places} {were(sum(numbers))} left as {'it was' if sum(numbers) == 1 else 'they were'} ({listed(paths)})."
    ]


def _in_brackets(words: Counter[str]) -> str:
    named = [f'"{short(word)}"' for word, _ in words.most_common(_MOST_WORDS)]
    more = len(words) - len(named)
    return f" ({', '.join(named)}{f' and {more} more' if more else ''})"


def _not_read(pages: dict[PurePosixPath, str]) -> list[str]:
    return [f"Not read in {path}: {why}." for path, why in list(pages.items())[:_MOST_NAMED]]
