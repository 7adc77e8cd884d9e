"""What a file reveals: a known value in any encoding, secrets by the rules, and allowed ones."""

import base64
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from bot.jobserver.editors.interface import EditResult
from bot.jobserver.executor.foreign_text import in_words, safe_result
from bot.jobserver.leaks.interface import Leak
from bot.jobserver.leaks.known_values import KnownValues
from bot.jobserver.leaks.scan import Allowances, Scanner, forms_of, squeezed, text_in
from bot.jobserver.settings import JobServerSettings

OWN = "kX9/w2+QzR7vLm4&pT8sYb1dN6"
"""No rule recognizes it."""
_DRAWN = random.Random(8)  # noqa: S311 - the same in each run
AWS = "AKIA" + "".join(_DRAWN.choices("ABCDEFGHJKLMNOPQRSTUVWXYZ234567", k=16))
FORMS: dict[str, Callable[[str], bytes]] = {
    "as it is": str.encode,
    "in UTF-16": lambda text: text.encode("utf-16"),
    "in UTF-16 without a mark": lambda text: b"\x01\x02" + text.encode("utf-16-be"),
    "in a binary": lambda text: bytes(range(256)) * 40 + b"\n" + text.encode() + b"\n" + bytes(range(256)),
    "with Latin-1 around": lambda text: b"caf\xe9 " + text.encode() + b" \xe9",
    "in a line of a megabyte": lambda text: b"word " * 200_000 + text.encode() + b" word" * 1000,
}
OWN_FORMS: dict[str, Callable[[str], bytes]] = {
    "in base64": lambda text: base64.b64encode(text.encode()),
    "in base64 of more": lambda text: base64.b64encode(f"user:{text}\n".encode()),
    "in base64 for addresses": lambda text: base64.urlsafe_b64encode(f"{{'k': {text}}}".encode()),
    "in base64 of short lines": lambda text: base64.encodebytes(text.encode() * 9),
    "in an address": lambda text: f"https://x.example/?key={quote(text, safe='')}".encode(),
    "with all its signs as escapes": lambda text: "".join(f"%{ord(sign):02x}" for sign in text).encode(),
    "in JSON within JSON": lambda text: json.dumps(json.dumps({"key": text})).encode(),
    "in HTML": lambda text: text.replace("&", "&amp;").encode(),
    "in hexadecimal digits": lambda text: text.encode().hex().upper().encode(),
    "in two strings of code": lambda text: f'key = "{text[:9]}" +\n      "{text[9:]}"'.encode(),
    "with signs that nobody sees": lambda text: "\u200b".join(text).encode(),
}


def found(data: bytes, known: tuple[str, ...] = (), *allowed: str, path: str = "docs/a.md") -> list[str]:
    return [one.rule or "own" for one in Scanner(known, Allowances(allowed)).suspicions(path, data)]


@pytest.mark.parametrize("form", [*FORMS, *OWN_FORMS])
def test_a_value_of_the_server_is_found_in_any_encoding(form: str) -> None:
    """Nobody can allow it."""
    assert found((FORMS | OWN_FORMS)[form](OWN), (OWN,), "**") == ["own"]


@pytest.mark.parametrize("form", FORMS)
def test_secrets_known_to_the_rules_are_found_in_any_text(form: str) -> None:
    """In any kind of file."""
    assert found(FORMS[form](f"\nid: {AWS}\n")) == ["aws-access-key-id"]


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=12), st.binary(max_size=40), st.binary(max_size=40))
def test_any_value_is_found_between_other_bytes(value: str, before: bytes, after: bytes) -> None:
    """Plain, and in base64 together with its surroundings."""
    forms = forms_of(value)
    if squeezed(value.encode()) in forms:
        assert any(form in squeezed(before + value.encode() + after) for form in forms)
        whole = squeezed(base64.b64encode(before + value.encode() + after))
        assert any(form in whole for form in forms)


@given(st.binary(max_size=400))
def test_any_bytes_are_decoded(data: bytes) -> None:
    """No file stops the search."""
    assert isinstance(text_in(data), str)
    assert isinstance(text_in(b"\xff\xfe" + data + b"\0"), str)


def test_a_short_value_is_not_searched_for() -> None:
    """It occurs in many files by chance."""
    assert forms_of("docs") == frozenset()


