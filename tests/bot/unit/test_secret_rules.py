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
        f"curl -s --user 'api:{PASSWORD}' \\\n  https://mail.internal",
        f'curl -u "{DRAWN}:" https://api.internal/v1',
        f"curl -k -X POST https://x.internal \\\n  -d 1 \\\n  -u developer:{PASSWORD}",
        f"curl -H 'Authorization: Basic {BASIC}' https://x.internal",
        f"curl -H 'Authorization: {DRAWN}' https://x.internal",
        f'curl -H "X-Octopus-ApiKey: {UUID}" https://x.internal',
        f'curl -H "PRIVATE-TOKEN: {DRAWN}" https://x.internal',
        f"mysql -u root -p{PASSWORD} shop",
        f"mysqldump --password={PASSWORD} shop",
        f"sshpass -p '{PASSWORD}' ssh root@x.internal",
        f"docker login -u ci -p {PASSWORD} registry.internal",
        f"redis-cli -h cache -a {PASSWORD} ping",
        f"PGPASSWORD={PASSWORD} psql -h db",
        f"openssl rsa -in a.pem -passin pass:{PASSWORD}",
        f"deploy --api-key {DRAWN} --region eu",
        f"//registry.internal/:_authToken={UUID}",
        f"_auth={BASIC}",
        f'{{"auths": {{"registry.internal": {{"auth": "{BASIC}"}}}}}}',
        f"machine x.internal login ana password {PASSWORD}",
        f"machine x.internal\n  login ana\n  password {PASSWORD}",
        f"db.internal:5432:shop:app:{PASSWORD}",
        f"*:*:*:app:{PASSWORD}",
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
        "api_key: <your-api-key>",
        'apiKey: "your-api-key-here"',
        "export OPENAI_API_KEY=sk-...",
        "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
        "GITHUB_TOKEN=ghp_" + "x" * 36,
        "token: ghp_" + "1234567890abcdefghijklmnopqrstuvwxyz",
        "SLACK_BOT_TOKEN=xoxb-your-token-goes-in-here",
        "password: ${DB_PASSWORD}",
        "password: {{ .Values.db.password }}",
        "password = var.database_password2",
        "token: ${{ secrets.NPM_TOKEN_2024 }}",
        'password = os.environ["DB_PASSWORD_1"]',
        "const token = await getToken(user1, scope2)",
        "String password = config.getString(key1);",
        "def login(user: str, password: str = 'password123') -> Token2:",
        "if (password.length < 8) throw new Error('E1001')",
        '"passwordPlaceholder": "Enter8Characters"',
        '"password": "Passwort (mindestens 8 Zeichen)"',
        "PasswordAuthentication no",
        "token_type=Bearer2",
        "primary_key=user_id_42x9",
        "foreignKey: orders_2024_fk9",
        'publicKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE9Cnzj4p4WGeKLs1Pt8Qu"',
        "csrf_token=Mj2qykJO5rELyHgezQ69nzUX0i3OH67V7",
        "key_id: 555ea4a3-d53a-4412-9c66-3a7cb667b0d6",
        "clientId = 73082700-1f09-405b-80d0-3131bfd6272d",
        "credentialsId: 'ff083f76-7804-4ef1-80e4-fe975bb9141b'",
        "secretName: web-tls-2024-v2",
        "  secret:\n    secretName: app1-decryption-secret2",
        "tokenizer: bert-base-uncased-v2",
        "max_tokens=4096, token_count=128",
        "author: james.fake2@mail.example",
        "keyboard: qwerty104keys",
        "monkey=banana123",
        "keystore.file=env/cert1.p12",
        "ssl_key_file = /etc/ssl/private/server1.key",
        "api_version: v1beta1",
        "AUTH_URL=https://login.example.com/oauth2/v2.0/token",
        "https://user:password@example.com/",
        "postgres://postgres:postgres@localhost:5432/app1",
        "amqp://guest:guest@rabbit:5672",
        "git clone https://oauth2:$TOKEN@git.example.com/x.git",
        "curl -u <user:password> https://x.example",
        'curl -u "$USER:$PASS" https://x.example',
        "curl -u username:token https://x.example",
        "curl -H 'Authorization: Bearer <token>' https://x.example",
        'curl -H "Authorization: Bearer $(gcloud auth print-access-token)" https://x.example',
        "Use the Basic configuration12 of the plugin.",
        "Bearer authentication2 is described above.",
        "docker run -u 1000:1000 -p 8080:8080 image1",
        "mysql -u root -p shop",
        "mkdir -p build/2024 && cp -a src1 dst2",
        "The key is base64 encoded, the token is oauth2.",
        "The password is changed every 90 days, the secret is rotated.",
        "Set the password: it is required, and has 12 characters or more.",
        "--- PASS: TestRemoteWrite/grafana/Counter2 (10.02s)",
        "the pass-2024-edition ticket",
        "sk-loading-spinner-container-inner2 { color: red }",
        "hf_required_characteristic_types_for_display",
        "glossary-of-terms-and-abbreviations-2024",
        "task_test_run_number_4_of_the_week",
        "npm_config_registry=https://packages.example.org",
        "| gl-2024 | xox-rules | AKIA |",
        "data:\n  password: " + base64.b64encode(b"admin").decode(),
        "192.168.0.1:5432:app",
        "Zm9vYmFy is base64 for foobar",
        "eyJ is how JSON begins in base64, as in eyJhbGciOiJIUzI1NiJ9",
        "twitter: https://twitter.com/acme2024, linkedin: acme-2024",
        "discord: https://discord.gg/a1B2c3D4",
        "SetSysctl = dick2sou9jtqu9njozcuyjso",
        "1234567890:5432",
        'password = getpass("Password: ")',
        "login(user, password=password, token=token)",
        'api_key = os.environ["API_KEY"]',
        "token = request.headers.get('X-Token')",
        "token = config.v2.token1",
        "def connect(password: str | None = None, api_key: str = '') -> None:",
        "postgres://user:$PGPASSWORD@localhost/db",
        "https://example.com:8443/path/@scope/package",
        "Use `Authorization: Bearer $TOKEN` or `Bearer <token>`",
        'api_key: "your-api-key-123"',
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "Secret: the soup has 3 onions",
        "primary key: user_id1",
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
