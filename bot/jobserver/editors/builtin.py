"""The built-in editor: four deeds for the demo, without network or model. It does them, or says what they change."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import assert_never

from bot.jobapi.models import Mode, ProposedPage
from bot.jobserver import subprocesses
from bot.jobserver.documents import NOT_PROSE, decoded, is_markdown, title_of
from bot.jobserver.editors.builtin_prompts import AddPage, Deed, FixTypos, Replace, Undo, parse
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import EditError
from bot.jobserver.repository.git import printable

_SKIPPED_FOLDERS = {".git", "node_modules", ".venv"}
_LARGEST_PAGE = 1_000_000
_WORD_START = r"(?<![^\W_]|-)(?<![^\W_][_./'\u2019])"
_WORD_END = r"(?![^\W_]|-\w|[_./]\w|['\u2019](?!s\b)\w)"
"""Where a word that begins or ends with a letter or digit is whole: not within another word, a name or a path."""
_TYPOS_S = 60.0
_TYPOS_OUTPUT_LIMIT = 50_000_000
_TYPOS_FOUND, _NO_TYPOS = 2, 0
_TYPOS_ARGUMENTS = ("--isolated", "--no-check-filenames", "--format", "json", "--file-list", "-")
AGENT = "`pagehand demo --agent claude`, or `PAGEHAND_JOBSERVER_AGENT=claude` for a job server"
_FIX_TYPOS, _UNDO = "Fix the typos slowly", "Undo"
_STYLE = (
    ("colour", "color"), ("e-mail", "email"), ("utilize", "use"), ("in order to", "to"), ("behaviour", "behavior"),
    ("organisation", "organization"), ("login", "sign-in"), ("click", "select"), ("choose", "select"),
    ("users", "people"),
)  # fmt: skip
"""Words that teams often replace, the likeliest first."""
_NEW_PAGES = (("FAQ", "Ask us anything."), ("Glossary", "Our words."), ("Support", "Write to us."))
_NOT_IN_NAMES = re.compile(r"[\W_]+")
_MOST_NAMED = 6
_NOT_READ = "Not read, as they are not UTF-8 or over 1 MB"
_WORD = re.compile(r"\w{4,}")


def replaced(text: str, words: Mapping[str, str]) -> tuple[str, Counter[str]]:
    """Replaces whole words in a page's prose; returns the new text, and how often each was replaced."""
    wanted = "|".join(_pattern(old) for old in sorted(words, key=len, reverse=True))
    by_signs = {_plain(old): new for old, new in words.items()}
    count = Counter[str]()

    def new(found: re.Match[str]) -> str:
        if found["wanted"] is None:
            return found[0]
        old = _plain(found["wanted"])
        count[old] += 1
        return by_signs[old]

    changed = re.sub(f"(?P<wanted>{wanted})|{NOT_PROSE.pattern}", new, text, flags=re.MULTILINE | re.DOTALL)
    return changed, count


def _pattern(old: str) -> str:
    """Returns a pattern for words, whichever spaces and apostrophes a page has."""
    parts = (re.escape(part).replace("'", r"['\u2019]") for part in _plain(old).split())
    inner = r"[^\S\n]{1,9}".join(parts)
    start = _WORD_START if old.strip()[0].isalnum() else ""
    return f"{start}{inner}{_WORD_END if old.strip()[-1].isalnum() else ''}"


