"""Compares the check of MDX with MDX's own compiler, and checks pages changed by the built-in editor."""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pytest
from support.agents.packages import NotInstalled, Package, installed_folder
from support.builtin_editor import work
from support.oracles.mdx_pages import BAD, GOOD

from bot.jobserver.checks.page_syntax import mdx_fault

MDX = Package("@mdx-js/mdx", "3.1.1")
_COMPILE = """
import {compile} from '@mdx-js/mdx'
let input = ''
for await (const chunk of process.stdin) input += chunk
const compiles = text => compile(text).then(() => true, () => false)
console.log(JSON.stringify(await Promise.all(JSON.parse(input).map(compiles))))
"""
PROMPTS = (
    'Replace "colour" with "color (or paint)"',
    "Fix the typos",
    'Add a section "Limits" to the page titled Colours: At most {n} <Card> a page.',
    "Rename the Colours page to Paint {and} Lamps",
    "Write a page about <Lamp> in {braces}",
)  # fmt: skip
PAGE = """---
title: Colours
---
import {{ Card }} from '/card.mdx'

# Colours

The colour is teh best, see [the colour](/colour.mdx#more) and `colour {{`.

<Card title="colour" on={{() => {{ return "colour" }}}}>

{}

</Card>

## More

Its colour. {{/* colour */}}
"""

Compiler = Callable[[Sequence[str]], list[bool]]


@pytest.fixture(scope="module")
def compiles() -> Compiler:
    """Returns whether the compiler accepts each of the texts."""
    try:
        folder = installed_folder(MDX)
    except NotInstalled as error:
        pytest.skip(str(error))
    node = shutil.which("node")
    assert node, "npm comes with it"

    def ask(texts: Sequence[str]) -> list[bool]:
        done = subprocess.run(
            (node, "--input-type=module", "--eval", _COMPILE),
            cwd=folder, input=json.dumps(texts), capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        return list(json.loads(done.stdout))

    return ask


def test_the_compiler_and_the_check_agree(compiles: Compiler) -> None:
    """Also for combined texts: a good text is good after a faulty one, and hides no fault."""
    pairs = product((*GOOD, *BAD), (text for text in GOOD if not text.startswith("import")))  # nothing twice
    texts = [*GOOD, *BAD, *map("\n".join, pairs)]
    answers = dict(zip(texts, compiles(texts), strict=True))
    assert {text: mdx_fault(text) is None for text in texts} == answers
    assert sum(answers.values()) > len(GOOD)


@pytest.mark.full
def test_pages_changed_by_the_built_in_editor_still_compile(compiles: Compiler, tmp_path: Path) -> None:
    """Every prompt on pages of every kind; the inserted text may contain braces and tags."""
    changed = []
    for number, prompt in enumerate(PROMPTS):
        root = tmp_path / str(number)
        for index, text in enumerate(GOOD):
            page = root / "docs" / f"page{index}" / "colours.mdx"
            page.parent.mkdir(parents=True)
            page.write_text(PAGE.format(text.strip()) if not text.startswith("import") else text, encoding="utf-8")
        before = {page: page.read_text(encoding="utf-8") for page in root.rglob("*.mdx")}
        assert all(compiles(list(before.values())))
        work(prompt, root)
        changed += [
            text for page in root.rglob("*.mdx") if before.get(page) != (text := page.read_text(encoding="utf-8"))
        ]
    assert len(changed) > 20
    assert [text for text, good in zip(changed, compiles(changed), strict=True) if not good] == []
