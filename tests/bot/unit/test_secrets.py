"""Secrets are masked wherever they are, and nothing harmless is taken for one: by the rules of repository scanners."""

import base64
import logging
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracles.leaks import SecretWatch, faults_in_logs
from support.oracles.secret_corpus import samples
from support.oracles.secret_formats import ASSIGNED, PREFIXED, fake

from bot.runtime.secrets import SecretKind
from bot.runtime.secrets.assignments import KEYWORDS
from bot.runtime.secrets.masking import Masked, SecretMasker, find
from bot.runtime.secrets.patterns import PATTERNS
from bot.runtime.secrets.tokens import PREFIXES

PLACES = (
    "{}",
    "it is {}, I think",
    "`{}`",
    "export KEY={}\nrun",
    "https://x.example/?key={}&b=1",
    '{{"config": "A={}\\nB=1"}}',
)
OTHER_PLACES = ("({})", "key:{}", '{{"key": "{}"}}', "https://x.example/?a={}&b=1", "schlüssel_é{}")
"""Where the tokens are found that services are known by."""
ASSIGNMENTS = (
    'jira_token = "{}"',
    "jira_TOKEN={}",
    '{{"jira_token": "{}"}}',
    "jira_token: {}",
    "jiraToken := `{}`",
    'var jiraToken string = "{}"',
    "$jiraToken .= '{}'",
    '"jiraToken" => "{}",',
    'setProperty("jira_TOKEN", "{}")',
    "<jiraToken>\n    {}\n</jiraToken>",
    "<jiraToken>{}</jiraToken>",
    "jira_TOKEN ?= '{}'",
    "https://x.example/?jira_token={}&page=2",
    "run --jira-token {} now",
)


KINDS = {
    "age-": SecretKind.PRIVATE_KEY,
    "anthropic-": SecretKind.MODEL_API,
    "aws-": SecretKind.AWS,
    "azure-": SecretKind.AZURE,
    "digitalocean-": SecretKind.SERVICE,
    "gcp-": SecretKind.GOOGLE,
    "github-": SecretKind.GITHUB,
    "gitlab-": SecretKind.GITLAB,
    "huggingface-": SecretKind.SERVICE,
    "jwt": SecretKind.JWT,
    "npm-": SecretKind.NPM,
    "openai-": SecretKind.MODEL_API,
    "pypi-": SecretKind.PYPI,
    "sendgrid-key": SecretKind.SERVICE,
    "slack-webhook-": SecretKind.SLACK_WEBHOOK,
    "slack-": SecretKind.SLACK,
    "stripe-": SecretKind.STRIPE,
}
"""By the beginnings of the names of formats. Of other tokens, people need not know whose they are."""
ISSUED = (
    ("aws-access-key-id", "AKIA<A-Z2-7*16>"),
    ("gcp-client-secret", "GOCSPX-<a-zA-Z0-9*28>"),
    ("gcp-access-token", "ya29.<a-zA-Z0-9_-*120>"),
    ("openai-legacy-key", "sk-<a-zA-Z0-9*48>"),
    ("sendgrid-key", "SG.<a-zA-Z0-9*22>.<a-zA-Z0-9*43>"),
    ("stripe-restricted-key", "rk_test_<a-zA-Z0-9*99>"),
    ("stripe-webhook-secret", "whsec_<a-zA-Z0-9*32>"),
)
"""By their issuers' documentation."""
FAKES = {name: fake(template, random.Random(name)) for name, template in (*PREFIXED, *ISSUED)}  # noqa: S311 - fakes


def kind_of(name: str) -> SecretKind | None:
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), None)


@pytest.mark.promise("secrets")
def test_a_prefixed_token_is_found_anywhere() -> None:
    """No part of it is left, and its kind is named."""
    for name, template in (*PREFIXED, *ISSUED):
        chance = random.Random(name)  # noqa: S311 - fakes, the same each time
        others = OTHER_PLACES if kind_of(name) else ()
        for place in (*PLACES, *(others[:-1] if name in {"jwt", "slack-webhook-url"} else others)):
            secret = fake(template, chance)
            masked = SecretMasker().mask(place.format(secret))
            assert masked.kinds == (kind_of(name) or masked.kinds[0],), place.format(secret)
            assert f"[masked: {masked.kinds[0]}]" in masked.text
            assert secret[-6:] not in masked.text
            assert masked.text.startswith(place.partition("{}")[0].replace("{{", "{"))