def _plain(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


@dataclass
class Pages:
    """The pages below `root`, those nearest to it first; links are left out. `unread` counts what is no text."""

    root: Path
    is_stopped: Callable[[], bool] = lambda: False
    unread: int = 0
    paths: list[PurePosixPath] = field(init=False)

    def __post_init__(self) -> None:
        self.paths = sorted(self._found(), key=lambda path: (len(path.parts), path.parts))

    def _found(self) -> Iterator[PurePosixPath]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name.lower() not in _SKIPPED_FOLDERS]
            for path in (Path(folder, name) for name in names):
                if is_markdown(PurePosixPath(path)) and path.is_file() and not path.is_symlink():
                    yield PurePosixPath(path.relative_to(self.root))

    def texts(self) -> Iterator[tuple[PurePosixPath, str]]:
        """Yields the pages that can be read. Raises EditError if it was stopped."""
        self.unread = 0
        for path in self.paths:
            if self.is_stopped():
                raise EditError("it was stopped")
            if (text := self.text(path)) is None:
                self.unread += 1
            else:
                yield path, text

    def text(self, path: PurePosixPath) -> str | None:
        """Returns a page's text with its line ends; None if there is none, a link leads to it, it is not UTF-8, or too
        large.
        """
        file = self.root / path
        if self._is_linked(path) or not file.is_file() or file.stat().st_size > _LARGEST_PAGE:
            return None
        return decoded(file.read_bytes())

    def is_free(self, path: PurePosixPath) -> bool:
        """Returns whether a page can be added here: not where something is, nor where a link leads elsewhere."""
        return not (self._is_linked(path) or (self.root / path).exists())

    def _is_linked(self, path: PurePosixPath) -> bool:
        return (self.root / path).resolve() != self.root.resolve() / path

    def write(self, texts: Mapping[PurePosixPath, str | None]) -> None:
        """Writes pages; None removes one."""
        for path, text in texts.items():
            if text is None:
                (self.root / path).unlink(missing_ok=True)
            else:
                (self.root / path).write_bytes(text.encode())

    def place_for(self, name: str) -> PurePosixPath:
        """Returns the path for a new page: in the folder nearest to the root, besides it, that has pages."""
        folders = [path.parent for path in self.paths if path.parts[1:] and not path.parts[0].startswith(".")]
        suffix = self.paths[0].suffix if self.paths else ".md"
        return (folders[0] if folders else PurePosixPath()) / f"{name}{suffix}"


@dataclass(frozen=True)
class Journal:
    """What each deed of a job changed, oldest first, in a file of the job's home: the texts before, and digests after.

    A deed can be undone while all of its pages are as it left them.
    """

    file: Path

    def note(self, pages: Pages, after: Mapping[PurePosixPath, str | None]) -> None:
        """Notes a deed that is about to be done."""
        step = {str(path): [pages.text(path), _digest(text)] for path, text in after.items()}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps([*self._steps(), step][-20:]), encoding="utf-8")

    def before_last(self, pages: Pages) -> Mapping[PurePosixPath, str | None]:
        """Returns the pages as they were before the newest deed that can be undone; empty if there is none."""
        for step in reversed(self._steps()):
            if all(_digest(pages.text(PurePosixPath(name))) == after for name, (_, after) in step.items()):
                return {PurePosixPath(name): before for name, (before, _) in step.items()}
        return {}

    def _steps(self) -> Sequence[Mapping[str, tuple[str | None, str]]]:
        try:
            steps: list[Mapping[str, tuple[str | None, str]]] = json.loads(self.file.read_bytes())
        except (FileNotFoundError, ValueError):  # none, or it was interrupted
            return []
        return steps


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()


async def find_typos(root: Path, paths: Iterable[PurePosixPath]) -> Mapping[str, str]:
    """Returns the misspellings on these pages that have one correction, with it.

    Raises:
        EditError: the program is missing, failed, or took too long.
    """
    listed = "".join(f"./{path}\n" for path in paths if str(path).isprintable())
    if not listed:
        return {}
    output = subprocesses.FirstBytes(_TYPOS_OUTPUT_LIMIT)
    arguments, environment = (_program(), *_TYPOS_ARGUMENTS), {"PATH": "", "LC_ALL": "C.UTF-8"}
    command = subprocesses.Command(arguments, root, environment, _TYPOS_S, listed.encode())
    try:
        code = await subprocesses.run(command, stdout=output.write)
    except OSError as error:
        raise EditError(f"the program `typos` could not be run: {error.strerror}") from error
    except subprocesses.ProcessTimeoutError as error:
        raise EditError("the program `typos` took too long") from error
    if code not in {_TYPOS_FOUND, _NO_TYPOS}:
        raise EditError(f"the program `typos` ended with exit code {code}")
    found: dict[str, str] = {}
    with contextlib.suppress(ValueError):  # the last line can be cut off
        for line in output.getvalue().splitlines():
            match json.loads(line):
                case {"type": "typo", "typo": str(wrong), "corrections": [str(right)]}:
                    found[wrong] = right
    return found


