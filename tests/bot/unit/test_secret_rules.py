"""The rules find what repository scanners find, anywhere, and take nothing harmless for a secret."""

import base64
import random

import pytest
from support.oracles.secret_formats import ASSIGNED, PREFIXED, fake

from bot.runtime.secrets import SecretKind
from bot.runtime.secrets.masking import SecretMasker, find

pytestmark = pytest.mark.promise("secrets")

PLACES = (
    "{}",
    "it is {}, I think",
    "`{}`",
    "export KEY={}\nrun",
    "https://x.example/?key={}&b=1",
    '{{"config": "A={}\\nB=1"}}',
)
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


@pytest.mark.parametrize(("name", "template"), PREFIXED)
def test_a_prefixed_token_is_found_anywhere(name: str, template: str) -> None:
    """No part of it is left."""
    chance = random.Random(name)  # noqa: S311 - fakes, the same each time
    for place in PLACES:
        secret = fake(template, chance)
        masked = SecretMasker().mask(place.format(secret))
        assert masked.kinds, place.format(secret)
        assert secret[-8:] not in masked.text


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


@pytest.mark.parametrize(
    "text",
    [
        f"curl -u elastic:{PASSWORD} https://es.internal:9200",
        f'curl -u "{DRAWN}:" https://api.internal/v1',
        f"curl -k -X POST https://x.internal \\\n  -d 1 \\\n  -u developer:{PASSWORD}",
        f"curl -H 'Authorization: Basic {BASIC}' https://x.internal",
        f"curl -H 'Authorization: {DRAWN}' https://x.internal",
        f'curl -H "X-Octopus-ApiKey: {UUID}" https://x.internal',
        f"mysql -u root -p{PASSWORD} shop",
        f"sshpass -p '{PASSWORD}' ssh root@x.internal",
        f"docker login -u ci -p {PASSWORD} registry.internal",
        f"redis-cli -h cache -a {PASSWORD} ping",
        f"PGPASSWORD={PASSWORD} psql -h db",
        f"openssl rsa -in a.pem -passin pass:{PASSWORD}",
        f"deploy --api-key {DRAWN} --region eu",
        f"//registry.internal/:_authToken={UUID}",
        f'{{"auths": {{"registry.internal": {{"auth": "{BASIC}"}}}}}}',
        f"machine x.internal login ana password {PASSWORD}",
        f"db.internal:5432:shop:app:{PASSWORD}",
        f'<add key="ClearTextPassword" value="{PASSWORD}" />',
        f"postgresql://app:{PASSWORD}@db.internal/shop",
        f"redis://:{PASSWORD}@cache.internal:6379/0",
        f"https://{DRAWN}:x-oauth-basic@git.internal/x.git",
        f"Server=db;Database=shop;User Id=app;Password={PASSWORD};",
        f'if (password == "{PASSWORD}") {{',
        f"https://hooks.zapier.com/hooks/catch/123456/{DRAWN}/",
        f"the password is {PASSWORD}",
        f"API key: {DRAWN}",
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


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "FROM python@sha256:" + "a3ed95caeb02ffe68cdd9fd84406680ae93d633cb16422d00e8a7c22955b46d4",
        "sha512-" + "v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==",
        "request 550e8400-e29b-41d4-a716-446655440000 took 12 ms",
        "![](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPVDgWwFlPHCk2wkp9nHkzv7b3Xx0nQyyzj5kIvAhTQ ana@laptop",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
        "Begin the file with `-----BEGIN PRIVATE" + " KEY-----` and end it with `-----END PRIVATE" + " KEY-----`.",
        "-----BEGIN PRIVATE" + " KEY-----\n...\n-----END PRIVATE" + " KEY-----",
        "api_key = YOUR_API_KEY",
        "export OPENAI_API_KEY=sk-...",
        "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
        "GITHUB_TOKEN=ghp_" + "x" * 36,
        "token: ghp_" + "1234567890abcdefghijklmnopqrstuvwxyz",
        "password: ${DB_PASSWORD}",
        "token: ${{ secrets.NPM_TOKEN_2024 }}",
        "def login(user: str, password: str = 'password123') -> Token2:",
        '"passwordPlaceholder": "Enter8Characters"',
        "PasswordAuthentication no",
        "primary_key=user_id_42x9",
        'publicKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9Cnzj4p4WGeKLs1Pt8Qu"',
        "csrf_token=Mj2qykJO5rELyHgezQ69nzUX0i3OH67V7",
        "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
        "  secret:\n    secretName: app1-decryption-secret2",
        "max_tokens=4096, token_count=128",
        "keyboard: qwerty104keys",
        "keystore.file=env/cert1.p12",
        "AUTH_URL=https://login.example.com/oauth2/v2.0/token",
        "https://user:password@example.com/",
        "postgres://postgres:postgres@localhost:5432/app1",
        "git clone https://oauth2:$TOKEN@git.example.com/x.git",
        "curl -u username:token https://x.example",
        'curl -H "Authorization: Bearer $(gcloud auth print-access-token)" https://x.example',
        "Use the Basic configuration12 of the plugin.",
        "docker run -u 1000:1000 -p 8080:8080 image1",
        "The key is base64 encoded, the token is oauth2.",
        "Set the password: it is required, and has 12 characters or more.",
        "--- PASS: TestRemoteWrite/grafana/Counter2 (10.02s)",
        "sk-loading-spinner-container-inner2 { color: red }",
        "| gl-2024 | xox-rules | AKIA |",
        "data:\n  password: " + base64.b64encode(b"admin").decode(),
        "eyJ is how JSON begins in base64, as in eyJhbGciOiJIUzI1NiJ9",
        "discord: https://discord.gg/a1B2c3D4",
        "SetSysctl = dick2sou9jtqu9njozcuyjso",
        'password = getpass("Password: ")',
        "https://example.com:8443/path/@scope/package",
        "Secret: the soup has 3 onions",
    ],
)
def test_harmless_text_is_unchanged(text: str) -> None:
    """Digests, ids, placeholders, examples, public keys, and code that only mentions secrets."""
    assert SecretMasker().mask(text).text == text


