"""The built-in editor: what it understands, what it leaves alone, and how it leads on."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.fakes.job_ports import FakeProgress
from support.worlds.jobserver_world import git

from bot.jobapi.models import Mode, ProposedPage
from bot.jobserver.documents import title_of
from bot.jobserver.editors.builtin import BuiltinEditor, replaced
from bot.jobserver.editors.builtin_prompts import AddPage, Deed, FixTypos, Replace, Undo, parse
from bot.jobserver.editors.interface import EditResult, EditTask, TaskFile
from bot.jobserver.repository.sample import make_sample_repository
from bot.jobserver.sandbox.interface import Workspace
from bot.jobserver.store.records import EarlierInstruction

pytestmark = pytest.mark.promise("built-in editor")

COLOUR = Replace("colour", "color")
FAQ = AddPage("FAQ", "Ask us anything.")
PROMPTS: dict[str, Deed | None] = {
    'Replace "colour" with "color"': COLOUR,
    "please replace colour with color everywhere.": COLOUR,
    "Change the word “colour” to “color” in all the pages, please": COLOUR,
    "Replace «colour» with „color“": COLOUR,
    "Replace «\u00a0colour\u00a0» with «\u00a0color\u00a0»": COLOUR,
    "Replace colour with color, thanks": COLOUR,
    "Replace \uff02colour\uff02\u00a0with\u00a0'color'": COLOUR,
    "Hi! Can you replace `colour` by `color` in the docs?": COLOUR,
    "Replace 'don\u2019t' with 'do not'": Replace("don\u2019t", "do not"),
    'Replace "log in" with "sign in"': Replace("log in", "sign in"),
    "Replace 2.0 with 2.1.": Replace("2.0", "2.1"),
    "Also add a page called FAQ with the text: Ask us anything.": FAQ,
    'Add a page "FAQ" with the text “Ask us anything.”': FAQ,
    "create a new page named FAQ containing the text:\nAsk us anything.": FAQ,
    'Add a page called A with the text: Say «yes» and "no".': AddPage("A", 'Say «yes» and "no".'),
    "Fix the typos": FixTypos(),
    "check and fix all spelling mistakes in the docs": FixTypos(),
    "Fix the typos slowly": FixTypos(slowly=True),
    "Please fix all typos in the docs, slowly.": FixTypos(slowly=True),
    "Fix the typos slowly in the title": None,
    "Undo": Undo(),
    "Please undo that last change!": Undo(),
    'Replace "colour" with "color" in the guides': None,
    'Replace "colour" with "color" and translate the rest': None,
    "Replace the logo with ours": None,
    "Change title to Lumo": None,
    'Rename "Lamp" to "Light"': None,
    'Replace "a" with "a"': None,
    "Fix the typos in the title only": None,
    "Undo the merge": None,
    "Add a page called FAQ": None,
    "": None,
}  # fmt: skip


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_is_understood_as_a_whole_or_not_at_all(prompt: str) -> None:
    assert parse(prompt) == PROMPTS[prompt]


CHANGED = (
    "A colour.", "*colour* _colour_ **colour** (colour)", "“colour”, colour: colour—colour", "the colour's name",
    "[the colour](x.md)", "# colour", "- colour\n> colour", "| colour |", "+ + +\ncolour\n+ + +", "a `b` colour `c`",
    "<b>colour</b>", "colour\r\n",
)  # fmt: skip
LEFT = (
    "```\ncolour\n```\n", "- ~~~sh\n  colour\n  ~~~\n", "`colour`", "``a ` colour``",
    "---\ncolour: x\n---\n", "+++\ncolour = 1\n+++\n", '{\n"colour": {"a": 1}\n}\n', "\ufeff---\ntitle: colour\n---\n",
    "---\r\ncolour: x\r\n---\r\n", "[x](colour)", "[x](a(colour).md)", "[x][colour]", "[x]: colour", ":colour:",
    "[colour][]", "[colour] and [^colour]", "[[colour]]", '{\n"a": 1,\n"b": "colour"}\n',
    "https://colour", "<colour>", "<!-- colour -->", "<pre>colour</pre>", "{{ colour }}", "import x from 'colour'",
    "colours re-colour colour-blind docs/colour.md colour.py my_colour", "Colour",
)  # fmt: skip


def counted(text: str, words: Mapping[str, str]) -> tuple[str, int]:
    changed, count = replaced(text, words)
    return changed, count.total()


@pytest.mark.parametrize("text", CHANGED)
def test_whole_words_of_prose_are_replaced(text: str) -> None:
    assert counted(text, {"colour": "color"}) == (text.replace("colour", "color"), text.count("colour"))


@pytest.mark.parametrize("text", LEFT)
def test_everything_else_is_left_alone(text: str) -> None:
    assert counted(f"{text}\n\nA colour.", {"colour": "color"}) == (f"{text}\n\nA color.", 1)


@pytest.mark.parametrize("start", ["```\n", "<!-- ", "<pre>"])
def test_what_is_not_closed_goes_on_to_the_end(start: str) -> None:
    assert counted(f"{start}x\n\nA colour.", {"colour": "color"}) == (f"{start}x\n\nA colour.", 0)


@pytest.mark.parametrize("written", ["log in", "log\u00a0in", "log\u202fin", "log  in"])
def test_spaces_and_apostrophes_of_a_page_are_read_like_others(written: str) -> None:
    assert counted(f"Don\u2019t {written}.", {"log in": "sign in", "Don't": "Do not"}) == ("Do not sign in.", 2)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('---\ntitle: "Start"\nx: 1\n---\n# Other\n', "Start"), ("+++\ntitle = 'Start'\n+++\n", "Start"),
        ('{\n  "title": "Start",\n  "x": 1\n}\n', "Start"), ("---\nx: 1\n---\n\n# Start #\n", "Start"),
        ("```\n# No\n```\n# Start\r\n", "Start"), ("Start\n=====\n", "Start"), ("= Start\n", "Start"),
        ("Text.\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_titles_come_from_the_front_matter_or_the_first_heading(text: str, title: str | None) -> None:
    assert title_of(text) == title


class Job:
    """A job of the built-in editor on the demo's pages."""

    def __init__(self, folder: Path) -> None:
        self.copy = folder / "copy"
        self._workspace, self._log = Workspace(self.copy, folder / "home"), folder / "log"

    async def done(self, prompt: str, *attachments: TaskFile, mode: Mode = Mode.EDIT) -> EditResult:
        return await self._edited(EditTask(prompt, self._workspace, self._log, attachments=attachments, mode=mode))

    async def started(self, words: str) -> EditResult:
        """Carries out the plan for these words."""
        earlier = EarlierInstruction(words, "A plan", words)
        return await self._edited(EditTask("Go", self._workspace, self._log, (earlier,), is_accepted=True))

    async def _edited(self, task: EditTask) -> EditResult:
        return await BuiltinEditor(pause=0).edit(task, FakeProgress())

    def everything(self) -> dict[str, bytes]:
        folders = (self.copy, self._workspace.home)
        return {str(file): file.read_bytes() for folder in folders for file in folder.rglob("*") if file.is_file()}

    def pages(self) -> dict[str, bytes]:
        return {str(file.relative_to(self.copy)): file.read_bytes() for file in self.copy.rglob("*") if file.is_file()}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    made = Job(tmp_path)
    git(tmp_path, "clone", "--quiet", str(make_sample_repository(tmp_path)), str(made.copy))
    shutil.rmtree(made.copy / ".git")
    return made