def _program() -> str:
    beside = str(Path(sys.executable).parent)
    program = shutil.which("typos", path=beside) or shutil.which("typos")
    if program is None:
        raise EditError("the program `typos` is not installed: pip install typos")
    return program


@dataclass(frozen=True)
class BuiltinEditor:
    """Does one of four deeds; to everything else it answers with what it can do.

    `pause`: for how many seconds it waits before it does something slowly.
    """

    pause: float = 10.0

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        # Whoever accepts a plan says no more than that.
        deed = parse(task.conversation[-1].words if task.is_accepted else task.own_words)
        if isinstance(deed, FixTypos) and deed.slowly:
            progress.activity(f"Waiting for {self.pause:g} s, in which you can press Stop")
            await asyncio.sleep(self.pause)
        progress.activity("Reading the pages")
        stopped = threading.Event()
        pages = await asyncio.to_thread(Pages, task.workspace.copy, stopped.is_set)
        looks_for_typos = task.mode is not Mode.ASK and (deed is None or isinstance(deed, FixTypos))
        typos = await find_typos(pages.root, pages.paths) if looks_for_typos else {}
        doing = asyncio.create_task(asyncio.to_thread(_done, deed, task, pages, typos))
        try:
            result = await asyncio.shield(doing)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.gather(doing, return_exceptions=True)
            raise
        except (OSError, UnicodeError) as error:
            raise EditError(f"the pages cannot be read or written: {error}") from error
        await asyncio.to_thread(append_line, task.log, result.summary or result.proposal or result.reason)
        return result


@dataclass(frozen=True)
class _Change:
    """What a deed comes to. `plan` and `done` tell it before and after, `nothing` why there is nothing to do.

    `after`: the new texts of pages; None removes one. `reasons`: why each is changed. `places`: how many words are.
    `is_counted`: whether it tells the numbers.
    """

    plan: str
    done: str
    nothing: str
    after: Mapping[PurePosixPath, str | None]
    reasons: Mapping[PurePosixPath, str] = field(default_factory=dict)
    places: int = 0
    is_counted: bool = True

    def told(self, words: str, not_read: int) -> str:
        counts = {"Places": self.places, "Pages": len(self.after), _NOT_READ: not_read} if self.is_counted else {}
        return " ".join([words, *(f"{name}: {count}." for name, count in counts.items() if count)])


def _done(deed: Deed | None, task: EditTask, pages: Pages, typos: Mapping[str, str]) -> EditResult:
    """Does a deed, proposes it, or answers. Blocking. Raises EditError, OSError."""
    journal = Journal(task.workspace.home / ".pagehand-undo.json")
    if task.mode is Mode.ASK:
        result = _found(task.own_words, pages)
    elif deed is None:
        result = _capabilities(pages, typos, can_undo=bool(journal.before_last(pages)))
    else:
        change = _change(deed, pages, journal, typos)
        if not change.after:
            result = EditResult(reason=change.told(change.nothing, pages.unread))
        elif task.mode is Mode.PLAN:
            named = [ProposedPage(path=printable(str(path)), reason=change.reasons.get(path)) for path in change.after]
            result = EditResult(proposal=change.told(change.plan, pages.unread), proposed_pages=tuple(named))
        else:
            if not isinstance(deed, Undo):
                journal.note(pages, change.after)
            pages.write(change.after)
            result = EditResult(change.told(change.done, pages.unread))
    if not task.attachments:
        return result
    unused = f"\nAttached, and left alone: {', '.join(file.called for file in task.attachments)}."
    told = next((name for name in ("summary", "proposal") if getattr(result, name)), "reason")
    return replace(result, **{told: getattr(result, told) + unused})


