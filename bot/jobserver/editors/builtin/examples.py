"""Prompts that work on this repository, made of its own pages: what is answered to "What can you do?"."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import PurePosixPath

from bot.jobserver.documents.languages import is_translation
from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.documents.records import is_record
from bot.jobserver.documents.slugs import slug
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.links import LinkedAnchors
from bot.jobserver.editors.builtin.new_pages import with_section
from bot.jobserver.editors.builtin.places import find_page
from bot.jobserver.editors.builtin.replacement import replace_in_page
from bot.jobserver.editors.builtin.spelling import misspelt_pages
from bot.jobserver.errors import EditError

_LOOKED_AT = 40
"""Pages, those nearest to the root first."""
_LONGEST_TITLE, _LONGEST_PROMPT = 40, 75
"""Slack shows so much of a prompt on a button."""
_STYLE = (
    ("colour", "color"), ("e-mail", "email"), ("utilize", "use"), ("in order to", "to"), ("behaviour", "behavior"),
    ("organisation", "organization"), ("login", "sign-in"), ("click on", "select"), ("click", "select"),
    ("choose", "select"), ("via", "through"), ("users", "people"),
)  # fmt: skip
"""Words that teams change, the likeliest first."""
_OTHER_TITLES = {
    "faq": "Questions and answers", "getting-started": "Quickstart", "installation": "Install",
    "introduction": "Overview", "overview": "Introduction", "quickstart": "Getting started",
    "troubleshooting": "Solve problems",
}  # fmt: skip
_NOT_NAMED = frozenset(
    ("index", "readme", "_index", "summary", "_sidebar", "contributing", "license", "code_of_conduct")
)
_Pages = Sequence[PurePosixPath]


def examples(files: WorkingFiles) -> list[str]:
    """Returns up to five short prompts, each of which changes something here; none where there are no pages."""
    pages = [path for path in files.paths() if not is_translation(path) and not is_record(path)][:_LOOKED_AT]
    found: Sequence[Callable[[WorkingFiles, _Pages], Iterator[str]]] = (
        _replacing, _spelling, _renaming, _adding_a_section, _adding_a_page,
    )  # fmt: skip
    return [prompt for prompts in found for prompt in islice(filter(_is_short, prompts(files, pages)), 1)]


def _is_short(prompt: str) -> bool:
    return len(prompt) <= _LONGEST_PROMPT


def _replacing(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    anchors = LinkedAnchors(files)
    texts = {path: files.read(path) or "" for path in pages}
    for old, new in _STYLE:
        for path, text in texts.items():
            if old in text and replace_in_page(parse_page(path, text), old, new, anchors).count:
                yield f'Replace "{old}" with "{new}" in {path}'


def _spelling(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    try:
        found = misspelt_pages(files, pages)
    except EditError:  # the program is not installed
        return
    yield from ("Fix the spelling" for _ in found[:1])


def _renaming(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    named = sorted(_named(files, pages), key=lambda page: slug(page[1]) not in _OTHER_TITLES)
    stems = {path.stem.casefold() for path in files.paths()}
    for _, title in named:
        other = _OTHER_TITLES.get(slug(title), f"About {title[:1].lower()}{title[1:]}")
        if slug(other) not in stems:
            yield f'Rename the "{title}" page to "{other}"'


def _adding_a_section(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    for path, title in reversed(list(_named(files, pages))):
        if with_section(path.suffix, files.read(path) or "", "Support", "x") is not None:
            yield f'Add a section called "Support" to "{title}" with the text: Ask us.'


def _adding_a_page(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    for title in ("FAQ", "Glossary", "Support"):
        if pages and not find_page(files.paths(), title, files.title).pages:
            yield f'Add a page called "{title}" with the text: Ask us anything.'


def _named(files: WorkingFiles, pages: _Pages) -> Iterator[tuple[PurePosixPath, str]]:
    """Yields pages that people can mean by their titles alone."""
    paths = files.paths()
    for path in pages:
        title = files.title(path) or ""
        is_plain = 0 < len(title) <= _LONGEST_TITLE and not set(title) & set('"“”„`<>[]*_') and title == title.strip()
        if path.stem.casefold() in _NOT_NAMED or not is_plain:
            continue
        place = find_page(paths, title, files.title)
        if place.pages == (path,) and not place.also_called:
            yield path, title
