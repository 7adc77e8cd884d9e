"""Addresses that a site serves without a file: redirects in its settings, and pages that its generator adds. Pure."""

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from bot.jobserver.documents.parsing import decoded
from bot.jobserver.repository.snapshot import Snapshot

_MOST_SETTINGS = 20
"""How many settings files of a repository are read."""
_MOST_REFERENCES = 4
_LARGEST = 1_000_000
_FEEDS = ("rss.xml", "atom.xml", "feed.xml", "feed.json", "index.xml")
_EVERYWHERE = ("sitemap.xml", "robots.txt", "404.html", "favicon.ico", "404")
_GENERATED: dict[str, tuple[str, ...]] = {
    # https://www.mintlify.com/docs/ai/llmstxt and .../settings/seo
    "mintlify": ("llms.txt", "llms-full.txt", ".well-known/llms.txt", "skill.md", "mcp", *_FEEDS),
    # https://docusaurus.io/docs/blog#feed, https://docusaurus.io/docs/search
    "docusaurus": ("search", "tags", "archive", "authors", "markdown-page", *_FEEDS),
    # https://www.mkdocs.org/user-guide/configuration/
    "mkdocs": ("search/search_index.json", "search.html", *_FEEDS),
    # https://www.sphinx-doc.org/en/master/usage/restructuredtext/roles.html#cross-referencing-arbitrary-locations
    "sphinx": (
        "genindex.html",
        "modindex.html",
        "py-modindex.html",
        "search.html",
        "objects.inv",
        "genindex",
        "search",
    ),
    # https://gohugo.io/templates/rss/
    "hugo": _FEEDS,
    # https://vitepress.dev/reference/site-config
    "vitepress": ("hashmap.json", *_FEEDS),
}
"""Last parts of addresses, by generator."""
_SETTINGS = {
    "mintlify": re.compile(r"(?:docs|mint)\.json"),
    "docusaurus": re.compile(r"docusaurus\.config\.[cm]?[jt]s"),
    "mkdocs": re.compile(r"mkdocs\.ya?ml"),
    "sphinx": re.compile(r"conf\.py"),
    "hugo": re.compile(r"hugo\.(?:toml|ya?ml|json)"),
}
_FROM = re.compile(r"""\bfrom['"]?\s{0,20}:\s{0,20}(?:['"](?P<one>[^'"\n]{1,500})['"]|\[(?P<more>[^\]\[]{1,5000})\])""")
_QUOTED = re.compile(r"""['"]([^'"\n]{1,500})['"]""")
_MAPPED = re.compile(r"^ {2,20}['\"]?([\w./-]{1,500}?)\.md['\"]?:[ ]", re.MULTILINE)
_OPEN_END = re.compile(r"[:*(]")
_Reference = Callable[[str], object]
"""Reads the JSON file that another one names."""


@dataclass(frozen=True)
class SiteAddresses:
    """`redirected` are whole addresses, `below` are prefixes, `generated` are last parts; none starts with a slash."""

    redirected: frozenset[str]
    below: tuple[str, ...]
    generated: frozenset[str]
    has_labels: bool = False
    """A link without a file ending can be a label (Sphinx with MyST) or be resolved by a site's render hooks (Hugo)."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> "SiteAddresses":
        """Returns the addresses of a repository's site; if its generator is unknown, those of all known generators."""
        paths = snapshot.paths()
        kinds = {kind for path in paths if (kind := _generator(path))}
        written = (*_EVERYWHERE, *(name for kind in kinds or _GENERATED for name in _GENERATED[kind]))
        sources = {source.strip("/") for source in _redirects(snapshot, paths)}
        patterns = {source for source in sources if _OPEN_END.search(source)}
        beginnings = {source[: found.start()] for source in patterns if (found := _OPEN_END.search(source))}
        has_labels = not kinds.isdisjoint({"sphinx", "hugo"})
        return cls(frozenset(sources - patterns), tuple(sorted(beginnings - {""})), frozenset(written), has_labels)

    def serve(self, target: str) -> bool:
        """Tells whether a link's target, a path from the site's root or a label, is one of them."""
        if not target.startswith("/"):
            return self.has_labels and not PurePosixPath(target).suffix
        path = target.strip("/")
        if path in self.redirected or path.startswith(self.below):
            return True
        return any(path == name or path.endswith(f"/{name}") for name in self.generated)


