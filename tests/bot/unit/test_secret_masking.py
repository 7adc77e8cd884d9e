"""Secrets are masked anywhere; prose and code are unchanged. No fake secret is written in one piece here."""

import base64
import json
import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.runtime.secrets import SecretKind
from bot.runtime.secrets.assignments import KEYWORDS
from bot.runtime.secrets.masking import Masked, SecretMasker
from bot.runtime.secrets.patterns import PATTERNS
from bot.runtime.secrets.tokens import PREFIXES

ROOT = Path(__file__).parents[3]
_CHANCE = random.Random(10)  # noqa: S311 - fakes, the same each time
LETTERS, HEX = string.ascii_letters + string.digits, "0123456789abcdef"


mask_secrets = SecretMasker().mask


def drawn(length: int, alphabet: str = LETTERS) -> str:
    """Returns random characters, with at least one letter and one digit."""
    return "a1" + "".join(_CHANCE.choices(alphabet, k=length - 2))


def jwt_part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


JWT = ".".join((jwt_part({"alg": "HS256", "typ": "JWT"}), jwt_part({"sub": "12345"}), drawn(43)))
FAKES: list[tuple[SecretKind, str]] = [
    (SecretKind.AWS, "AKIA" + "IOSFODNN7EXAMPL2"),
    (SecretKind.AWS, "ASIA" + "Y34FZKBOKMUTVV7A"),
    (SecretKind.GITHUB, "ghp" + "_" + drawn(36)),
    (SecretKind.GITHUB, "ghs" + "_" + drawn(36)),
    (SecretKind.GITHUB, "github" + "_pat_" + drawn(22) + "_" + drawn(59)),
    (SecretKind.GITLAB, "glpat" + "-" + drawn(20)),
    (SecretKind.GITLAB, "gldt" + "-" + drawn(20, LETTERS + "_-")),
    (SecretKind.SLACK, "xoxb" + "-1234567890-1234567890123-" + drawn(24)),
    (SecretKind.SLACK, "xoxp" + "-1234567890-" + drawn(32, HEX)),
    (SecretKind.SLACK, "xapp" + "-1-A0123456789-1234567890123-" + drawn(64, HEX)),
    (SecretKind.SLACK_WEBHOOK, "hooks.slack" + ".com/services/T00000000/B00000000/" + drawn(24)),
    (SecretKind.GOOGLE, "AIza" + drawn(35, LETTERS + "_-")),
    (SecretKind.GOOGLE, "GOCSPX" + "-" + drawn(28)),
    (SecretKind.GOOGLE, "ya29" + "." + drawn(120, LETTERS + "_-")),
    (SecretKind.STRIPE, "sk" + "_live_" + drawn(24)),
    (SecretKind.STRIPE, "rk" + "_test_" + drawn(99)),
    (SecretKind.STRIPE, "whsec" + "_" + drawn(32)),
    (SecretKind.MODEL_API, "sk" + "-" + drawn(48)),
    (SecretKind.MODEL_API, "sk" + "-proj-" + drawn(120, LETTERS + "_-")),
    (SecretKind.MODEL_API, "sk" + "-ant-api03-" + drawn(93, LETTERS + "_-") + "AA"),
    (SecretKind.NPM, "npm" + "_" + drawn(36)),
    (SecretKind.PYPI, "pypi" + "-AgEIcHlwaS5vcmc" + drawn(140, LETTERS + "_-")),
    (SecretKind.JWT, JWT),
    (SecretKind.SERVICE, "hf" + "_" + drawn(34)),
    (SecretKind.SERVICE, "SG" + "." + drawn(22) + "." + drawn(43)),
    (SecretKind.SERVICE, "dop" + "_v1_" + drawn(64, HEX)),
]
PLACES = [
    "{}",
    "The key is {} and it works",
    "({})",
    "key:{}",
    "export KEY={}\nrun",
    '{{"key": "{}"}}',
    "https://example.com/?a={}&b=1",
    "`{}`",
    "it is {}, I think",
    "schlüssel_é{}",
]


@pytest.mark.parametrize(("kind", "fake"), FAKES, ids=[f"{kind}-{number}" for number, (kind, _) in enumerate(FAKES)])
def test_a_secret_is_masked_in_any_context(kind: SecretKind, fake: str) -> None:
    """No part of it is left, and its kind is named."""
    for place in PLACES if kind not in {SecretKind.JWT, SecretKind.SLACK_WEBHOOK} else PLACES[:-1]:
        masked = mask_secrets(place.format(fake))
        assert masked.kinds == (kind,)
        assert f"[masked: {kind}]" in masked.text
        assert fake[-6:] not in masked.text
        assert masked.text.startswith(place.partition("{}")[0].replace("{{", "{"))


