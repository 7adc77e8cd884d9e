"""Which anchors the pages of a repository link to: a heading that is linked to keeps its words."""

import re
from functools import cached_property
from urllib.parse import unquote

from bot.jobserver.documents.page import Page, Span
from bot.jobserver.editors.builtin.files import WorkingFiles

_ANCHOR = re.compile(r"#([\w%.:-]{1,300}+)")


class LinkedAnchors:
    """Reads all pages once, when it is first asked."""

    def __init__(self, files: WorkingFiles) -> None:
        self._files = files

    def hold(self, page: Page, span: Span) -> bool:
        """Tells whether a place is in a heading whose anchor comes from its words and is linked to."""
        for heading in page.headings:
            if heading.content.start <= span.start < heading.content.end:
                return not heading.has_explicit_anchor and heading.anchor in self._anchors
        return False

    @cached_property
    def _anchors(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self._files.paths():
            found.update(_ANCHOR.findall(self._files.read(path) or ""))
        return frozenset(unquote(anchor) for anchor in found)
