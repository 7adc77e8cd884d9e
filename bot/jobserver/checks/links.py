"""Links and anchors inside the repository that the change broke."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import unquote

from bot.jobserver.checks.change import CheckedChange
from bot.jobserver.checks.link_targets import LinkTargets, split_target
from bot.jobserver.documents.page import Link, LinkKind, ParsedPage
from bot.jobserver.documents.parsing import is_page

_DELIMITERS = r"\s\"'<>()\[\]{}|`,="
_TARGET = re.compile(f"[^{_DELIMITERS}]+")
"""Matches every possible link target in Markdown, MDX and HTML, and many other words."""
_DELIMITER = re.compile(f"[{_DELIMITERS}]")
_INDEXES = frozenset({"index", "readme", "_index"})
NAME = "links"
_MASK = "\ue000"
_ALIASES = ("@", "~", "/@")
_SIGNS = re.compile(r"[\W_]+")
_LISTED = ("{", "{ ", "{: ")
"""What precedes an id in an attribute list: https://python-markdown.github.io/extensions/attr_list/."""
_TERM = re.compile(r"^([^\s:][^\n]{0,200})\n{1,2}:[ \t]", re.MULTILINE)
"""A term of a definition list: Hugo gives each an id (autoDefinitionTermID) and numbers repeated ones."""
_PLACEHOLDER = re.compile(r"%[A-Z_]{2,40}%|^[A-Z]{2,40}_[A-Z_]{2,40}$")
_COUNTED = re.compile(r"-\d{1,4}$")
_INCLUDES = re.compile(
    r"--8<--|<!--\s{0,9}@include|\{%-?\s{0,9}include|^::: \w{1,100}+(?:\.|[^\n]{0,200}+\n {4}:)", re.MULTILINE
)
"""Includes that may add headings: pymdownx.snippets, VitePress, Jinja and Liquid, mkdocstrings and mkdocs-click."""


@dataclass(frozen=True)
class RemovedTargets:
    """Link targets that the change removed; finds the pages that may link to them without parsing all pages.

    Attributes:
        names: The last parts of the addresses of removed files, in lower case.
        anchors: The anchors of removed headings.
        phrases: The names of removed files whose paths contain characters that would end a link's target. Decoded links
            to them contain these.
    """

    names: frozenset[str]
    anchors: frozenset[str]
    phrases: frozenset[str]

    @classmethod
    def of(cls, change: CheckedChange) -> Self:
        odd = {path for path in change.removed if _DELIMITER.search(str(path))}
        return cls(
            frozenset(name.casefold() for path in change.removed - odd for name in _names(path)),
            frozenset(_anchors_gone(change)),
            frozenset(name for path in odd for name in _names(path)),
        )

    def __bool__(self) -> bool:
        return bool(self.names or self.anchors or self.phrases)

    def may_be_linked(self, text: str, page: PurePosixPath, before: LinkTargets, after: LinkTargets) -> bool:
        """Tells whether the text of a page may contain a link that worked before and does not any more."""
        if self.phrases and any(phrase in form for form in (text, unquote(text)) for phrase in self.phrases):
            return True
        for target in set(_TARGET.findall(text)):
            name, anchor = split_target(target)
            if anchor in self.anchors:
                return True
            if self._is_named(name) and before.find(page, name) is not None and after.find(page, name) is None:
                return True
        return False

    def _is_named(self, target: str) -> bool:
        last = target.rstrip("/").rpartition("/")[2].casefold()
        return last in self.names or last.partition(".")[0] in self.names


def _names(path: PurePosixPath) -> Iterator[str]:
    """Yields the possible ends of the file's address: an index page has the name of its folder."""
    yield path.name
    yield path.name.partition(".")[0]
    if path.stem.casefold() in _INDEXES and path.parent.name:
        yield path.parent.name


def _anchors_gone(change: CheckedChange) -> Iterator[str]:
    for path in change.changed_pages:
        before, after = change.page_before(path), change.page(path)
        if before and after:
            yield from before.anchors - after.anchors


def broken_links(change: CheckedChange) -> Iterator[str]:
    """Yields broken links on new lines, then links from all pages to what the change removed."""
    targets = LinkTargets(change.paths)
    for path in change.changed_pages:
        new = change.new_lines(path)
        yield from (problem for line, problem in _broken_on(change, targets, path) if line in new)
    yield from _links_to_removed_targets(change, targets)


def _broken_on(change: CheckedChange, targets: LinkTargets, path: PurePosixPath) -> Iterator[tuple[int, str]]:
    page = change.page(path)
    for link in page.links if page else ():
        if problem := _problem(change, targets, path, link):
            yield link.line, f"{path}:{link.line}: {problem}"


def _problem(change: CheckedChange, targets: LinkTargets, path: PurePosixPath, link: Link) -> str:
    if link.kind is LinkKind.ABSOLUTE or _is_made_by_a_template(link.target):
        return ""
    name, anchor = split_target(link.target)
    found = targets.find(path, name) if name else path
    if found is None and change.addresses.serve(name):
        return ""
    if found is None:
        return f"the {'image' if link.is_image else 'link'} to `{link.target}` leads nowhere"
    if anchor and is_page(found) and not _has_anchor(change.page(found), anchor):
        return f"the link to `{link.target}`: there is no such heading"
    return ""


def _is_made_by_a_template(target: str) -> bool:
    """Also covers aliases of folders, such as `@site/` and `~/`."""
    made = any(mark in target for mark in ("{", "}", "<", "$", _MASK)) or _PLACEHOLDER.search(target)
    return bool(made) or target.startswith(_ALIASES)


def _has_anchor(page: ParsedPage | None, anchor: str) -> bool:
    """Compares letters and digits only, since generators convert other characters differently."""
    if page is None or page.not_parsed or _INCLUDES.search(page.text):
        return True
    if _plain(anchor) in set(map(_plain, page.anchors)) or any(f"{sign}#{anchor}" in page.text for sign in _LISTED):
        return True
    wanted = {_plain(anchor), _plain(_COUNTED.sub("", anchor))}
    return any(_plain(term[1]) in wanted for term in _TERM.finditer(page.text))


def _plain(anchor: str) -> str:
    return _SIGNS.sub("", anchor).casefold()


def _links_to_removed_targets(change: CheckedChange, targets: LinkTargets) -> Iterator[str]:
    """Yields links from unchanged pages to removed files and headings."""
    removed = RemovedTargets.of(change)
    if not removed:
        return
    before = LinkTargets(change.paths_before)
    others = sorted(path for path in change.paths if is_page(path) and path not in change.changed_pages)
    for path, text in change.texts(others):
        if not removed.may_be_linked(text, path, before, targets):
            continue
        page = change.page(path)
        for link in page.links if page else ():
            if not removed.may_be_linked(link.target, path, before, targets):
                continue
            if (problem := _problem(change, targets, path, link)) and _worked(change, before, path, link):
                yield f"{path}:{link.line}: {problem}"


def _worked(change: CheckedChange, before: LinkTargets, path: PurePosixPath, link: Link) -> bool:
    name, anchor = split_target(link.target)
    found = before.find(path, name) if name else path
    return found is not None and (not anchor or not is_page(found) or _has_anchor(change.page_before(found), anchor))
