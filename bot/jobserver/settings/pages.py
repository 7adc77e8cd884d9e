"""Settings: who may merge and close on the pages of the local pull requests, and who may read them."""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from bot.jobserver.settings.values import Duration
from bot.runtime.settings import Settings

SHORTEST_REVIEWER_KEY = 16
_LONGEST_NAME = 80


@dataclass(frozen=True)
class Reviewer:
    """A person who may merge and close."""

    name: str
    key: SecretStr


def _parse(text: str) -> tuple[Reviewer, ...]:
    entries = [entry for entry in re.split("[\n,]", text) if entry.strip()]
    pairs = [entry.rpartition(":") for entry in entries]
    return tuple(Reviewer(" ".join(name.split()), SecretStr(key.strip())) for name, _, key in pairs)


def _reviewers(value: SecretStr) -> SecretStr:
    found = _parse(value.get_secret_value())
    names, keys = {one.name for one in found}, {one.key.get_secret_value() for one in found}
    if not all(name.isprintable() and 0 < len(name) <= _LONGEST_NAME for name in names):
        raise ValueError("must be lines such as Ada: key, each with a name")
    if not all(len(key) >= SHORTEST_REVIEWER_KEY and re.fullmatch(r"[!-~]+", key) for key in keys):
        raise ValueError(
            f"must be lines such as Ada: key, each with a key of at least {SHORTEST_REVIEWER_KEY} characters"
        )
    if len(names) < len(found) or len(keys) < len(found):
        raise ValueError("must give each person a name and a key of their own")
    return value


class PageSettings(Settings):
    """Who may merge and close on the pages of the local pull requests, and who may read them."""

    reviewers: Annotated[SecretStr, AfterValidator(_reviewers)] = Field(
        SecretStr(""),
        description="who may merge and close on the pull request pages: a line `name: key` each, with a key of at "
        f"least {SHORTEST_REVIEWER_KEY} characters, best in a file; without it nobody can",
    )
    login_lasts: Duration = Field(
        timedelta(hours=12), description="how long a reviewer stays logged in (seconds or ISO 8601)"
    )
    private_pages: bool = Field(
        False,
        description="true shows the pull request pages only to reviewers who are logged in",
        validate_default=True,
    )

    @field_validator("private_pages")
    @classmethod
    def _somebody_can_read(cls, value: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - the signature is pydantic's
        reviewers = info.data.get("reviewers")
        if value and reviewers is not None and not _parse(reviewers.get_secret_value()):
            raise ValueError("needs PAGEHAND_JOBSERVER_REVIEWERS")
        return value

    @property
    def reviewer_list(self) -> tuple[Reviewer, ...]:
        return _parse(self.reviewers.get_secret_value())
