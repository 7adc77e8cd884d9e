"""Who may merge and close, as an operator writes it down."""

from pathlib import Path

import pytest

from bot.errors import ConfigError
from bot.jobserver.sandbox.own_process import forget_secrets
from bot.jobserver.settings import PREFIX, JobServerSettings

ADA, BEN = "planted-key-of-ada", "planted-key-of-ben"
REQUIRED = {f"{PREFIX}REPOSITORY": "/srv/docs.git", f"{PREFIX}API_KEY": "planted-key-of-the-api"}


def made(**environ: str) -> JobServerSettings:
    return JobServerSettings.from_environment(REQUIRED | {PREFIX + name: value for name, value in environ.items()})


def test_reviewers_come_a_line_each_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "reviewers").write_text(f"Ada  Lovelace: {ADA}\n\n Ben:{BEN}\n")
    settings = made(REVIEWERS_FILE=str(tmp_path / "reviewers"))
    found = [(one.name, one.key.get_secret_value()) for one in settings.reviewer_list]
    assert found == [("Ada Lovelace", ADA), ("Ben", BEN)]
    assert ADA not in repr(settings)
    assert ADA not in repr(settings.reviewer_list)
    assert made(REVIEWERS=f"Ada:{ADA}, Ben:{BEN}").reviewer_list[1].name == "Ben"
    assert made().reviewer_list == ()


@pytest.mark.parametrize(
    ("reviewers", "fault"),
    [
        (ADA, "each with a name"),
        (f": {ADA}", "each with a name"),
        ("Ada: short", "at least 16 characters"),
        ("Ada: planted key with spaces", "at least 16 characters"),
        (f"Ada: {ADA}\nAda: {BEN}", "of their own"),
        (f"Ada: {ADA}\nBen: {ADA}", "of their own"),
    ],
)
def test_what_is_no_reviewer_is_refused_without_its_key(reviewers: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault) as caught:
        made(REVIEWERS=reviewers)
    assert ADA not in str(caught.value)


def test_private_pages_need_somebody_who_can_read_them() -> None:
    with pytest.raises(ConfigError, match="PRIVATE_PAGES needs PAGEHAND_JOBSERVER_REVIEWERS"):
        made(PRIVATE_PAGES="true")
    assert made(PRIVATE_PAGES="true", REVIEWERS=f"Ada:{ADA}").private_pages


def test_keys_do_not_stay_in_the_environment() -> None:
    environ = {f"{PREFIX}REVIEWERS": f"Ada:{ADA}", f"{PREFIX}REVIEWERS_FILE": "x", "PATH": "/bin"}
    forget_secrets(environ)
    assert environ == {"PATH": "/bin"}