FIRST_PROMPTS = (
    "What can you do?", "help", "Hello", "Make the intro shorter", "Translate the docs to German",
    "Add a section about batteries to the FAQ", "Update the docs for version 2.1", "Rewrite the getting started guide",
    "fix the broken links", "Write a tutorial", "Rename getting started to Quickstart", "Improve the docs",
)  # fmt: skip


@pytest.mark.parametrize("prompt", FIRST_PROMPTS)
async def test_what_is_not_understood_leads_on_by_buttons_that_work(prompt: str, job: Job) -> None:
    before = job.pages()
    told = await job.done(prompt)
    assert job.pages() == before
    assert told.reason.startswith("I'm the demo's editor and know four things")
    assert "`docs/getting-started.md`" in told.reason
    assert "--agent" in told.reason
    assert len(told.reason) < 700  # as much as a thread shows
    assert told.examples == (
        'Replace "colour" with "color"', "Fix the typos slowly",
        "Add a page called FAQ with the text: Ask us anything.",
    )  # fmt: skip
    for example in told.examples:
        state = job.pages()
        assert (await job.done(example)).summary
        assert job.pages() != state
    assert "Undo" in (await job.done(prompt)).examples


async def test_each_deed_says_what_it_did(job: Job) -> None:
    (job.copy / "latin.md").write_bytes(b"colour \xe9")
    (job.copy / os.fsdecode(b"\xff.md")).write_text("# Odd\n")
    (job.copy / "utf16.md").write_bytes("colour".encode("utf-16"))
    unread = "Not read, as they are not UTF-8 or over 1 MB: 2"
    told = await job.done('Replace "colour" with "color"', TaskFile("a.png", "a.png", "image/png", 1))
    assert told.summary == (
        f'Replaced "colour" with "color". Places: 9. Pages: 6. {unread}.\nAttached, and left alone: a.png.'
    )
    not_understood = await job.done("Make it nicer", TaskFile("a.png", "a.png", "image/png", 1))
    assert not_understood.reason.endswith("Attached, and left alone: a.png.")
    nothing = '"colour" is on no page as whole words outside code, tags and links.'
    assert (await job.done('Replace "colour" with "color"')).reason == f"{nothing} {unread}."
    assert (await job.done("Fix the typos")).summary == (
        f"Fixed what the program `typos` finds. Places: 4. Pages: 4. {unread}."
    )
    assert "noticeable" in (job.copy / "docs/guides/schedules.md").read_text()
    assert (await job.done("Add a page called FAQ with the text: Yes.")).summary == "Added the page `docs/faq.md`."
    assert (job.copy / "docs/faq.md").read_text() == "# FAQ\n\nYes.\n"
    (await job.done("What can you do?")).reason.encode()
    assert "already" in (await job.done("Add a page called FAQ with the text: No.")).reason