@pytest.mark.promise("secrets")
@pytest.mark.parametrize("template", ASSIGNED)
def test_a_token_without_prefix_is_found_where_it_is_assigned(template: str) -> None:
    """Of random texts without letters, or with too much regularity, at most one in ten is missed."""
    chance = random.Random(template)  # noqa: S311 - fakes, the same each time
    texts = [place.format(fake(template, chance)) for place in ASSIGNMENTS for _ in range(3)]
    missed = [text for text in texts if not find(text)]
    assert len(missed) * 10 <= len(texts), missed


PASSWORD = "Tr0ub4" + "dor&3"
DRAWN = "f7Kq2" + "ZpX9w" + "Lm4Rt8" + "Vb1Ns6"
UUID = "0b5c1f9e" + "-73ad-4e2b-" + "9c68-d41f" + "a07be325"
BASIC = base64.b64encode(f"ci:{PASSWORD}".encode()).decode()
KEY = base64.b64encode(("-----BEGIN RSA PRIVATE" + " KEY-----\n" + "MIIEow" * 60).encode()).decode()


@pytest.mark.promise("secrets")
@pytest.mark.parametrize(
    "text",
    [
        f"curl -u elastic:{PASSWORD} https://es.internal:9200",
        f'curl -u "{DRAWN}:" https://api.internal/v1',
        f"curl -k -X POST https://x.internal \\\n  -d 1 \\\n  -u developer:{PASSWORD}",
        f"curl -H 'Authorization: Basic {BASIC}' https://x.internal",
        f"curl -H 'Authorization: {DRAWN}' https://x.internal",
        f'curl -H "X-Octopus-ApiKey: {UUID}" https://x.internal',
        f"redis-cli -h cache -a {PASSWORD} ping",
        f"openssl rsa -in a.pem -passin pass:{PASSWORD}",
        f"deploy --api-key {DRAWN} --region eu",
        f'{{"auths": {{"registry.internal": {{"auth": "{BASIC}"}}}}}}',
        f"db.internal:5432:shop:app:{PASSWORD}",
        f'<add key="ClearTextPassword" value="{PASSWORD}" />',
        f"redis://:{PASSWORD}@cache.internal:6379/0",
        f"https://{DRAWN}:x-oauth-basic@git.internal/x.git",
        f"Server=db;Database=shop;User Id=app;Password={PASSWORD};",
        f'if (password == "{PASSWORD}") {{',
        f"https://hooks.zapier.com/hooks/catch/123456/{DRAWN}/",
        f"apiVersion: v1\nkind: Secret\ndata:\n  password: {base64.b64encode(DRAWN.encode()).decode()}",
        f"tls.key: {KEY}",
        "LS0tLS1CRUdJTi" + KEY[14:],
        f"db_password: >-\n  {PASSWORD}",
        f"https://files.internal/a?sv=2024&sig={DRAWN}{DRAWN}%3D",
    ],
)
def test_a_credential_is_recognized_by_its_position(text: str) -> None:
    """In commands, headers, addresses, and the credential files of tools."""
    masked = SecretMasker().mask(text).text
    for secret in (PASSWORD, DRAWN, UUID, BASIC, KEY[-20:]):
        assert secret not in masked
    assert masked != text


@pytest.mark.promise("secrets")
def test_a_configured_secret_is_masked_anywhere() -> None:
    """A common word is not: that would garble texts, and reveal the password."""
    masker = SecretMasker(("plain words", "postgres", "abc"))
    assert "plain" not in repr(masker)
    masked = masker.mask("some plain words, xplain wordsx, postgres and abc")
    assert masked.text == f"some [masked: {SecretKind.OWN}], x[masked: {SecretKind.OWN}]x, postgres and abc"
    assert masked.kinds == (SecretKind.OWN,)


@pytest.mark.promise("secrets")
def test_findings_have_a_position_and_a_rule() -> None:
    """In order; a secret found by several rules is reported once, by the first one."""
    secret = fake("ghp_<a-zA-Z0-9*36>", random.Random(1))  # noqa: S311 - a fake
    (first, second) = find(f"token={secret} the password is {PASSWORD}")
    assert (first.start, first.end, first.rule) == (6, 6 + len(secret), "github-token")
    assert (second.kind, second.rule) == (SecretKind.ASSIGNMENT, "statement")


