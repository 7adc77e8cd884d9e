"""Mintlify's settings when a page gets another name: its entries, and a redirect from the old address. Pure."""

import json
import re
from pathlib import PurePosixPath

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SOURCE = re.compile(r'"source"\s{0,20}:\s{0,20}\Z')
_LIST = re.compile(r'"redirects"\s{0,50}:\s{0,50}\[(?P<space>\s{0,200})')
_LONGEST_KEY = 60


def with_new_address(text: str, old: PurePosixPath, new: PurePosixPath) -> str:
    """Returns the settings with each string that is the old address replaced, but for what redirects come from.

    Both are paths from the site's root, without ending.
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
    """Returns the settings with a redirect from one address to another; None where there is no place for it."""
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