def private_key(kind: str = "RSA ", lines: int = 6, line: str = "\n") -> list[str]:
    body = [drawn(64) for _ in range(lines)] + ["abc" + "D3=="]
    return [f"-----BEGIN {kind}PRIVATE" + " KEY-----", *body, f"-----END {kind}PRIVATE" + " KEY-----"]


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", " ", "\n> ", '",\n"'])
def test_a_private_key_is_masked_as_a_whole(kind: str, between: str) -> None:
    """However its lines are joined."""
    masked = mask_secrets(f"before\n{between.join(private_key(kind))}\nafter")
    assert masked == Masked(("before\n[masked: private key]\nafter",), (SecretKind.PRIVATE_KEY,))


@pytest.mark.parametrize("between", ["\n", "\r\n", "\\n", " ", "\n> ", '",\n"'])
@pytest.mark.parametrize("kept", [2, 3, 7])
def test_a_truncated_private_key_is_masked_to_its_end(between: str, kept: int) -> None:
    """The text after it is kept."""
    cut = between.join(private_key()[:kept])
    assert mask_secrets(f"before {cut}").text == "before [masked: private key]"
    after = mask_secrets(f"before {cut}\n\nWhat shall I do with it?").text
    assert after == "before [masked: private key]\n\nWhat shall I do with it?"


def test_headers_do_not_end_a_private_key() -> None:
    """As in encrypted keys, and OpenPGP's."""
    first, *body, _ = private_key()
    text = "\n".join([first, "Proc-Type: 4,ENCRYPTED", "DEK-Info: AES-128-CBC,00AA", "", *body])
    assert mask_secrets(f"{text}\nThat was it.").text == "[masked: private key]\nThat was it."


def test_several_kinds_are_reported_once_each() -> None:
    """In the order of SecretKind."""
    github, aws = FAKES[2][1], FAKES[0][1]
    masked = mask_secrets(f"{github} {aws} {github}")
    assert masked.kinds == (SecretKind.AWS, SecretKind.GITHUB)
    assert masked.text == "[masked: GitHub token] [masked: AWS key] [masked: GitHub token]"


def test_this_repositorys_documents_are_unchanged() -> None:
    """They are about keys and tokens, but contain none."""
    for file in (ROOT / "README.md", *(ROOT / "bot").rglob("*.md"), *(ROOT / "bot").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert mask_secrets(text) == Masked((text,)), file


@given(
    st.text(
        alphabet=st.sampled_from(" \n\t.,:;!?'\"()-=/@<>[]{}|_*`~#$%&+\\é漢abcdefghijklmnopqrstuvwxyz"), max_size=300
    )
)
def test_words_without_digits_are_not_taken_for_random_secrets(text: str) -> None:
    """Text without digits and capital letters can only be a quoted password, or one in an address."""
    assert set(mask_secrets(text).kinds) <= {SecretKind.ASSIGNMENT, SecretKind.URL_PASSWORD}


@given(st.text(max_size=100), st.sampled_from(FAKES), st.text(max_size=100))
def test_a_secret_is_masked_with_any_text_around_it(before: str, fake: tuple[SecretKind, str], after: str) -> None:
    """Masking is idempotent."""
    masked = mask_secrets(f"{before} {fake[1]} {after}")
    assert fake[1] not in masked.text
    assert mask_secrets(masked.text).text == masked.text


@pytest.mark.first(piece=4)
@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE" + " KEY-----",
        "eyJa.eyJ",
        "a://b:",
        "token=",
        "a" * 300 + "-",
        "http://" + "u" * 100 + ":" + "@" * 100,
        "key" * 300 + " ",
        "-----END PRIVATE" + " KEY-----",
        "-----BEGIN PRIVATE" + " KEY-----\nMIIEabcdefghijklmnop1\n",
        "eyJ" + "a" * 3_000 + ".",
        "password='",
        "Bearer ",
        "sk-",
        "xoxb-",
        "ya29.",
        "token1=a",
        "secret is a1b2c3d4 ",
        "curl -u a1:b1 ",
        "mysql -pA1b2c3 ",
        "key: |\n  a1",
        "LS0tLS1CRUdJTi",
    ],
)
@pytest.mark.parametrize("length", [300_000, pytest.param(2_000_000, marks=pytest.mark.full)])
def test_megabytes_of_the_worst_text_are_processed(piece: str, length: int) -> None:
    """A quadratic search would exceed the test's time limit."""
    text = piece * (length // len(piece))
    assert len(mask_secrets(text).text) <= 3 * len(text)


@pytest.mark.full
def test_each_keyword_can_be_repeated() -> None:
    """A rule is tried at each of them; each try is bounded."""
    prefixes = {prefix for _, each in PREFIXES.values() for prefix in each.split()}
    words = {word for each in PATTERNS for word in each.keywords}
    for keyword in prefixes | words | set(KEYWORDS):
        assert SecretMasker().mask(keyword * (20_000 // len(keyword))).text
