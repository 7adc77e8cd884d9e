"""Carries out what the prompt parser understands, with no network and no model."""

import asyncio
import html
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import assert_never

from bot.jobserver.editors.builtin import documents, spelling
from bot.jobserver.editors.builtin.documents import Documents
from bot.jobserver.editors.builtin.prompt_parser import AddPage, AddSection, Edit, FixSpelling, Replace, parse
from bot.jobserver.editors.builtin.replacement import replace_words
from bot.jobserver.editors.interface import EditResult, EditTask, Progress
from bot.jobserver.editors.job_log import append_line

ABILITIES = (
    'The built-in editor can: replace "this" with "that" [in a page or folder]; fix the spelling [in ...]; '
    "add a page called X with the text: ...; add a section called X to PAGE with the text: ..."
)


class BuiltinEditor:
    """Independent of everything but the files of the working copy."""

    async def edit(self, task: EditTask, _: Progress) -> EditResult:
        tree = Documents(task.workspace.copy)
        notes = [await _apply(edit, tree) for edit in parse(task.prompt)]
        summary = "\n".join(notes) or f"Not understood, so nothing was changed. {ABILITIES}"
        await asyncio.to_thread(append_line, task.log, summary)
        return EditResult(summary)


async def _apply(edit: Edit, tree: Documents) -> str:
    match edit:
        case Replace():
            return await asyncio.to_thread(_replace, edit, tree)
        case FixSpelling():
            return await _fix_spelling(edit, tree)
        case AddPage():
            return await asyncio.to_thread(_add_page, edit, tree)
        case AddSection():
            return await asyncio.to_thread(_add_section, edit, tree)
        case _:
            assert_never(edit)


def _documents_in(tree: Documents, place: str | None) -> list[PurePosixPath]:
    paths = tree.paths()
    if place is None:
        return paths
    found = documents.matching(paths, place)
    if not found and documents.slug(place) in {"docs", "doc"}:  # in a repository without such a folder: all of it
        return paths
    return found


def _replace(edit: Replace, tree: Documents) -> str:
    def change(data: bytes, _: PurePosixPath) -> tuple[bytes, int]:
        text, count = replace_words(data.decode(), edit.old, edit.new)
        return text.encode(), count

    paths = _documents_in(tree, edit.where)
    words = f'Replaced "{_short(edit.old)}" with "{_short(edit.new)}"'
    return _summary(words, _change_each(tree, paths, change), edit.where, paths)


async def _fix_spelling(edit: FixSpelling, tree: Documents) -> str:
    paths = await asyncio.to_thread(_documents_in, tree, edit.where)
    found = await spelling.find_corrections(tree.root, paths)

    def change(data: bytes, path: PurePosixPath) -> tuple[bytes, int]:
        return spelling.apply_corrections(data, found.get(path, ()))

    counts = await asyncio.to_thread(_change_each, tree, paths, change)
    return _summary("Corrected the spelling", counts, edit.where, paths)


_Change = Callable[[bytes, PurePosixPath], tuple[bytes, int]]


def _change_each(tree: Documents, paths: list[PurePosixPath], change: _Change) -> list[int]:
    """Returns how often each changed file was changed."""
    counts: list[int] = []
    for path in paths:
        before = tree.read(path)
        after, count = change(before, path) if before is not None else (b"", 0)
        if count and after != before:
            tree.write(path, after)
            counts.append(count)
    return counts


def _summary(words: str, counts: list[int], place: str | None, paths: list[PurePosixPath]) -> str:
    if place is not None and not paths:
        return f'{words}: nothing, as no page or folder is called "{_short(place)}".'
    if not counts:
        return f"{words}: nothing to change."
    return f"{words}: {_plural(sum(counts), 'place')} in {_plural(len(counts), 'file')}."


def _add_page(edit: AddPage, tree: Documents) -> str:
    paths = tree.paths()
    folders = documents.folders_of(paths)
    home = documents.default_folder(folders)
    if edit.where is not None:
        named = _named_folder(folders, edit.where)
        if named is None:
            return f'No page added: there is no folder called "{_short(edit.where)}".'
        home = named
    path = home / f"{documents.slug(edit.title) or 'page'}{documents.most_common_suffix(paths)}"
    try:
        tree.create(path, _page_text(path.suffix, edit.title, edit.text).encode())
    except FileExistsError:
        return f"No page added: there already is {path}."
    return f"Added the page {path}."


def _named_folder(folders: set[PurePosixPath], place: str) -> PurePosixPath | None:
    wanted = PurePosixPath(place.removeprefix("./"))
    if wanted in folders:
        return wanted
    found = sorted(folder for folder in folders if folder.name and documents.slug(folder.name) == documents.slug(place))
    return found[0] if found else None


def _add_section(edit: AddSection, tree: Documents) -> str:
    path = _named_page(tree, edit.page)
    before = tree.read(path) if path is not None else None
    if path is None or before is None:
        return f'No section added: no page is called "{_short(edit.page)}".'
    newline = "\r\n" if b"\r\n" in before else "\n"
    title = _heading(path.suffix, edit.title, level=2)
    existing = before.decode()
    if title in existing.replace("\r\n", "\n").split("\n") or (len(title.split("\n")) > 1 and title in existing):
        return f'No section added: {path} already has a section "{_short(edit.title)}".'
    section = f"{title}\n\n{_body(path.suffix, edit.text)}\n"
    text = f"{existing.rstrip()}\n\n{section}".replace("\r\n", "\n").replace("\n", newline)
    tree.write(path, text.encode())
    return f'Added the section "{_short(edit.title)}" to {path}.'


def _named_page(tree: Documents, page: str) -> PurePosixPath | None:
    paths = tree.paths()
    named = [path for path in documents.matching(paths, page) if page.endswith(path.name) or _is_called(path, page)]
    if named:
        return named[0]
    wanted = documents.slug(page)
    return next((path for path in paths if wanted and documents.slug(_first_heading(tree.read(path))) == wanted), None)


def _is_called(path: PurePosixPath, page: str) -> bool:
    return documents.slug(PurePosixPath(page).name) in {documents.slug(path.stem), documents.slug(path.name)}


def _first_heading(data: bytes | None) -> str:
    for line in (data or b"").decode().splitlines():
        if line.startswith(("# ", "= ")):
            return line[2:]
    return ""


def _page_text(suffix: str, title: str, text: str) -> str:
    return f"{_heading(suffix, title, level=1)}\n\n{_body(suffix, text)}\n"


def _heading(suffix: str, title: str, *, level: int) -> str:
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


def _body(suffix: str, text: str) -> str:
    if suffix.lower() in {".html", ".htm"}:
        return f"<p>{html.escape(text)}</p>"
    return text.replace("\r\n", "\n")


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"  # noqa: PLR2004 (what fits one line of a summary)
