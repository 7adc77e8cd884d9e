"""Settings of pull requests at GitHub, and what its refusals mean."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.servers.github_server_state import app_key_pem

from bot.errors import ConfigError
from bot.jobserver.repository.git import explain
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.jobserver.settings.github import github_address

TOKEN = "planted-secret-token"
AT_GITHUB = "https://github.com/acme/docs.git"


def made(**environ: str) -> JobServerSettings:
    given = {"REPOSITORY": AT_GITHUB, "API_KEY": "planted-key-of-sixteen"} | environ
    return JobServerSettings.from_environment({PREFIX + name: value for name, value in given.items()})


def faults(**environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        made(**environ)
    assert "planted-secret" not in str(caught.value)
    return [fault.removeprefix(PREFIX).partition(":")[0] for fault in caught.value.faults]


def test_pull_requests_are_at_github_if_credentials_exist(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(app_key_pem())
    app = {"GITHUB_APP_ID": "Iv23liA", "GITHUB_APP_PRIVATE_KEY_FILE": str(tmp_path / "key.pem")}
    assert made().pull_requests == "local"
    assert made(GITHUB_TOKEN=TOKEN).pull_requests == "github"
    assert made(GITHUB_TOKEN=TOKEN, PULL_REQUESTS="local").pull_requests == "local"
    assert made(**app).pull_requests == "github"


def test_secrets_are_hidden_and_listed_for_masking() -> None:
    settings = made(GITHUB_TOKEN=TOKEN)
    assert TOKEN not in f"{settings!r} {settings.model_dump()}"
    assert settings.fixed_secrets == (TOKEN,)


def test_a_key_on_one_line_is_accepted() -> None:
    settings = made(GITHUB_APP_ID="1", GITHUB_APP_PRIVATE_KEY=app_key_pem().replace("\n", "\\n"))
    assert settings.fixed_secrets == (app_key_pem(),)


def test_lists_and_pairs_are_parsed() -> None:
    settings = made(GITHUB_TOKEN=TOKEN, LABELS="docs, good first issue,", GITHUB_USERS="Ada Lovelace=ada, U02=grace-h")
    assert settings.labels == ("docs", "good first issue")
    assert made(GITHUB_TOKEN=TOKEN, PREVIEWS="Deploy Preview*, netlify/*").previews == ("Deploy Preview*", "netlify/*")
    assert settings.github_users == {"Ada Lovelace": "ada", "U02": "grace-h"}


def test_all_invalid_github_settings_are_listed_at_once() -> None:
    listed = faults(
        REPOSITORY="/srv/docs", GITHUB_TOKEN=TOKEN, GITHUB_APP_ID="1", GITHUB_APP_PRIVATE_KEY="x",
        LABELS="x" * 51, GITHUB_USERS="Ada", DRAFT="perhaps",
    )  # fmt: skip
    assert listed == [
        "DRAFT must be a valid boolean",
        "GITHUB_APP_ID and a token cannot both be used",
        "GITHUB_APP_PRIVATE_KEY must be an RSA key in PEM format without a password",
        "GITHUB_USERS must be pairs of a name or id and a GitHub login, such as Ada Lovelace=ada,U02ABC=grace",
        "LABELS must have at most 50 characters",
        "REPOSITORY is not a repository at GitHub, such as https",
    ]


def test_keys_that_cannot_sign_are_refused() -> None:
    form = serialization.PrivateFormat.PKCS8
    key = ec.generate_private_key(ec.SECP256R1())
    other = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
    assert faults(GITHUB_APP_ID="1", GITHUB_APP_PRIVATE_KEY=other) == [
        "GITHUB_APP_PRIVATE_KEY must be an RSA key in PEM format without a password"
    ]


@pytest.mark.parametrize(
    ("environ", "fault"),
    [
        ({"PULL_REQUESTS": "github"}, "PULL_REQUESTS is github, which needs a token or an App"),
        ({"GITHUB_APP_ID": "1"}, "GITHUB_APP_PRIVATE_KEY is missing"),
        ({"GITHUB_APP_PRIVATE_KEY": app_key_pem()}, "GITHUB_APP_PRIVATE_KEY is of no use without the App's ID"),
        ({"GITHUB_TOKEN": f"{TOKEN} twice"}, "GITHUB_TOKEN must be one word, as GitHub shows it once"),
        ({"GITHUB_TOKEN": TOKEN, "REPOSITORY": "https://example.com/docs"},
         "REPOSITORY is not a repository at GitHub, such as https"),
        ({"GITHUB_TOKEN": TOKEN, "REPOSITORY": "http://git.example.com/acme/docs"},
         "REPOSITORY must begin with https"),
    ],
)  # fmt: skip
def test_each_error_has_its_own_message(environ: dict[str, str], fault: str) -> None:
    assert faults(**environ) == [fault]


@pytest.mark.parametrize(
    ("address", "api", "name"),
    [
        (AT_GITHUB, "https://api.github.com", "acme/docs"),
        ("https://www.github.com/acme/docs/", "https://api.github.com", "acme/docs"),
        ("git@github.com:acme/docs.git", "https://api.github.com", "acme/docs"),
        ("ssh://git@ssh.github.com:443/acme/docs.git", "https://api.github.com", "acme/docs"),
        ("https://acme.ghe.com/acme/docs", "https://api.acme.ghe.com", "acme/docs"),
        ("https://git.example.com:8443/acme/docs", "https://git.example.com:8443/api/v3", "acme/docs"),
        ("ssh://git@git.example.com:2222/acme/docs.git", "https://git.example.com/api/v3", "acme/docs"),
        ("http://127.0.0.1:81/acme/docs", "http://127.0.0.1:81/api/v3", "acme/docs"),
    ],
)
def test_the_api_address_is_derived_from_the_repository(address: str, api: str, name: str) -> None:
    found = github_address(address)
    assert found
    assert (found.api_url, found.full_name) == (api, name)


@pytest.mark.parametrize(
    "address",
    ["/srv/docs", "file:///srv/acme/docs", "https://example.com/docs", "https://example.com/a/b/c", "https://x:y/a/b",
     "git@github.com:docs", "https:///a/b", "https://example.com/a/{b}"],
)  # fmt: skip
def test_repositories_that_cannot_be_at_github_are_refused(address: str) -> None:
    assert github_address(address) is None


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (("remote: error: GH013: Repository rule violations found for refs/heads/pagehand/1.\nremote: \n"
         "remote: - Commits must have verified signatures.\n"), "Commits must have verified signatures."),
        ("error: RPC failed; HTTP 301 curl 22 The requested URL returned error: 301", "another address now"),
        ("fatal: unable to access 'the repository/': Could not resolve host: git.example.com", "cannot be reached"),
        (("fatal: detected dubious ownership in repository at 'the repository'\nTo add an exception for this "
         "directory, call:\n\n\tgit config --global --add safe.directory the repository\n"), "chown -R"),
    ],
)  # fmt: skip
def test_the_hosts_message_is_explained(errors: str, words: str) -> None:
    assert words in (explain(errors) or "")


def test_unknown_messages_are_quoted_from_git_and_long_ones_cut() -> None:
    assert explain("fatal: something new") is None
    assert len(explain("remote: error: GH006: " + "no " * 10_000) or "") < 600
