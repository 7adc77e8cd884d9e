"""Renders Markdown as safe HTML: without scripts, the author's HTML, or pictures from other hosts.

Some texts take a Markdown parser very long, so this module is also run as a process that the server can end. Its
standard input is a JSON list of pages, each a list of the three fields of a `PageSource`. As soon as a page is done, it
writes a line of JSON: the HTML, or null if that is too long or the page cannot be rendered.
"""

import json
import posixpath
import resource
import sys
from collections.abc import Sequence
from html import escape
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from mdit_py_plugins.front_matter import front_matter_plugin

from bot.jobserver.documents import PICTURE_FORMATS, PageSource

_MEMORY = 1_000_000_000
LONGEST_HTML = 1_000_000


def render(page: PageSource) -> str:
    """Returns the page as HTML that needs only a style sheet; shows tags as they are written."""
    parser = (
        MarkdownIt("commonmark", {"html": False, "breaks": not page.path})
        .enable(["table", "strikethrough"])
        .use(front_matter_plugin)
    )
    parser.core.ruler.push("safety", _make_safe)
    parser.add_render_rule("front_matter", _front_matter)
    parser.add_render_rule("image", _picture)
    return str(parser.render(page.text, {"page": page}))


def _make_safe(state: StateCore) -> None:
    """Replaces style attributes by classes, and disables links that would not work from here."""
    for block in state.tokens:
        style = block.attrs.pop("style", None)
        if style:
            block.attrs["class"] = str(style).replace("text-align:", "align-")
        links: list[Token] = []
        for token in block.children or ():
            if token.type == "link_open":
                _make_link_safe(token)
                links.append(token)
            elif token.type == "link_close":
                token.tag = links.pop().tag


def _make_link_safe(token: Token) -> None:
    address = str(token.attrs.get("href", ""))
    if address.lower().startswith(("https://", "http://", "mailto:")):
        token.attrs["rel"] = "noopener noreferrer nofollow"
    else:
        token.tag = "span"
        token.attrs = {"class": "link", "title": address}


def _front_matter(_: RendererHTML, tokens: Sequence[Token], index: int, __: OptionsDict, ___: EnvType) -> str:
    return f'<pre class="front-matter">{escape(tokens[index].content)}</pre>\n'


def _picture(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType) -> str:
    token, page = tokens[index], env["page"]
    words = escape(renderer.renderInlineAsText(token.children or [], options, env))
    address = str(token.attrs.get("src", ""))
    path = picture_path(address, page.path)
    if path:
        return f'<img src="{escape(page.pictures + quote(path))}" alt="{words}" loading="lazy">'
    if address.lower().startswith(("https://", "http://")):
        shown = f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{escape(address)}</a>'
    else:
        shown = escape(address)
    return f'<span class="picture">Picture, not shown: {words} {shown}</span>'


def picture_path(address: str, page_path: str) -> str:
    """Returns the path of a picture in the repository; empty for other hosts and formats."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    if parts.scheme or parts.netloc or not parts.path.lower().endswith(PICTURE_FORMATS):
        return ""
    target = unquote(parts.path)
    folder = "" if target.startswith("/") else posixpath.dirname(page_path)
    path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    return "" if path.startswith("../") or "\0" in path else path


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for fields in json.load(sys.stdin):
        sys.stdout.write(f"{json.dumps(_rendered(PageSource(*fields)))}\n")
        sys.stdout.flush()


def _rendered(page: PageSource) -> str | None:
    try:
        html = render(page)
    except (RecursionError, MemoryError, ValueError, IndexError):
        return None
    return html if len(html) <= LONGEST_HTML else None