@pytest.mark.promise("secrets")
def test_texts_sent_together_are_masked_together() -> None:
    """A secret spread over several texts leaves nothing in any of them."""
    lines = ["-----BEGIN PRIVATE" + " KEY-----", "MIIEv" * 12, "QIBAD" * 12, "-----END PRIVATE" + " KEY-----"]
    masked = SecretMasker().mask_together(("before", "\n".join(lines[:2]), "\n".join(lines[2:]) + " after"))
    assert masked.texts == ("before", "[masked: private key]", "[masked: private key] after")
    assert masked.kinds == (SecretKind.PRIVATE_KEY,)


ROOT = Path(__file__).parents[3]
mask_secrets = SecretMasker().mask


def private_key(kind: str = "RSA ", lines: int = 6) -> list[str]:
    chance = random.Random(kind)  # noqa: S311 - a fake
    body = [fake("<a-zA-Z0-9*64>", chance) for _ in range(lines)] + ["abc" + "D3=="]
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
    github, aws = FAKES["github-pat"], FAKES["aws-access-key-id"]
    masked = mask_secrets(f"{github} {aws} {github}")
    assert masked.kinds == (SecretKind.AWS, SecretKind.GITHUB)
    assert masked.text == "[masked: GitHub token] [masked: AWS key] [masked: GitHub token]"


@pytest.mark.full
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


@given(st.text(max_size=100), st.sampled_from([name for name in FAKES if kind_of(name)]), st.text(max_size=100))
def test_a_secret_is_masked_with_any_text_around_it(before: str, name: str, after: str) -> None:
    """Masking is idempotent."""
    masked = mask_secrets(f"{before} {FAKES[name]} {after}")
    assert FAKES[name] not in masked.text
    assert mask_secrets(masked.text).text == masked.text


@pytest.mark.full
@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE" + " KEY-----",
        "eyJa.eyJ",
        "a://b:",
        "token=",
        "http://" + "u" * 100 + ":" + "@" * 100,
        "key" * 300 + " ",
        "-----BEGIN PRIVATE" + " KEY-----\nMIIEabcdefghijklmnop1\n",
        "password='",
        "xoxb-",
        "secret is a1b2c3d4 ",
        "mysql -pA1b2c3 ",
        "key: |\n  a1",
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


SEEDS = [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]


@pytest.mark.parametrize("seed", SEEDS)
def test_nineteen_of_twenty_pasted_secrets_leave_nothing(seed: int) -> None:
    """Not even eight characters in a row."""
    corpus = list(samples("secret", seed))
    assert all(sample.secrets for sample in corpus)
    missed = [sample.template for sample in corpus if sample.survives(SecretMasker().mask(sample.text).text)]
    assert len(missed) * 20 <= len(corpus), missed


@pytest.mark.promise("secrets")
@pytest.mark.parametrize("seed", SEEDS)
def test_harmless_texts_are_unchanged(seed: int) -> None:
    """Hashes, ids, code, placeholders, and samples from documentation."""
    corpus = list(samples("harmless", seed))
    assert [sample.template for sample in corpus if SecretMasker().mask(sample.text).text != sample.text] == []


def found(watch: SecretWatch) -> int:
    """Returns the number of records found, which are not held against this test."""
    records, watch.found = watch.found, []
    return len(records)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
def test_a_secret_in_a_log_record_of_any_level_is_found(
    log_watch: SecretWatch, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    logging.getLogger("bot.anything").log(level, "see %s", "planted-secret-of-this-test")
    assert found(log_watch) == 1
    assert len(caplog.records) == (level >= logging.WARNING), "others hear more than the levels let through"


@pytest.mark.parametrize("margin", ["", "    "])
def test_secrets_in_process_output_are_found(tmp_path: Path, margin: str) -> None:
    """Python prints a traceback without indentation, our log with one."""
    log = tmp_path / "a.log"
    assert faults_in_logs([], ["secret"]) == ["nothing was logged"]
    log.write_text("all is well\n")
    assert faults_in_logs([log], ["secret"]) == []
    told = f"ERROR it failed\n{margin}Traceback (most recent call last):\n{margin}  File 1\n"
    log.write_text(f"asked with c2VjcmV0LW9mLXRoaXM=\n{told}")
    leak, traceback = faults_in_logs([log], ["secret-of-this"])
    assert "a.log holds" in leak
    assert traceback.startswith(f"a.log: ERROR it failed\n{margin}Traceback")
