"""Finds pages that no longer parse: broken front matter and, in MDX, unclosed tags and braces and HTML comments.

MDX's own compiler rejects everything reported here, and more (https://mdxjs.com/docs/troubleshooting-mdx/).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from bot.jobserver.checks.change import CheckedChange, text_of
from bot.jobserver.documents.delimiters import Tag
from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.masking import MaskedText, mask

NAME = "MDX"
_DEEPEST = 200


@dataclass(frozen=True)
class Fault:
    """Why a page does not compile; `position` is an index into its text."""

    position: int
    message: str


def applies_to(change: CheckedChange) -> bool:
    """Tells whether the change includes MDX pages."""
    return any(map(_is_mdx, change.changed_pages))


def broken_mdx(change: CheckedChange) -> Iterator[str]:
    """Yields the first fault, with line and column, of each page that compiled before and does not any more."""
    for path in filter(_is_mdx, change.changed_pages):
        page, before = change.page(path), text_of(change.before, path)
        if page is None or (fault := mdx_fault(page.text)) is None:
            continue
        if before is None or mdx_fault(before) is None:
            line = page.text.count("\n", 0, fault.position) + 1
            column = fault.position - page.text.rfind("\n", 0, fault.position)
            yield f"{path}:{line}:{column}: {fault.message}"


def _is_mdx(path: PurePosixPath) -> bool:
    return path.suffix.lower() == ".mdx"


def mdx_fault(text: str) -> Fault | None:
    """Returns the first fault of a page."""
    front_matter = find_front_matter(text)
    masked = mask(text, start=front_matter.span.end if front_matter else 0, mdx=True)
    if masked.not_parsed_from is not None:
        return Fault(masked.not_parsed_from, "a brace `{` is not closed, or not escaped with a backslash")
    faults = [fault for fault in (_unbalanced(masked.tags), _comment(text, masked)) if fault]
    return min(faults, key=lambda fault: fault.position, default=None)


def _unbalanced(tags: Sequence[Tag]) -> Fault | None:
    """Finds a tag without its counterpart; MDX requires even HTML's void elements to be closed."""
    opened: list[Tag] = []
    for tag in tags:
        if tag.is_empty and not tag.is_closing:
            continue
        if not tag.is_closing:
            opened.append(tag)
            if len(opened) > _DEEPEST:
                return None
        elif not opened:
            return Fault(tag.start, f"`</{tag.name}>` closes nothing")
        elif (last := opened.pop()).name != tag.name:
            return Fault(last.start, f"`<{last.name}>` is not closed before `</{tag.name}>`")
    return Fault(opened[-1].start, f"`<{opened[-1].name}>` is not closed") if opened else None


def _comment(text: str, masked: MaskedText) -> Fault | None:
    starts = (region.span.start for region in masked.regions if text.startswith("<!--", region.span.start))
    start = next(starts, None)
    return None if start is None else Fault(start, "`<!--` begins no comment in MDX: write `{/* … */}`")


def unreadable_front_matter(change: CheckedChange) -> Iterator[str]:
    """Yields pages whose front matter the change made unreadable."""
    for path in change.changed_pages:
        page, before = change.page(path), change.page_before(path)
        was_readable = not (before and before.front_matter and before.front_matter.error)
        if page and page.front_matter and page.front_matter.error and was_readable:
            yield f"{path}: its front matter cannot be read: {page.front_matter.error}"
