"""Answers prompts that are not understood: with help, or with a hint how to phrase them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from bot.jobserver.documents.languages import is_translation
from bot.jobserver.documents.page import is_record, slug
from bot.jobserver.documents.parsing import parse_page
from bot.jobserver.editors.builtin.edits import short
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.page_edits import with_section
from bot.jobserver.editors.builtin.places import find_page
from bot.jobserver.editors.builtin.replacement import LinkedAnchors, replace_in_page
from bot.jobserver.editors.builtin.spelling import misspelt_pages
from bot.jobserver.errors import EditError

_EXAMPLE_PAGES = 40
"""How many pages are searched for examples, those nearest to the root first."""
_LONGEST_TITLE, _LONGEST_PROMPT = 40, 75
"""As much of a prompt as Slack shows on a button."""
_STYLE = (
    ("colour", "color"), ("e-mail", "email"), ("utilize", "use"), ("in order to", "to"), ("behaviour", "behavior"),
    ("organisation", "organization"), ("login", "sign-in"), ("click on", "select"), ("click", "select"),
    ("choose", "select"), ("via", "through"), ("users", "people"),
)  # fmt: skip
"""Words that teams often replace, the likeliest first."""
_OTHER_TITLES = {
    "faq": "Questions and answers", "getting-started": "Quickstart", "installation": "Install",
    "introduction": "Overview", "overview": "Introduction", "quickstart": "Getting started",
    "troubleshooting": "Solve problems",
}  # fmt: skip
_NOT_NAMED = frozenset(
    ("index", "readme", "_index", "summary", "_sidebar", "contributing", "license", "code_of_conduct")
)
_Pages = Sequence[PurePosixPath]
AGENT = "a coding agent (in the demo `--agent`, in the job server's settings `AGENT`)"
_LOOKED_AT = 400
_HELP = re.compile(
    r"(?:(?:hi|hello|hey)\b[\s,!.]{0,5})?(?:(?:please|pagehand)\b[\s,]{0,5})?(?:(?:show|give)\s(?:me\s)?)?"
    r"(?:help(?:\sme)?|examples?|commands|(?:so\s)?what\s(?:all\s)?(?:can|could|do|does|should)\s(?:you|i|it|we|this|pagehand)"
    r"\s(?:do|ask|say|write|understand|know|type)\b[^\n]{0,60}|what\sare\syou[^\n]{0,30}"
    r"|how\s(?:do|does|can)\s(?:i|it|this|we)\s(?:work|use|start|begin|ask)[^\n]{0,40})[\s?!.]{0,10}",
    re.IGNORECASE,
)
_GREETING = re.compile(r"(?:hi|hello|hey|test|testing)\b[^\w\n]{0,10}", re.IGNORECASE)
_CHANGE = re.compile(
    r"(?:replace|change|update|substitute|swap)\s(?:(?:all|every|the|word|words|term|text)\s){0,3}"
    r"(?P<old>[^\"“”\n]{1,60}?)\s(?:with|by|to|into)\s(?P<new>[^\"“”\n]{1,60}?)"
    r"(?:\s(?:in|on|everywhere|throughout|across)\b(?P<where>[^\n]{0,80}))?[.!]?",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"(?:change|update|set|bump)\s(?:(?:the|our|all)\s){0,2}versions?(?:\snumbers?)?\sto\s(?P<new>v?\d[\w.-]{0,30})[^\n]{0,80}",
    re.IGNORECASE,
)
_RENAME = re.compile(r"(?:rename|retitle)\b", re.IGNORECASE)
_NOTE = re.compile(
    r"(?:add|write|insert|put)\s(?:(?:a|an|the|some|short|small|new)\s){0,3}"
    r"(?P<kind>note|section|paragraph|sentence|line|tip|warning|entry|question|example|info\w{0,7})\s"
    r"(?:(?:about|on|for|that|saying|explaining|called|named)\s)?(?P<subject>[^\n]{1,100}?)\s(?:to|in|into|on)\s"
    r"(?:(?:the|our)\s)?(?P<page>[^\n]{1,80}?)(?:\spage)?[.!?]?",
    re.IGNORECASE,
)
_PAGE = re.compile(
    r"(?:add|write|create|make)\s(?:(?:a|an|the|new|short)\s){0,3}(?:page|guide|tutorial|article|document|faq)\s?"
    r"(?:(?:about|on|for|called|named|explaining|that)\s)?(?P<subject>[^\n]{0,80}?)[.!?]?",
    re.IGNORECASE,
)
_SHORTEN = re.compile(
    r"(?:make(?:\s\S{1,30}+){1,8}?\s(?:shorter|briefer|concise)\b|shorten|trim|summari[sz]e|condense)", re.IGNORECASE
)
_REWORD = re.compile(
    r"(?:make\s|rewrite|reword|improve|clarify|simplify|explain|polish|review|expand|restructure|reorgani[sz]e|clean\b)",
    re.IGNORECASE,
)
_TRANSLATE = re.compile(r"translate\b", re.IGNORECASE)
_DELETE = re.compile(r"(?:delete|remove|drop)\b(?:\sthe)?\s?(?P<subject>[^\n]{0,60}?)[.!]?", re.IGNORECASE)
_MOVE = re.compile(r"(?:move|merge|split)\b", re.IGNORECASE)
_SPELL = re.compile(
    r"(?:fix|correct|check|improve|proofread)\s(?:(?:all|any|the|our|my|its|spelling|and)\s){0,5}"
    r"(?:grammar|punctuation|typos?|spelling|mistakes|errors)\b",
    re.IGNORECASE,
)
_Say = Callable[[re.Match[str], WorkingFiles], str]


def examples(files: WorkingFiles) -> list[str]:
    """Returns up to five short prompts, each of which would change something; none if there are no pages."""
    pages = [path for path in files.paths() if not is_translation(path) and not is_record(path)][:_EXAMPLE_PAGES]
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
        if with_section(files.read(path) or "", "Support", "x") is not None:
            yield f'Add a section called "Support" to "{title}" with the text: Ask us.'


def _adding_a_page(files: WorkingFiles, pages: _Pages) -> Iterator[str]:
    for title in ("FAQ", "Glossary", "Support"):
        if pages and not find_page(files.paths(), title, files.title).pages:
            yield f'Add a page called "{title}" with the text: Ask us anything.'


def _named(files: WorkingFiles, pages: _Pages) -> Iterator[tuple[PurePosixPath, str]]:
    """Yields pages that are uniquely identified by their titles."""
    paths = files.paths()
    for path in pages:
        title = files.title(path) or ""
        is_plain = 0 < len(title) <= _LONGEST_TITLE and not set(title) & set('"“”„`<>[]*_') and title == title.strip()
        if path.stem.casefold() in _NOT_NAMED or not is_plain:
            continue
        place = find_page(paths, title, files.title)
        if place.pages == (path,) and not place.also_called:
            yield path, title


@dataclass(frozen=True)
class Hint:
    """The answer if nothing is changed; to a request for help, with `examples` that work as they are."""

    text: str
    is_help: bool = False
    examples: tuple[str, ...] = ()


def answer(prompt: str, rest: str, files: WorkingFiles) -> Hint:
    """Returns the answer to a prompt; `rest` is the part that was not understood."""
    asked, left = prompt.strip()[:_LOOKED_AT], rest.strip()[:_LOOKED_AT]
    if _HELP.fullmatch(asked) or _GREETING.fullmatch(asked) or not asked:
        return _help(tuple(examples(files)))
    part = f'"{short(left)}" was not understood, so nothing was changed.' if left != asked else "Nothing was changed."
    return Hint(f"{part} {_hint(left, files)}")


def _help(found: tuple[str, ...]) -> Hint:
    if not found:
        way = 'Add a page called "FAQ" with the text: Ask us anything.'
        return Hint(f"There are no Markdown pages here yet. Begin with: `{way}`", is_help=True)
    listed = "\n".join(f"- `{prompt}`" for prompt in found)
    opening = "I make exact changes in Markdown and MDX. These work on your pages:"
    words = f"{opening}\n\n{listed}\n\nWhat needs judgement takes {AGENT}."
    return Hint(words, is_help=True, examples=found)


def _change(match: re.Match[str], _: WorkingFiles) -> str:
    where = f" in{match['where'].rstrip('.!')}" if (match["where"] or "").strip(" .!") else ""
    old, new = (match[name].strip(" '`") for name in ("old", "new"))
    return f'Put the exact words in quotation marks: `Replace "{old}" with "{new}"{where}`.'


def _version(match: re.Match[str], _: WorkingFiles) -> str:
    new = match["new"].rstrip(".")
    return f'Name the old words, too: `Replace "version 1.0" with "version {new}"`.'


def _note(match: re.Match[str], files: WorkingFiles) -> str:
    page, subject = match["page"].strip(" \"'“”`"), match["subject"].strip(" \"'“”`")
    title = f"{subject[:1].upper()}{subject[1:]}"
    if find_page(files.paths(), page, files.title).pages:
        way = f'Add a section called "{title}" to "{page}" with the text: …'
        return f"What it is to say has to come with it: `{way}`."
    way = f'Add a page called "{page}" with the text: …'
    return f'No page is called "{page}"; write the text, and it is made: `{way}`.'


def _page(match: re.Match[str], _: WorkingFiles) -> str:
    subject = match["subject"].strip(" \"'“”`:") or "FAQ"
    title = f"{subject[:1].upper()}{subject[1:]}"
    return f'What the page says has to come with it: `Add a page called "{title}" with the text: …`.'


def _delete(match: re.Match[str], _: WorkingFiles) -> str:
    subject = match["subject"].strip(" \"'“”`") or "those words"
    return f'Words can go by `Replace "{subject}" with ""`; pages and sections take {AGENT}.'


_HINTS: tuple[tuple[re.Pattern[str], str | _Say], ...] = (
    (_SHORTEN, f'What to leave out takes {AGENT}; if you know it, quote it: `Replace "those words" with ""`.'),
    (_RENAME, 'Put the names in quotation marks: `Rename the "Old title" page to "New title"`.'),
    (_TRANSLATE, f"Translating takes {AGENT}."),
    (_VERSION, _version),
    (_CHANGE, _change),
    (_NOTE, _note),
    (_PAGE, _page),
    (_SPELL, f"`Fix the spelling in PAGE` corrects misspellings; grammar takes {AGENT}."),
    (_REWORD, f'Finding better words takes {AGENT}; if you have them: `Replace "old words" with "new words"`.'),
    (_DELETE, _delete),
    (_MOVE, f"Moving, merging and splitting pages takes {AGENT}; a new name is `Rename the … page to …`."),
)


def _hint(asked: str, files: WorkingFiles) -> str:
    """Returns the first hint whose pattern matches: a fixed hint by the start of the text, others by all of it."""
    for pattern, say in _HINTS:
        if isinstance(say, str):
            if pattern.match(asked):
                return say
        elif match := pattern.fullmatch(asked):
            return say(match, files)
    return _unknown(files)


def _unknown(files: WorkingFiles) -> str:
    found = examples(files)
    such = f", such as `{found[0]}`" if found else ""
    return f'I make exact changes only{such}; "What can you do?" shows more.'