def test_a_configured_secret_is_masked_anywhere() -> None:
    """A common word is not: that would garble texts, and reveal the password."""
    masker = SecretMasker(("plain words", "postgres", "abc"))
    assert "plain" not in repr(masker)
    masked = masker.mask("some plain words, xplain wordsx, postgres and abc")
    assert masked.text == f"some [masked: {SecretKind.OWN}], x[masked: {SecretKind.OWN}]x, postgres and abc"
    assert masked.kinds == (SecretKind.OWN,)


def test_findings_have_a_position_and_a_rule() -> None:
    """In order; a secret found by several rules is reported once, by the first one."""
    secret = fake("ghp_<a-zA-Z0-9*36>", random.Random(1))  # noqa: S311 - a fake
    (first, second) = find(f"token={secret} the password is {PASSWORD}")
    assert (first.start, first.end, first.rule) == (6, 6 + len(secret), "github-token")
    assert (second.kind, second.rule) == (SecretKind.ASSIGNMENT, "statement")


def test_texts_sent_together_are_masked_together() -> None:
    """A secret spread over several texts leaves nothing in any of them."""
    lines = ["-----BEGIN PRIVATE" + " KEY-----", "MIIEv" * 12, "QIBAD" * 12, "-----END PRIVATE" + " KEY-----"]
    masked = SecretMasker().mask_together(("before", "\n".join(lines[:2]), "\n".join(lines[2:]) + " after"))
    assert masked.texts == ("before", "[masked: private key]", "[masked: private key] after")
    assert masked.kinds == (SecretKind.PRIVATE_KEY,)
