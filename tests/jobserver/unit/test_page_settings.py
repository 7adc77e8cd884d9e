"""Who may merge and close, as an operator writes it down."""

from pathlib import Path

import pytest

from bot.errors import ConfigError
from bot.jobserver.sandbox.choice import forget_secrets
from bot.jobserver.settings import PREFIX, JobServerSettings
from bot.runtime.rotating_secrets import SecretFile

ADA, BEN = "planted-key-of-ada", "planted-key-of-ben"
REQUIRED = {f"{PREFIX}REPOSITORY": "/srv/docs.git", f"{PREFIX}API_KEY": "planted-key-of-the-api"}


def made(**environ: str) -> JobServerSettings:
    return JobServerSettings.from_environment(REQUIRED | {PREFIX + name: value for name, value in environ.items()})


def test_reviewers_are_read_from_a_file_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "reviewers").write_text(f"Ada  Lovelace: {ADA}\n\n Ben:{BEN}\n")
    settings = made(REVIEWERS_FILE=str(tmp_path / "reviewers"))
    found = [(one.name, one.key.get_secret_value()) for one in settings.reviewer_list]
    assert found == [("Ada Lovelace", ADA), ("Ben", BEN)]
    assert ADA not in repr(settings)
    assert ADA not in repr(settings.reviewer_list)
    assert made(REVIEWERS=f"Ada:{ADA}, Ben:{BEN}").reviewer_list[1].name == "Ben"
    assert made().reviewer_list == ()


def test_an_empty_reviewers_file_lists_nobody_until_it_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "reviewers"
    file.touch()
    settings = made(REVIEWERS_FILE=str(file))
    assert settings.reviewer_list == ()
    assert settings.reviewers.file == SecretFile(file, f"{PREFIX}REVIEWERS_FILE"), "it is read again"
    with pytest.raises(ConfigError, match="API_KEY is missing"):
        JobServerSettings.from_environment({f"{PREFIX}REPOSITORY": "/srv/docs.git", f"{PREFIX}API_KEY_FILE": str(file)})


@pytest.mark.parametrize(
    ("reviewers", "fault"),
    [
        (ADA, "each with a name"),
        (f": {ADA}", "each with a name"),
        (f"Ada: Lovelace: {ADA}", "without a colon"),
        ("Ada: short", "at least 22 characters"),
        ("Ada: planted key with spaces", "at least 22 characters"),
        (f"Ada: {ADA}\nAda: {BEN}\nAda: {BEN}-new", "two keys while one is replaced"),
        (f"Ada: {ADA}\nAda: {ADA}", "of their own"),
        (f"Ada: {ADA}\nBen: {ADA}", "of their own"),
    ],
)
def test_an_invalid_reviewer_is_refused_without_quoting_the_key(reviewers: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as caught:
        made(REVIEWERS=reviewers)
    assert ADA not in str(caught.value)


def test_private_pages_need_a_reader() -> None:
    with pytest.raises(ConfigError, match="PRIVATE_PAGES needs PAGEHAND_JOBSERVER_REVIEWERS"):
        made(PRIVATE_PAGES="true")
    assert made(PRIVATE_PAGES="true", REVIEWERS=f"Ada:{ADA}").private_pages


@pytest.mark.parametrize(
    ("environ", "private"),
    [
        ({}, False),
        ({"AGENT": "claude"}, True),
        ({"EDITOR": "command", "COMMAND": "fix"}, True),
        ({"CHECKS": "make test"}, True),
        ({"AGENT": "claude", "PULL_REQUESTS": "local"}, True),
    ],
)
def test_with_programs_drafts_are_for_reviewers(environ: dict[str, str], *, private: bool) -> None:
    assert made(**environ).private_pages is private


def test_drafts_are_public_only_if_no_program_can_reach_them() -> None:
    its_pages = {"PUBLIC_URL": "https://Jobs.example", "EGRESS": "private:jobs.example:443"}
    for open_way in ({"SANDBOX": "none"}, {"EGRESS": "open"}, its_pages, its_pages | {"EGRESS": "jobs.example:443"}):
        with pytest.raises(ConfigError, match="PRIVATE_PAGES must not be false"):
            made(PRIVATE_PAGES="false", AGENT="claude", **open_way)
    assert made(PRIVATE_PAGES="false", SANDBOX="none").private_pages is False
    assert made(PRIVATE_PAGES="false", AGENT="claude").private_pages is False
    neighbour = its_pages | {"EGRESS": "jobs.example:8443, other.example:443"}
    assert made(PRIVATE_PAGES="false", AGENT="claude", **neighbour).private_pages is False


@pytest.mark.parametrize(("key", "may"), [("k" * 22, True), ("k" * 21, False)])
def test_a_short_key_of_1_0_0_loses_merging_and_the_warning_says_how_to_replace_it(key: str, *, may: bool) -> None:
    settings = made(REVIEWERS=f"Ada: {key}\nBen: {BEN}-long-enough")
    assert [one.may_decide for one in settings.reviewer_list] == [may, True]
    words = "too short: Ada. Give each a new one of at least 22 characters (openssl rand -hex 24)"
    assert (words in settings.warning_about_reviewers) is not may


def test_keys_are_removed_from_the_environment() -> None:
    environ = {f"{PREFIX}REVIEWERS": f"Ada:{ADA}", f"{PREFIX}REVIEWERS_FILE": "x", "PATH": "/bin"}
    forget_secrets(environ)
    assert environ == {"PATH": "/bin"}