def _redirects(snapshot: Snapshot, paths: Collection[PurePosixPath]) -> Iterator[str]:
    """Yields the sources of redirects."""
    named = sorted((path for path in paths if path.name in _READERS or _generator(path) == "docusaurus"), key=_depth)
    for path in named[:_MOST_SETTINGS]:
        if (text := _text(snapshot, path)) is not None:
            read = _READERS.get(path.name, _of_docusaurus)
            yield from read(text, partial(_referenced, snapshot, path.parent))


def _depth(path: PurePosixPath) -> tuple[int, PurePosixPath]:
    return len(path.parts), path


def _generator(path: PurePosixPath) -> str | None:
    """Returns the generator whose settings a file contains."""
    if path.parent.name == ".vitepress" and path.stem == "config":
        return "vitepress"
    return next((kind for kind, name in _SETTINGS.items() if name.fullmatch(path.name)), None)


def _text(snapshot: Snapshot, path: PurePosixPath) -> str | None:
    data = snapshot.read(path)
    return None if data is None or len(data) > _LARGEST else decoded(data)


def _referenced(snapshot: Snapshot, folder: PurePosixPath, name: str) -> object:
    path = posixpath.normpath(posixpath.join(str(folder), name))
    text = None if path.startswith(("/", "..")) else _text(snapshot, PurePosixPath(path))
    return _parsed(text or "")


def _parsed(text: str) -> object:
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _of_json(text: str, referenced: _Reference) -> Iterator[str]:
    """Reads `redirects`, a list or `{"$ref": FILE}`, as Mintlify and Vercel have it."""
    settings = _parsed(text)
    found = settings.get("redirects") if isinstance(settings, dict) else None
    for _ in range(_MOST_REFERENCES):
        if not isinstance(found, dict) or not isinstance(name := found.get("$ref"), str):
            break
        found = referenced(name)
        found = found.get("redirects", found) if isinstance(found, dict) else found
    yield from _values(found, "source")


def _values(entries: object, key: str) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(value := entry.get(key), str):
            yield value


def _of_toml(text: str, _referenced: _Reference) -> Iterable[str]:
    try:
        return _values(tomllib.loads(text).get("redirects"), "from")
    except (ValueError, RecursionError):
        return ()


def _of_lines(text: str, _referenced: _Reference) -> Iterator[str]:
    """Reads Netlify's `_redirects`: FROM TO STATUS."""
    return (words[0] for line in text.splitlines() if (words := line.split(maxsplit=1)) and words[0].startswith("/"))


def _of_mkdocs(text: str, _referenced: _Reference) -> Iterator[str]:
    """Reads `redirect_maps` of https://github.com/mkdocs/mkdocs-redirects."""
    maps = text.partition("redirect_maps:")[2]
    return (found.removesuffix("index") for found in _MAPPED.findall(maps))


def _of_docusaurus(text: str, _referenced: _Reference) -> Iterator[str]:
    """Finds settings of https://docusaurus.io/docs/api/plugins/@docusaurus/plugin-client-redirects in JavaScript."""
    for found in _FROM.finditer(text):
        yield from [found["one"]] if found["one"] else _QUOTED.findall(found["more"])


_READERS: dict[str, Callable[[str, _Reference], Iterable[str]]] = {
    "docs.json": _of_json,
    "mint.json": _of_json,
    "vercel.json": _of_json,
    "netlify.toml": _of_toml,
    "_redirects": _of_lines,
    "mkdocs.yml": _of_mkdocs,
    "mkdocs.yaml": _of_mkdocs,
}