@pytest.mark.parametrize(
    ("allowed", "is_held"),
    [
        ((), True), (("docs/**",), False), (("docs/a.md:aws-access-key-id",), False), (("docs/a.md:jwt",), True),
        (("blog/**",), True), (("**:aws-access-key-id",), False), (("docs/*.mdx",), True),
    ],
)  # fmt: skip
def test_paths_and_rules_can_be_allowed(allowed: tuple[str, ...], is_held: bool) -> None:  # noqa: FBT001
    """Only by the operator; the agent could write a comment in the file."""
    assert bool(found(f"{AWS} # gitleaks:allow".encode(), (), *allowed)) is is_held


@pytest.mark.parametrize("value", ["/docs", "a,b", "../a.md:jwt"])
def test_a_path_that_is_none_is_refused_at_start(value: str) -> None:
    with pytest.raises(ValidationError):
        JobServerSettings(repository="/x", api_key="a key of sixteen characters", allowed_secrets=value)


def test_rules_that_do_not_exist_are_named() -> None:
    """An upgrade can remove some; they allow nothing, and the server starts."""
    settings = JobServerSettings(
        repository="/x", api_key="a key of sixteen characters",
        allowed_secrets="docs/a.md:no-such-rule docs/b.md:jwt blog/** c.md:configured-value",
    )  # fmt: skip
    assert settings.unknown_rules == ["configured-value", "no-such-rule"]


def test_scanning_a_megabyte_for_known_values_is_fast() -> None:
    """They are searched for everywhere, even without rules."""
    begin = time.process_time()
    assert found(b"word " * 200_000, tuple(f"{OWN}{number}" for number in range(20)), "**") == []
    assert time.process_time() - begin < 5


def test_the_server_knows_its_own_and_its_programs_secrets(tmp_path: Path) -> None:
    """Settings, variables, key files, an agent's login; but no region, path or placeholder."""
    (tmp_path / "key").write_text("from-a-file-0123456789\n")
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-proj-" + OWN.replace("/", "x")}))
    settings = JobServerSettings(
        repository="https://github.com/acme/docs", api_key="api-key-of-the-server", agent_home=home,
        reviewers=SecretStr("Ada: key-of-ada-0123456789"), github_token=SecretStr("token-of-github-01"),
        pass_environment="REGION,DEPLOY_AUTH",
    )  # fmt: skip
    environment = {
        "ANTHROPIC_API_KEY": "agents-own-key-01", "REGION": "eu-central-1", "DEPLOY_AUTH": "pass-through-1",
        "OTHER_KEY_FILE": str(tmp_path / "key"), "HTTPS_PROXY": "http://user:Pr0xyPassw0rd!@proxy.internal:3128",
        "SSH_AUTH_SOCK": "/run/agent.sock", "X_TOKEN": "your-token-here", "PATH": "/usr/bin:/bin",
        "PAGEHAND_JOBSERVER_ALLOWED_SECRETS": "docs/samples/**",
    }  # fmt: skip
    known = KnownValues(settings, environment)
    told = set(known())
    assert {
        "api-key-of-the-server", "key-of-ada-0123456789", "token-of-github-01", "agents-own-key-01", "pass-through-1",
        "from-a-file-0123456789", "Pr0xyPassw0rd!",
    } <= told  # fmt: skip
    assert any(value.startswith("sk-proj-") for value in told)
    assert not told & {"eu-central-1", "/run/agent.sock", "your-token-here", "/usr/bin:/bin", "docs/samples/**"}
    assert known.known("a api-key-of-the-server b") == "a [masked: Pagehand's own credential] b"


def test_an_editors_output_is_masked_completely() -> None:
    """Including the report of its run."""
    said = EditResult(f"a {OWN}", f"b {OWN}", f"c {OWN}", (f"d {OWN}", "e"))
    masked = safe_result(said, lambda text: text.replace(OWN, "-"))
    assert masked == EditResult("a -", "b -", "c -", ("d -", "e"))


def test_many_leaks_are_summarized() -> None:
    """With everything that can be allowed; the server's own values cannot."""
    looks = [Leak(f"{number}.md", "AWS key", "aws-access-key-id") for number in range(9)]
    words = in_words([Leak("a.md", "Pagehand's own credential"), *looks])
    looks_like = "what looks like a secret (AWS key, rule aws-access-key-id) in"
    assert words == (
        "Nothing was pushed, since the change contains a key of this job server, in `a.md`, "
        f"{looks_like} `0.md`, {looks_like} `1.md`, and 7 more. Reply to have it removed, or, if it is none, have "
        "'0.md:aws-access-key-id' '1.md:aws-access-key-id' added to PAGEHAND_JOBSERVER_ALLOWED_SECRETS"
    )
