"""What a file reveals: a known value in any encoding, secrets by the rules, and allowed ones."""

import base64
import json
import random
import re
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from bot.jobapi.models import ProposedPage
from bot.jobserver.editors.interface import EditResult
from bot.jobserver.errors import LeakScanError
from bot.jobserver.leaks.own_secrets import WITHHELD, KnownValues, OwnSecrets, forms_of, layers, squeezed, text_in
from bot.jobserver.leaks.scan import PIECE, Scanner, Suspicion
from bot.jobserver.pipeline.descriptions import safe_result
from bot.jobserver.pipeline.pipeline import in_words
from bot.jobserver.settings import JobServerSettings
from bot.runtime.secrets import SecretKind

pytestmark = pytest.mark.promise("keys not pushed")

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
    "across two pieces": lambda text: b"a " * (PIECE // 2 - 5) + text.encode() + b" a" * 1000,
    "in entities": lambda text: "".join(f"&#{ord(sign)};" for sign in text).encode(),
    "in entities in entities": lambda text: "".join(f"&amp;amp;#x{ord(sign):X};" for sign in text).encode(),
    "in Unicode escapes": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text).encode(),
    "with Unicode escapes before digits": lambda text: re.sub(
        r"[^\d\s](?=\d)", lambda sign: f"\\u{ord(sign[0]):04x}", text
    ).encode(),
    "in Unicode escapes in braces": lambda text: "".join(f"\\u{{{ord(sign):x}}}" for sign in text).encode(),
    "in long Unicode escapes": lambda text: "".join(f"\\U{ord(sign):08x}" for sign in text).encode(),
    "in bytes' escapes": lambda text: "".join(f"\\x{ord(sign):02X}" for sign in text).encode(),
    "with tags in it": lambda text: "<b></b>".join(text).encode(),
    "with escaped tags in it": lambda text: "&lt;x y=1&gt;".join(text).encode(),
    "in wide characters": lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in text).encode(),
    "with all its signs as escapes": lambda text: "".join(f"%{ord(sign):02x}" for sign in text).encode(),
    "with signs that nobody sees": lambda text: "\u200b".join(text).encode(),
}
OWN_FORMS: dict[str, Callable[[str], bytes]] = {
    "in base64": lambda text: base64.b64encode(text.encode()),
    "in base64 of more": lambda text: base64.b64encode(f"user:{text}\n".encode()),
    "in base64 of UTF-16": lambda text: base64.b64encode(f"user:{text}".encode("utf-16")),
    "in base64 for addresses": lambda text: base64.urlsafe_b64encode(f"{{'k': {text}}}".encode()),
    "in base64 of short lines": lambda text: base64.encodebytes(text.encode() * 9),
    "in an address": lambda text: f"https://x.example/?key={quote(text, safe='')}".encode(),
    "in JSON within JSON": lambda text: json.dumps(json.dumps({"key": text})).encode(),
    "in hexadecimal digits": lambda text: text.encode().hex().upper().encode(),
    "in two strings of code": lambda text: f'key = "{text[:9]}" +\n      "{text[9:]}"'.encode(),
    "in another case": lambda text: text.swapcase().encode(),
    "with accents": lambda text: "\u0301".join(text).encode(),
}


def found(data: bytes, known: tuple[str, ...] = (), *allowed: str) -> list[str]:
    suspicions = Scanner(OwnSecrets(known), allowed).suspicions("docs/a.md", data)
    return sorted({one.rule or "own" for one in suspicions})


@pytest.mark.parametrize("form", [*FORMS, *OWN_FORMS])
def test_a_value_of_the_server_is_found_in_any_form(form: str) -> None:
    """Nobody can allow it, and an answer with it is masked or withheld."""
    data, known = (FORMS | OWN_FORMS)[form](OWN), OwnSecrets((OWN,))
    assert found(data, (OWN,), "**") == ["own"]
    assert known.revealed(text_in(data)) == [OWN]
    assert known.revealed(known.known(text_in(data))) == []


@pytest.mark.parametrize("form", FORMS)
def test_secrets_known_to_the_rules_are_found_in_any_text(form: str) -> None:
    """In any kind of file."""
    assert "aws-access-key-id" in found(FORMS[form](f"\nid: {AWS}\n"))


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=12), st.binary(max_size=40), st.binary(max_size=40))
def test_any_value_is_found_between_other_bytes(value: str, before: bytes, after: bytes) -> None:
    """Plain, and in base64 together with its surroundings."""
    known = OwnSecrets((value,))
    if squeezed(value) in forms_of(value):
        assert known.revealed(before.decode("latin-1") + value + after.decode("latin-1"))
        assert known.revealed(base64.b64encode(before + value.encode() + after).decode())


@given(st.binary(max_size=400))
def test_any_bytes_are_decoded(data: bytes) -> None:
    """No file stops the search."""
    for start in (b"", b"\xff\xfe\0", b"&#", b"\\u{"):
        assert all(isinstance(layer, str) for layer in layers(text_in(start + data)))