def _change(deed: Deed, pages: Pages, journal: Journal, typos: Mapping[str, str]) -> _Change:
    """Returns what a deed comes to, on the pages as they are."""
    match deed:
        case Replace(old, new):
            named = f'"{old}" with "{new}".'
            nothing = f'"{old}" is on no page as whole words outside code, tags and links.'
            return _replacing(pages, {old: new}, f"Replace {named}", f"Replaced {named}", nothing)
        case FixTypos():
            nothing = "The program `typos` finds nothing that has one correction, outside code, tags and links."
            found = "what the program `typos` finds."
            return _replacing(pages, typos, f"Fix {found}", f"Fixed {found}", nothing)
        case AddPage():
            return _adding(pages, deed)
        case Undo():
            before, nothing = journal.before_last(pages), "There is nothing to undo in this job."
            return _Change("Take back the last change.", "Took back the last change.", nothing, before)
        case _:
            assert_never(deed)


def _replacing(pages: Pages, words: Mapping[str, str], plan: str, done: str, nothing: str) -> _Change:
    after, reasons, places = dict[PurePosixPath, str | None](), dict[PurePosixPath, str](), 0
    becomes = {_plain(old): new for old, new in words.items()}
    for path, text in pages.texts() if words else ():
        changed, count = replaced(text, words)
        if changed != text:
            after[path], places = changed, places + count.total()
            reasons[path] = ", ".join(f'"{old}" becomes "{becomes[old]}" ({times})' for old, times in count.items())
    return _Change(f"{plan} Code, tags and links stay as they are.", done, nothing, after, reasons, places)


def _adding(pages: Pages, deed: AddPage) -> _Change:
    name = _NOT_IN_NAMES.sub("-", deed.title.casefold()).strip("-")[:60].strip("-")
    path = pages.place_for(name or "page")
    shown = printable(str(path))
    has_settings = any(text.startswith("---\n") and title_of(text) for _, text in pages.texts())
    title = json.dumps(deed.title, ensure_ascii=False)
    heading = f"---\ntitle: {title}\n---" if has_settings else f"# {deed.title}"
    after = {path: f"{heading}\n\n{deed.text}\n"} if pages.is_free(path) else {}
    words = f"Add the page `{shown}`.", f"Added the page `{shown}`.", f"There is a page `{shown}` already."
    return _Change(*words, after, is_counted=False)


def _found(question: str, pages: Pages) -> EditResult:
    """Names the pages that have most of a question's words, which is all it can answer."""
    words = set(_WORD.findall(question.casefold()))
    common = {str(path): len(words & set(_WORD.findall(text.casefold()))) for path, text in pages.texts()}
    best = [path for path in sorted(common, key=lambda path: -common[path]) if common[path]][:_MOST_NAMED]
    where = f"Most are on {', '.join(f'`{printable(path)}`' for path in best)}." if best else "None is on any page."
    words_only = "I'm the demo's editor: I cannot answer, only look for the words of a question."
    return EditResult(f"{words_only} {where} For answers, connect an agent: {AGENT}.", pages_read=tuple(best))


def _capabilities(pages: Pages, typos: Mapping[str, str], *, can_undo: bool) -> EditResult:
    named = [f"`{printable(str(path))}`" for path in pages.paths[:_MOST_NAMED]]
    named += ["…"] if len(pages.paths) > len(named) else []
    words = (
        "I'm the demo's editor and know four things: replacing words, adding a page, fixing typos (slowly, if you "
        "want to try Stop), and undoing that. "
        f"The pages are {', '.join(named) or 'still to be written'}. For anything else, connect an agent: {AGENT}."
    )
    return EditResult(reason=words, examples=tuple(_examples(pages, typos, can_undo=can_undo)))


def _examples(pages: Pages, typos: Mapping[str, str], *, can_undo: bool) -> Iterator[str]:
    """Yields prompts that change something on these pages."""
    texts = [text for _, text in pages.texts()]
    for old, new in _STYLE:
        if any(replaced(text, {old: new})[1] for text in texts):
            yield f'Replace "{old}" with "{new}"'
            break
    if typos and any(replaced(text, typos)[1] for text in texts):
        yield _FIX_TYPOS
    for title, text in _NEW_PAGES:
        if pages.is_free(pages.place_for(title.lower())):
            yield f"Add a page called {title} with the text: {text}"
            break
    if can_undo:
        yield _UNDO
