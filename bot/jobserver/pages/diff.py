"""A change as the pages show it: its files, their hunks and numbered lines, and what is not shown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from bot.jobapi.models import ChangeKind
from bot.jobserver.pull_requests.local.contents import fair_shares
from bot.jobserver.repository.listings import ChangedFile, GitFileMode, PullRequestChange
from bot.runtime.text import MISLEADING

_DECEPTIVE = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f]|{MISLEADING.pattern}")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
LineKind = Literal["added", "removed", "context"]
_KINDS: dict[str, LineKind] = {"+": "added", "-": "removed", " ": "context"}
FILES_ON_A_PAGE = 100
FILE_LINES = 1500
PAGE_LINES = 6000
_MODES = {GitFileMode.LINK: "a link", GitFileMode.SUBMODULE: "a submodule (another repository)"}


@dataclass(frozen=True)
class DiffLine:
    """One line of a hunk, with its number before and after."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    text: str


@dataclass(frozen=True)
class Hunk:
    """Lines that changed together; `heading` is git's guess of the section that they are in."""

    heading: str
    lines: tuple[DiffLine, ...]


def parse_patch(patch: str) -> tuple[Hunk, ...]:
    """Reads git's unified diff of one file, even if it is cut off at the end of a line."""
    parts = re.split(r"^(?=@@ |diff --git )", patch, flags=re.MULTILINE)
    found = ((_HUNK.match(part), part) for part in parts)
    return tuple(
        Hunk(visible_line(match[3]), tuple(_numbered(part.split("\n")[1:], int(match[1]), int(match[2]))))
        for match, part in found
        if match
    )


def _numbered(lines: Sequence[str], old: int, new: int) -> Iterator[DiffLine]:
    for line in lines:
        kind = _KINDS.get(line[:1])
        if kind is None:  # "\ No newline at end of file"
            continue
        numbers = None if kind == "added" else old, None if kind == "removed" else new
        yield DiffLine(kind, *numbers, visible_line(line[1:]))
        old += kind != "added"
        new += kind != "removed"


def first_lines(hunks: Sequence[Hunk], room: int) -> tuple[Hunk, ...]:
    """Returns the first `room` lines."""
    kept: list[Hunk] = []
    for hunk in hunks:
        if room <= 0:
            break
        kept.append(Hunk(hunk.heading, hunk.lines[:room]))
        room -= len(hunk.lines)
    return tuple(kept)


def visible_line(value: str) -> str:
    """Returns a line without its end, and otherwise as `visible` does."""
    return visible(value.removesuffix("\n").removesuffix("\r"))


def visible(text: str) -> str:
    """Returns a text in which characters that would hide or reverse its contents are written as their code points."""
    return _DECEPTIVE.sub(lambda match: f"[U+{ord(match[0]):04X}]", text)


@dataclass(frozen=True)
class PageOfFiles:
    """The files of one page; `first` is the number of its first file, and `page` that of the page, both from 1."""

    change: PullRequestChange
    files: tuple[ChangedFile, ...]
    first: int
    page: int
    pages: int

    @property
    def elsewhere(self) -> int:
        """The number of changed files on other pages."""
        return self.change.file_count - len(self.files)


@dataclass(frozen=True)
class FileDiff:
    """A changed file as the page shows it.

    `notes` describe the file and its change; `omission` says what is not shown, and is empty if everything is.
    """

    file: ChangedFile
    hunks: tuple[Hunk, ...]
    notes: tuple[str, ...]
    omission: str


def page_of_files(change: PullRequestChange, page: int, length: int = FILES_ON_A_PAGE) -> PageOfFiles:
    """Returns a page of the changed files; the last one if there are fewer pages."""
    pages = max(1, -(-len(change.files) // length))
    page = min(page, pages)
    start = (page - 1) * length
    return PageOfFiles(change, change.files[start : start + length], start + 1, page, pages)


def file_diffs(files: Sequence[ChangedFile], patches: Sequence[str]) -> tuple[FileDiff, ...]:
    """Returns the files with their lines; the shortest get their room first, so that a long one hides no other."""
    hunks = [parse_patch(patch) for patch in patches]
    lengths = [sum(len(hunk.lines) for hunk in found) for found in hunks]
    room = fair_shares(lengths, each=FILE_LINES, total=PAGE_LINES)
    shown = [first_lines(found, limit) for found, limit in zip(hunks, room, strict=True)]
    return tuple(
        FileDiff(file, found, tuple(_notes(file)), _omission(file, found))
        for file, found in zip(files, shown, strict=True)
    )


def omissions(page: PageOfFiles, diffs: Sequence[FileDiff]) -> tuple[str, ...]:
    """Says which parts of the change this page does not show; empty if it shows everything."""
    said = []
    if page.elsewhere:
        said.append(f"{page.elsewhere} of the {page.change.file_count} changed files")
    binary = sum(diff.file.is_binary for diff in diffs)
    if binary:
        said.append(f"the contents of {_count(binary, 'file')} that {'is' if binary == 1 else 'are'} not text")
    cut = sum(bool(diff.omission) and not diff.file.is_binary for diff in diffs)
    if cut:
        said.append(f"parts of {_count(cut, 'file')}")
    return tuple(said)


def _omission(file: ChangedFile, hunks: Sequence[Hunk]) -> str:
    if file.is_binary:
        return "This is not a text file; its contents are not shown."
    lines = [line for hunk in hunks for line in hunk.lines]
    hidden = file.lines - sum(line.kind != "context" for line in lines)
    if hidden:
        return f"{hidden} of its {_count(file.lines, 'changed line')} {'is' if hidden == 1 else 'are'} not shown here."
    return ""


def _notes(file: ChangedFile) -> list[str]:
    before, after = file.before.mode, file.after.mode
    notes = []
    if file.kind is ChangeKind.RENAMED:
        notes.append("Renamed, with changes." if file.lines or file.is_binary else "Only its name changed.")
    elif GitFileMode.ABSENT in {before, after}:
        notes += _whole_file_notes(file)
    elif before == after and before in _MODES:
        notes.append(f"This is {_MODES[before]}.")
    elif before != after and not (before.is_file and after.is_file):
        kinds = [_MODES.get(mode, "a file") for mode in (before, after)]
        notes.append(f"{kinds[0]} before, {kinds[1]} after.".capitalize())
    if before.is_file and after.is_file and before != after:
        runs = after is GitFileMode.EXECUTABLE
        notes.append("Can now be run as a program." if runs else "Can no longer be run as a program.")
    return notes


def _whole_file_notes(file: ChangedFile) -> list[str]:
    mode = file.after.mode if file.before.mode is GitFileMode.ABSENT else file.before.mode
    if mode in _MODES:
        return [f"This is {_MODES[mode]}."]
    notes = ["A file that can be run as a program."] if mode is GitFileMode.EXECUTABLE else []
    return notes if file.lines or file.is_binary else [*notes, "An empty file."]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