PLANS = {
    'Replace "colour" with "color"': (
        'Replace "colour" with "color". Code, tags and links stay as they are. Places: 9. Pages: 6.',
        ProposedPage(path="README.md", reason='"colour" becomes "color" (1)'),
    ),
    "Fix the typos": (
        "Fix what the program `typos` finds. Code, tags and links stay as they are. Places: 4. Pages: 4.",
        ProposedPage(path="docs/guides/schedules.md", reason='"noticable" becomes "noticeable" (1)'),
    ),
    "Add a page called FAQ with the text: Yes.": ("Add the page `docs/faq.md`.", ProposedPage(path="docs/faq.md")),
    "Undo": ("Take back the last change. Pages: 1.", ProposedPage(path="docs/terms.md")),
}


@pytest.mark.parametrize("words", PLANS)
async def test_a_plan_names_the_pages_and_writes_nothing_until_it_is_started(words: str, job: Job) -> None:
    await job.done("Add a page called Terms with the text: Yes.")
    before, pages = job.everything(), job.pages()
    told = await job.done(words, mode=Mode.PLAN)
    text, page = PLANS[words]
    assert (told.proposal, told.summary, told.reason) == (text, "", "")
    assert page in told.proposed_pages
    assert job.everything() == before
    assert (await job.started(words)).summary
    after = job.pages()
    changed = {path for path in pages.keys() | after.keys() if pages.get(path) != after.get(path)}
    assert changed == {page.path for page in told.proposed_pages}


async def test_there_is_no_plan_without_something_to_do(job: Job) -> None:
    told = await job.done('Replace "nowhere" with "x"', mode=Mode.PLAN)
    assert (told.proposal, "on no page" in told.reason) == ("", True)
    not_understood = await job.done("Make it nicer", mode=Mode.PLAN)
    assert (not_understood.proposal, bool(not_understood.examples)) == ("", True)


async def test_a_question_is_answered_with_the_pages_that_have_its_words(job: Job) -> None:
    before = job.everything()
    told = await job.done("Where is a schedule noticable?", mode=Mode.ASK)
    assert told.summary.startswith("I'm the demo's editor: I cannot answer, only look for")
    assert told.pages_read[0] == "docs/guides/schedules.md"
    assert "`docs/guides/schedules.md`" in told.summary
    nothing = await job.done("Xyzzy plugh?", mode=Mode.ASK)
    assert ("None is on any page." in nothing.summary, nothing.pages_read) == (True, ())
    assert job.everything() == before


async def test_changes_are_undone_one_after_another(job: Job) -> None:
    """A crash between a change and its commit, or somebody else's commit, undoes nothing that is not there."""
    states = [job.pages()]
    for prompt in ("Fix the typos", 'Replace "colour" with "color"', "Add a page called FAQ with the text: Yes."):
        await job.done(prompt)
        states.append(job.pages())
    assert (await job.done('Replace "nowhere" with "x"')).reason
    while len(states) > 1:
        assert states.pop() == job.pages()
        assert (await job.done("Undo")).summary.startswith("Took back the last change. Pages: ")
    assert job.pages() == states[0]
    assert (await job.done("Undo")).reason == "There is nothing to undo in this job."
    await job.done("Fix the typos")
    (job.copy / "docs/guides/scenes.md").write_text("Somebody else's.\n")
    assert (await job.done("Undo")).reason


async def test_a_new_page_looks_like_its_neighbours(job: Job) -> None:
    for file in job.copy.rglob("*.md"):
        file.rename(file.with_suffix(".mdx")).write_text('---\ntitle: "X"\n---\n')
    await job.done('Add a page called Über "uns" with the text: Yes.')
    await job.done("Add a page called Über uns with the text: Yes.")
    assert (job.copy / "docs/über-uns.mdx").read_text() == '---\ntitle: "Über uns"\n---\n\nYes.\n'


async def test_nothing_is_written_through_a_link(job: Job, tmp_path: Path) -> None:
    """Neither a link that leads nowhere yet nor a folder that became one."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (job.copy / "docs" / "faq.md").symlink_to(outside / "faq.md")
    assert "already" in (await job.done("Add a page called FAQ with the text: x")).reason
    await job.done("Add a page called Terms with the text: x")
    shutil.copytree(job.copy / "docs", outside / "docs", symlinks=True)
    before = {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()}
    shutil.rmtree(job.copy / "docs")
    (job.copy / "docs").symlink_to(outside / "docs")
    assert "nothing to undo" in (await job.done("Undo")).reason
    assert {path: path.read_bytes() for path in outside.rglob("*") if path.is_file()} == before
