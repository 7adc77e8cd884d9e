"""The built-in editor: four deeds for the demo, without network or model."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import assert_never

from bot.jobserver.documents.pages import title_of
from bot.jobserver.editors.builtin.pages import Journal, Pages, replaced
from bot.jobserver.editors.builtin.prompts import AddPage, Deed, FixTypos, Replace, Undo, parse
from bot.jobserver.editors.builtin.typos import find_typos
from bot.jobserver.editors.interface import EditProgress, EditResult, EditTask
from bot.jobserver.editors.job_log import append_line
from bot.jobserver.errors import EditError
from bot.jobserver.repository.git import printable

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


class BuiltinEditor:
    """Does one of four deeds; to everything else it answers with what it can do.

    Args:
        pause: Seconds that it waits before it does something slowly.
    """

    def __init__(self, pause: float = 10.0) -> None:
        self._pause = pause

    async def edit(self, task: EditTask, progress: EditProgress) -> EditResult:
        deed = parse(task.own_words)
        if isinstance(deed, FixTypos) and deed.slowly:
            progress.activity(f"Waiting for {self._pause:g} s, in which you can press Stop")
            await asyncio.sleep(self._pause)
        progress.activity("Reading the pages")
        stopped = threading.Event()
        pages = await asyncio.to_thread(Pages, task.workspace.copy, stopped.is_set)
        typos = await find_typos(pages.root, pages.paths) if deed is None or isinstance(deed, FixTypos) else {}
        doing = asyncio.create_task(asyncio.to_thread(_done, deed, task, pages, typos))
        try:
            result = await asyncio.shield(doing)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.gather(doing, return_exceptions=True)
            raise
        except (OSError, UnicodeError) as error:
            raise EditError(f"the pages cannot be read or written: {error}") from error
        await asyncio.to_thread(append_line, task.log, result.summary or result.reason)
        return result


def _done(deed: Deed | None, task: EditTask, pages: Pages, typos: Mapping[str, Sequence[str]]) -> EditResult:
    """Does a deed. Blocking. Raises EditError, OSError."""
    journal = Journal(task.workspace.home / ".pagehand-undo.json")
    match deed:
        case Replace(old, new):
            nothing = f'"{old}" is on no page as whole words outside code, tags and links.'
            result = _replace(pages, journal, {old: new}, f'Replaced "{old}" with "{new}".', nothing)
        case FixTypos():
            nothing = "The program `typos` finds nothing that has one correction, outside code, tags and links."
            result = _replace(pages, journal, _sure(typos), "Fixed what the program `typos` finds.", nothing)
        case AddPage():
            result = _add(pages, journal, deed)
        case Undo():
            before = journal.before_last(pages)
            pages.write(before)
            result = _counted("Took back the last change.", "There is nothing to undo in this job.", pages=len(before))
        case None:
            result = _capabilities(pages, typos, can_undo=bool(journal.before_last(pages)))
        case _:
            assert_never(deed)
    if not task.attachments:
        return result
    unused = f"\nAttached, and left alone: {', '.join(file.called for file in task.attachments)}."
    if result.summary:
        return replace(result, summary=result.summary + unused)
    return replace(result, reason=result.reason + unused)


def _replace(pages: Pages, journal: Journal, words: Mapping[str, str], done: str, nothing: str) -> EditResult:
    after, places = dict[PurePosixPath, str](), 0
    for path, text in pages.texts() if words else ():
        changed, count = replaced(text, words)
        if changed != text:
            after[path], places = changed, places + count
    if after:
        journal.note(pages, after)
        pages.write(after)
    return _counted(done, nothing, pages=len(after), places=places, not_read=pages.unread)


def _add(pages: Pages, journal: Journal, deed: AddPage) -> EditResult:
    name = _NOT_IN_NAMES.sub("-", deed.title.casefold()).strip("-")[:60].strip("-")
    path = pages.place_for(name or "page")
    if not pages.is_free(path):
        return EditResult(reason=f"There is a page `{printable(str(path))}` already.")
    has_settings = any(text.startswith("---\n") and title_of(text) for _, text in pages.texts())
    title = json.dumps(deed.title, ensure_ascii=False)
    heading = f"---\ntitle: {title}\n---" if has_settings else f"# {deed.title}"
    after = {path: f"{heading}\n\n{deed.text}\n"}
    journal.note(pages, after)
    pages.write(after)
    return EditResult(f"Added the page `{printable(str(path))}`.")


def _counted(done: str, nothing: str, *, pages: int, places: int = 0, not_read: int = 0) -> EditResult:
    counts = {"Places": places, "Pages": pages, "Not read, as they are not UTF-8 or over 1 MB": not_read}
    words = " ".join([done if pages else nothing, *(f"{name}: {count}." for name, count in counts.items() if count)])
    return EditResult(summary=words) if pages else EditResult(reason=words)


def _sure(typos: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """Returns the misspellings that have one correction."""
    return {wrong: right[0] for wrong, right in typos.items() if len(right) == 1}


def _capabilities(pages: Pages, typos: Mapping[str, Sequence[str]], *, can_undo: bool) -> EditResult:
    named = [f"`{printable(str(path))}`" for path in pages.paths[:_MOST_NAMED]]
    named += ["…"] if len(pages.paths) > len(named) else []
    words = (
        "I'm the demo's editor and know four things: replacing words, adding a page, fixing typos (slowly, if you "
        "want to try Stop), and undoing that. "
        f"The pages are {', '.join(named) or 'still to be written'}. For anything else, connect an agent: {AGENT}."
    )
    return EditResult(reason=words, examples=tuple(_examples(pages, typos, can_undo=can_undo)))


def _examples(pages: Pages, typos: Mapping[str, Sequence[str]], *, can_undo: bool) -> Iterator[str]:
    """Yields prompts that change something on these pages."""
    texts = [text for _, text in pages.texts()]
    for old, new in _STYLE:
        if any(replaced(text, {old: new})[1] for text in texts):
            yield f'Replace "{old}" with "{new}"'
            break
    if (sure := _sure(typos)) and any(replaced(text, sure)[1] for text in texts):
        yield _FIX_TYPOS
    for title, text in _NEW_PAGES:
        if pages.is_free(pages.place_for(title.lower())):
            yield f"Add a page called {title} with the text: {text}"
            break
    if can_undo:
        yield _UNDO
