"""The built-in editor: carries out what `instructions` understands, with no network and no model."""

import asyncio
import html
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from bot.jobserver.editors import documents, spelling
from bot.jobserver.editors.documents import Documents
from bot.jobserver.editors.instructions import AddPage, AddSection, FixSpelling, Instruction, Replace, parse
from bot.jobserver.editors.replacement import replace_words

ABILITIES = (
    'The built-in editor can: replace "this" with "that" [in a page or folder]; fix the spelling [in ...]; '
    "add a page called X with the text: ...; add a section called X to PAGE with the text: ..."
)


class BuiltinEditor:
    """Independent of everything but the files of the working copy."""

    async def edit(self, prompt: str, directory: Path, log: Path) -> str:
        instructions = parse(prompt)
        tree = Documents(directory)
        notes = [await _carry_out(instruction, tree) for instruction in instructions]
        summary = "\n".join(notes) or f"Not understood, so nothing was changed. {ABILITIES}"
        await asyncio.to_thread(_append, log, summary)
        return summary


def _append(log: Path, text: str) -> None:
    with log.open("ab") as stream:
        stream.write(text.encode(errors="replace") + b"\n")


async def _carry_out(instruction: Instruction, tree: Documents) -> str:
    match instruction:
        case Replace():
            return await asyncio.to_thread(_replace, instruction, tree)
        case FixSpelling():
            return await _fix_spelling(instruction, tree)
        case AddPage():
            return await asyncio.to_thread(_add_page, instruction, tree)
        case AddSection():
            return await asyncio.to_thread(_add_section, instruction, tree)


def _in_place(tree: Documents, place: str | None) -> list[PurePosixPath]:
    paths = tree.paths()
    if place is None:
        return paths
    found = documents.matching(paths, place)
    if not found and documents.slug(place) in {"docs", "doc"}:  # in a repository without such a folder: all of it
        return paths
    return found


def _replace(instruction: Replace, tree: Documents) -> str:
    def change(data: bytes, _: PurePosixPath) -> tuple[bytes, int]:
        text, count = replace_words(data.decode(), instruction.old, instruction.new)
        return text.encode(), count

    paths = _in_place(tree, instruction.where)
    words = f'Replaced "{_short(instruction.old)}" with "{_short(instruction.new)}"'
    return _tell(words, _change_each(tree, paths, change), instruction.where, paths)


async def _fix_spelling(instruction: FixSpelling, tree: Documents) -> str:
    paths = await asyncio.to_thread(_in_place, tree, instruction.where)
    found = await spelling.corrections(tree.root, paths)

    def change(data: bytes, path: PurePosixPath) -> tuple[bytes, int]:
        return spelling.corrected(data, found.get(path, ()))

    counts = await asyncio.to_thread(_change_each, tree, paths, change)
    return _tell("Corrected the spelling", counts, instruction.where, paths)


_Change = Callable[[bytes, PurePosixPath], tuple[bytes, int]]


def _change_each(tree: Documents, paths: list[PurePosixPath], change: _Change) -> list[int]:
    """How often each changed file was changed."""
    counts: list[int] = []
    for path in paths:
        before = tree.read(path)
        after, count = change(before, path) if before is not None else (b"", 0)
        if count and after != before:
            tree.write(path, after)
            counts.append(count)
    return counts


def _tell(words: str, counts: list[int], place: str | None, paths: list[PurePosixPath]) -> str:
    if place is not None and not paths:
        return f'{words}: nothing, as no page or folder is called "{_short(place)}".'
    if not counts:
        return f"{words}: nothing to change."
    return f"{words}: {_plural(sum(counts), 'place')} in {_plural(len(counts), 'file')}."


def _add_page(instruction: AddPage, tree: Documents) -> str:
    paths = tree.paths()
    folders = documents.folders_of(paths)
    home = documents.home_of_pages(folders)
    if instruction.where is not None:
        named = _named_folder(folders, instruction.where)
        if named is None:
            return f'No page added: there is no folder called "{_short(instruction.where)}".'
        home = named
    path = home / f"{documents.slug(instruction.title) or 'page'}{documents.usual_suffix(paths)}"
    try:
        tree.create(path, _page_text(path.suffix, instruction.title, instruction.text).encode())
    except FileExistsError:
        return f"No page added: there already is {path}."
    return f"Added the page {path}."


def _named_folder(folders: set[PurePosixPath], place: str) -> PurePosixPath | None:
    wanted = PurePosixPath(place.removeprefix("./"))
    if wanted in folders:
        return wanted
    found = sorted(folder for folder in folders if folder.name and documents.slug(folder.name) == documents.slug(place))
    return found[0] if found else None


def _add_section(instruction: AddSection, tree: Documents) -> str:
    path = _named_page(tree, instruction.page)
    before = tree.read(path) if path is not None else None
    if path is None or before is None:
        return f'No section added: no page is called "{_short(instruction.page)}".'
    newline = "\r\n" if b"\r\n" in before else "\n"
    title = _heading(path.suffix, instruction.title, level=2)
    existing = before.decode()
    if title in existing.replace("\r\n", "\n").split("\n") or (len(title.split("\n")) > 1 and title in existing):
        return f'No section added: {path} already has a section "{_short(instruction.title)}".'
    section = f"{title}\n\n{_body(path.suffix, instruction.text)}\n"
    text = f"{existing.rstrip()}\n\n{section}".replace("\r\n", "\n").replace("\n", newline)
    tree.write(path, text.encode())
    return f'Added the section "{_short(instruction.title)}" to {path}.'


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
