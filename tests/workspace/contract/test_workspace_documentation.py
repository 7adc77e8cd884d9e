"""What the documentation says of the page's modules is correct."""

import re
from pathlib import Path

WORKSPACE = Path(__file__).parents[3] / "bot" / "workspace"
STATIC = WORKSPACE / "page" / "static"
BELOW = {
    "ui": set(),
    "data": set(),
    "text": {"ui"},
    "blocks": {"ui", "text"},
    "messages": {"ui", "text", "blocks"},
    "composer": {"ui", "text"},
    "panes": {"ui", "text", "blocks", "messages", "composer"},
}
"""The folders that each folder of the page may import from."""


def test_the_pages_modules_import_only_lower_ones() -> None:
    imports = [
        (path.parent.name, (path.parent / target).resolve())
        for path in STATIC.glob("*/*.js")
        for target in re.findall(r'^import .* from "(.*)";$', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert imports
    assert all(target.is_file() for _, target in imports)
    assert [(own, target) for own, target in imports if target.parent.name not in {own, *BELOW[own]}] == []
