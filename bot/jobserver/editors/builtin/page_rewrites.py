"""Renames a page in texts: its title, links to it, and its menu entries. Pure."""

import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from posixpath import normpath
from urllib.parse import unquote

from bot.jobserver.documents.front_matter import find_front_matter
from bot.jobserver.documents.navigation_entries import scalar
from bot.jobserver.documents.page import Link, LinkKind, ParsedPage, Region, RegionKind, heading_anchor, slug
from bot.jobserver.documents.parsing import MARKDOWN_SUFFIXES

_NUMBER = re.compile(r"(?P<number>\d{1,4}[-_. ]+)(?=\D)")
_TARGET = re.compile(r"[^\s()<>\"'`]+")
_DEFINITION = re.compile(r"^ {0,3}\[[^\]\[\n]{1,200}\]:[ \t]{0,5}<?(?P<target>[^\s<>]{1,500})", re.MULTILINE)
_DOCUMENT_ROLE = re.compile(r"\{doc\}`(?:[^`<>\n]{0,200}<)?(?P<target>[^`<>\n]{1,200})>?`")
_TITLE_LINE = re.compile(
    r"(?P<key>title|sidebarTitle|sidebar_label|linkTitle)(?P<sign>[ \t]*+[:=][ \t]*+)(?P<value>\S[^\r\n]*)"
)
_ENDINGS = (*MARKDOWN_SUFFIXES, ".html")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SOURCE = re.compile(r'"source"\s{0,20}:\s{0,20}\Z')
_LIST = re.compile(r'"redirects"\s{0,50}:\s{0,50}\[(?P<space>\s{0,200})')
_LONGEST_KEY = 60


@dataclass(frozen=True)
class Renaming:
    """A page's old and new paths and titles; either can stay the same."""

    old: PurePosixPath
    new: PurePosixPath
    old_title: str
    new_title: str


def new_path(old: PurePosixPath, title: str) -> PurePosixPath:
    """Returns a page's path for a title; keeps the folder, the number and the separator of words."""
    number = _NUMBER.match(old.stem)
    words = slug(title) or "page"
    name = words.replace("-", "_") if "_" in old.stem and "-" not in old.stem else words
    return old.with_name(f"{number['number'] if number else ''}{name}{old.suffix}")


def retitled(text: str, renaming: Renaming) -> str:
    """Returns a page with the new title in its front matter and, if it was the old title, its first heading."""
    front = find_front_matter(text)
    end = front.span.end if front else 0
    return _retitled_front_matter(text[:end], renaming) + _retitled_heading(text[end:], renaming)


def _retitled_front_matter(block: str, renaming: Renaming) -> str:
    def written(match: re.Match[str]) -> str:
        value = match["value"].rstrip()
        if value.strip("\"'") != renaming.old_title:
            return match[0]
        title = renaming.new_title
        quoted = value[:1] in {'"', "'"} or match["sign"].strip() == "="
        return f"{match['key']}{match['sign']}{_quoted(title) if quoted else scalar(title)}"

    lines = block.splitlines(keepends=True)
    return "".join(_TITLE_LINE.sub(written, line, count=1) if _TITLE_LINE.match(line) else line for line in lines)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _retitled_heading(body: str, renaming: Renaming) -> str:
    lines = body.splitlines(keepends=True)
    for index, (line, below) in enumerate(zip(lines[:200], [*lines[1:], ""], strict=False)):
        is_marked = line.startswith("# ")
        words = line.strip().removeprefix("# ").strip() if is_marked else line.strip()
        is_underlined = len(below.strip()) > 1 and set(below.strip()) in ({"="}, {"-"})
        if words == renaming.old_title and (is_marked or is_underlined):
            lines[index] = line.replace(renaming.old_title, renaming.new_title, 1)
            break
    return "".join(lines)