SIZE = 200_000
WORST = {
    "a number of many digits": "&#" + "9" * SIZE,
    "accents": "a" + "\u0300\u0327" * (SIZE // 2),
    "beginnings of tags": "<" * SIZE,
    "tags": "<a" * (SIZE // 2),
    "comments": "<!--" * (SIZE // 4),
    "entities": "&" * SIZE,
    "escapes": "\\u{" * (SIZE // 3),
    "escaped escapes": "%25" * (SIZE // 3),
    "entities in entities": "&" + "amp;" * (SIZE // 4),
    "wide characters": "\ufdfa" * SIZE,
    "beginnings of tokens": "eyJ" * (SIZE // 3),
    "base64 in base64": reduce(lambda text, _: base64.b64encode(text.encode()).decode(), range(12), "x" * (SIZE // 40)),
}


@pytest.mark.first(worst=3)
@pytest.mark.parametrize("worst", WORST)
def test_the_worst_texts_are_searched_to_their_end(worst: str) -> None:
    """What follows them is found, however deeply they are nested."""
    assert found(f"{WORST[worst]}\n{OWN}\n".encode(), (OWN,), "**") == ["own"]
    assert "aws-access-key-id" in found(f"{WORST[worst]}\n{AWS}\n".encode())


def test_a_short_value_is_not_searched_for() -> None:
    """It occurs in many files by chance."""
    assert squeezed("docs1") not in forms_of("docs1")


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


def test_a_search_ends_in_time() -> None:
    """It names the file, without a secret in the name."""
    with pytest.raises(LeakScanError, match=r"took too long at `\[masked: AWS key\]`"):
        list(Scanner(OwnSecrets(()), ends=0.0).suspicions(AWS, b"x"))


def test_the_server_knows_its_own_and_its_programs_secrets(tmp_path: Path) -> None:
    """Settings, variables, key files, an agent's login; but no region, path or placeholder."""
    (tmp_path / "key").write_text("from-a-file-0123456789\n")
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex/auth.json").write_text(json.dumps({"OPENAI_API_KEY": "sk-proj-" + OWN.replace("/", "x")}))
    settings = JobServerSettings(
        repository="https://github.com/acme/docs", api_key="api-key-of-the-server", agent_home=home,
        reviewers=SecretStr("Ada: key-of-ada-0123456789"), github_token=SecretStr("token-of-github-01"),
        pass_environment="REGION,DEPLOY_AUTH", agent_environment="ITS_TOKEN=in-a-line-012345\nPASSWORD={random}",
    )  # fmt: skip
    environment = {
        "ANTHROPIC_API_KEY": "agents-own-key-01", "REGION": "eu-central-1", "DEPLOY_AUTH": "pass-through-1",
        "OTHER_KEY_FILE": str(tmp_path / "key"), "HTTPS_PROXY": "http://user:Pr0xyPassw0rd!@proxy.internal:3128",
        "SSH_AUTH_SOCK": "/run/agent.sock", "X_TOKEN": "your-token-here", "PATH": "/usr/bin:/bin",
        "PAGEHAND_JOBSERVER_ALLOWED_SECRETS": "docs/samples/**",
    }  # fmt: skip
    known = KnownValues(settings, environment)
    told = set(known().values)
    assert {
        "api-key-of-the-server", "key-of-ada-0123456789", "token-of-github-01", "agents-own-key-01", "pass-through-1",
        "from-a-file-0123456789", "Pr0xyPassw0rd!", "in-a-line-012345",
    } <= told  # fmt: skip
    assert any(value.startswith("sk-proj-") for value in told)
    assert not told & {
        "eu-central-1",
        "/run/agent.sock",
        "your-token-here",
        "/usr/bin:/bin",
        "docs/samples/**",
        "{random}",
    }
    assert known().known("a api-key-of-the-server b") == "a [masked: Pagehand's own credential] b"


def test_an_editors_output_is_masked_completely() -> None:
    """Including the report of its run."""
    own, hidden = "[masked: Pagehand's own credential]", base64.b64encode(OWN.encode()).decode()
    said = EditResult(f"a {OWN}", f"b {AWS}", f"c {hidden}", (f"d {OWN}", "e"))
    secrets = OwnSecrets((OWN,))
    masked = safe_result(said, secrets)
    assert masked == EditResult(f"a {own}", "b [masked: AWS key]", WITHHELD, (f"d {own}", "e"))
    long = "x" * 180
    cut = safe_result(EditResult(proposed_pages=(ProposedPage(path="a.md", reason=f"{long} {OWN}"),)), secrets)
    assert cut.proposed_pages == (ProposedPage(path="a.md", reason=f"{long} {own[:18]}…"),), "masked before"


def test_many_leaks_are_summarized() -> None:
    """With everything that can be allowed; the server's own values cannot."""
    looks = [Suspicion(f"{number}.md", SecretKind.AWS, "aws-access-key-id") for number in range(9)]
    words = in_words([Suspicion("a.md", SecretKind.OWN), *looks])
    looks_like = "what looks like a secret (AWS key, rule aws-access-key-id) in"
    assert words == (
        "Nothing was pushed, since the change contains a key of this job server, in `a.md`, "
        f"{looks_like} `0.md`, {looks_like} `1.md`, and 7 more. Reply to have it removed, or, if it is none, have "
        "'0.md:aws-access-key-id' '1.md:aws-access-key-id' added to PAGEHAND_JOBSERVER_ALLOWED_SECRETS"
    )
