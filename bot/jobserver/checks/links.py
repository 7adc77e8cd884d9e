"""Links and anchors inside the repository that the change broke."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.jobserver.checks.change import Change
from bot.jobserver.checks.link_targets import LinkTargets, split_target
from bot.jobserver.documents.page import Link, LinkKind, Page
from bot.jobserver.documents.parsing import is_page

NAME = "links"
_MASK = "\ue000"
_SEARCHED_AT_MOST = 5_000
"""Pages that are searched for links to what is gone."""


def broken_links(change: Change) -> Iterator[str]:
    """Yields the links on new lines that lead nowhere, then those of all pages to what the change removed."""
    targets = LinkTargets(change.paths)
    for path in change.changed_pages:
        new = change.new_lines(path)
        yield from (problem for line, problem in _broken_on(change, targets, path) if line in new)
    yield from _links_to_what_is_gone(change, targets)


def _broken_on(change: Change, targets: LinkTargets, path: PurePosixPath) -> Iterator[tuple[int, str]]:
    page = change.page(path)
    for link in page.links if page else ():
        if problem := _problem(change, targets, path, link):
            yield link.line, f"{path}:{link.line}: {problem}"


def _problem(change: Change, targets: LinkTargets, path: PurePosixPath, link: Link) -> str:
    if link.kind is LinkKind.ABSOLUTE or _is_made_by_a_template(link.target):
        return ""
    name, anchor = split_target(link.target)
    found = targets.find(path, name) if name else path
    if found is None:
        return f"the {'image' if link.is_image else 'link'} to `{link.target}` leads nowhere"
    if anchor and is_page(found) and not _has_anchor(change.page(found), anchor):
        return f"the link to `{link.target}`: there is no such heading"
    return ""


def _is_made_by_a_template(target: str) -> bool:
    return any(mark in target for mark in ("{", "}", "<", "$", _MASK))


def _has_anchor(page: Page | None, anchor: str) -> bool:
    return page is None or bool(page.not_parsed) or anchor.lower() in {known.lower() for known in page.anchors}


def _links_to_what_is_gone(change: Change, targets: LinkTargets) -> Iterator[str]:
    """Yields links of pages that did not change, to files and headings that did."""
    words = {path.stem for path in change.removed} | set(_anchors_gone(change))
    if not words:
        return
    before = LinkTargets(change.paths_before)
    others = sorted(path for path in change.paths if is_page(path) and path not in change.changed_pages)
    for path in others[:_SEARCHED_AT_MOST]:
        if not _mentions(change, path, words):
            continue
        page = change.page(path)
        for link in page.links if page else ():
            if _problem(change, targets, path, link) and _worked(change, before, path, link):
                yield f"{path}:{link.line}: {_problem(change, targets, path, link)}"


def _anchors_gone(change: Change) -> Iterator[str]:
    for path in change.changed_pages:
        before, after = change.page_before(path), change.page(path)
        if before and after:
            yield from before.anchors - after.anchors


def _mentions(change: Change, path: PurePosixPath, words: set[str]) -> bool:
    data = change.after.read(path) or b""
    return any(word.encode() in data for word in words)


def _worked(change: Change, before: LinkTargets, path: PurePosixPath, link: Link) -> bool:
    name, anchor = split_target(link.target)
    found = before.find(path, name) if name else path
    return found is not None and (not anchor or not is_page(found) or _has_anchor(change.page_before(found), anchor))