class Relinker:
    """Updates links to the old page. `roots`: possible folders of the site's root, in order."""

    def __init__(self, renaming: Renaming, paths: Collection[PurePosixPath], roots: Sequence[PurePosixPath]) -> None:
        self._renaming = renaming
        self._known = {str(_bare(path)) for path in paths}
        self._old = str(_bare(renaming.old))
        self._roots = roots
        self._anchors = heading_anchor(renaming.old_title), heading_anchor(renaming.new_title)

    def relinked(self, path: PurePosixPath, page: ParsedPage) -> tuple[str, int]:
        """Returns a page's text with updated links, and how many were changed."""
        targets = {link.target: new for link in page.links if (new := self._new_target(path, link)) is not None}
        changes = [change for region in page.regions for change in self._in_region(page.text, region, targets)]
        changes += _in_definitions(page, targets)
        changes += self._documents(path, page.text)
        changes = [change for change in dict.fromkeys(changes) if change[2] != page.text[change[0] : change[1]]]
        return _changed(page.text, changes), len(changes)

    def leads_here(self, path: PurePosixPath, target: str) -> bool:
        """Tells whether a link of a page leads to the old page."""
        written = unquote(target.partition("#")[0].partition("?")[0])
        if not written:
            return False
        if written.startswith("/"):
            starts: Sequence[PurePosixPath] = self._roots
        else:
            starts = (path.parent, path.with_suffix(""))
        found = (bare for start in starts if (bare := _joined(start, written.lstrip("/"))) in self._known)
        return next(found, "") == self._old

    def moved(self, target: str) -> str | None:
        """Returns the target with the page's new name; None if it does not contain the old one."""
        path, sign, rest = _split(target)
        folder, slash, name = path.rstrip("/").rpartition("/")
        old, new = self._renaming.old, self._renaming.new
        number = _NUMBER.match(old.stem)
        stems = {old.stem: new.stem}
        if number:
            stems[old.stem.removeprefix(number[0])] = new.stem.removeprefix(number[0])
        names = {f"{was}{ending}": f"{now}{ending}" for was, now in stems.items() for ending in ("", *_ENDINGS)}
        if unquote(name) not in names:
            return None
        if sign == "#" and rest == self._anchors[0]:
            rest = self._anchors[1]
        return f"{folder}{slash}{names[unquote(name)]}{'/' if path.endswith('/') else ''}{sign}{rest}"

    def _new_target(self, path: PurePosixPath, link: Link) -> str | None:
        if link.kind is LinkKind.ANCHOR and path == self._renaming.old:
            return f"#{self._anchors[1]}" if link.target == f"#{self._anchors[0]}" else None
        if link.kind is not LinkKind.RELATIVE or link.is_image or not self.leads_here(path, link.target):
            return None
        return self.moved(link.target)

    def _in_region(self, text: str, region: Region, targets: dict[str, str]) -> Iterator[tuple[int, int, str]]:
        if region.kind not in {RegionKind.LINK, RegionKind.MARKUP} or not targets:
            return
        start, end = region.span.start, region.span.end
        found = [match for match in _TARGET.finditer(text, start, end) if match[0] in targets]
        yield from ((match.start(), match.end(), targets[match[0]]) for match in found)
        old = self._renaming.old_title
        if found and text.startswith("](", start) and text.endswith(f"[{old}", max(0, start - len(old) - 1), start):
            yield start - len(old), start, self._renaming.new_title
        at = text.find(f'title="{old}"', start, end) if found and '"' not in self._renaming.new_title else -1
        if at >= 0:
            yield at + len('title="'), at + len('title="') + len(old), self._renaming.new_title

    def _documents(self, path: PurePosixPath, text: str) -> Iterator[tuple[int, int, str]]:
        """Yields references of MyST (Sphinx): `{doc}` roles and the lines of a `{toctree}`."""
        for match in _DOCUMENT_ROLE.finditer(text):
            if self.leads_here(path, match["target"]) and (new := self.moved(match["target"])):
                yield match.start("target"), match.end("target"), new
        if "{toctree}" not in text:
            return
        position, inside = 0, False
        for line in text.splitlines(keepends=True):
            if line.strip():
                inside = "toctree" in line or (inside and (line[0] in " \t" or "{toctree}" in text))
            name = line.strip().rpartition("<")[2].removesuffix(">")
            if inside and name and self.leads_here(path, name) and (new := self.moved(name)):
                at = position + line.rindex(name)
                yield at, at + len(name), new
            position += len(line)


def _in_definitions(page: ParsedPage, targets: Mapping[str, str]) -> Iterator[tuple[int, int, str]]:
    """Yields the targets of `[name]: target`, outside code."""
    if not targets:
        return
    code = sorted((region.span.start, region.span.end) for region in page.regions if region.kind is RegionKind.CODE)
    for match in _DEFINITION.finditer(page.text):
        start, end = match.span("target")
        before = bisect_right(code, (start, end))
        if match["target"] in targets and not (before and start < code[before - 1][1]):
            yield start, end, targets[match["target"]]


def _split(target: str) -> tuple[str, str, str]:
    sign = min((sign for sign in "?#" if sign in target), key=target.index, default="")
    path, _, rest = target.partition(sign) if sign else (target, "", "")
    return path, sign, rest


def _bare(path: PurePosixPath) -> PurePosixPath:
    return path.with_suffix("") if path.suffix.lower() in _ENDINGS else path


def _joined(start: PurePosixPath, written: str) -> str:
    joined = normpath(str(start / written))
    return "" if joined.startswith("..") else str(_bare(PurePosixPath(joined)))


def _changed(text: str, changes: Sequence[tuple[int, int, str]]) -> str:
    parts, done = list[str](), 0
    for start, end, new in sorted(changes):
        if start >= done:
            parts += [text[done:start], new]
            done = end
    return "".join([*parts, text[done:]])


def with_new_address(text: str, old: PurePosixPath, new: PurePosixPath) -> str:
    """Returns the settings with the old address replaced in all strings except the sources of redirects.

    Both are paths from the site's root, without suffix.
    """
    parts, done = list[str](), 0
    for match in _STRING.finditer(text):
        value = match[0][1:-1]
        if value.strip("/") != str(old) or _SOURCE.search(text[max(0, match.start() - _LONGEST_KEY) : match.start()]):
            continue
        parts += [text[done : match.start()], f'"{value.replace(str(old), str(new))}"']
        done = match.end()
    return "".join([*parts, text[done:]])


def with_redirect(text: str, old: PurePosixPath, new: PurePosixPath) -> str | None:
    """Returns the settings with a redirect from one address to another; None if it cannot be added."""
    entry = json.dumps({"source": f"/{old}", "destination": f"/{new}"}, ensure_ascii=False)
    changed = _inserted(text, entry)
    try:
        before, after = json.loads(text), json.loads(changed)
    except (ValueError, RecursionError):
        return None
    earlier = before.get("redirects", []) if isinstance(before, dict) else None
    if not isinstance(earlier, list):
        return None
    expected = before | {"redirects": [json.loads(entry), *earlier]}
    return changed if after == expected else None


def _inserted(text: str, entry: str) -> str:
    if found := _LIST.search(text):
        is_empty = text[found.end() : found.end() + 1] == "]"
        after = "" if is_empty else f",{found['space'] or ' '}"
        before = "" if is_empty else found["space"]
        return f"{text[: found.start('space')]}{before}{entry}{after}{text[found.end() :]}"
    last = text.rstrip().rfind("}")
    body = text[:last].rstrip()
    newline = "\r\n" if "\r\n" in text else "\n"
    return f'{body},{newline}  "redirects": [{newline}    {entry}{newline}  ]{newline}{text[last:]}'
