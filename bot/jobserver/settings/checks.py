"""Settings: what is checked before a change is proposed."""

import json
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from bot.jobserver.settings.values import Names, split_words
from bot.runtime.settings import Settings

_LISTS = TypeAdapter(list[list[str]])


def _commands(value: object) -> object:
    """A JSON list of commands, each a list of words; or one command a line, in shell quoting."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith("["):
        return [split_words(line) for line in value.splitlines() if line.strip()]
    try:
        return _LISTS.validate_python(json.loads(value))
    except (ValueError, ValidationError):
        raise ValueError("must be one command a line, or a JSON list of lists of words") from None


class CheckSettings(Settings):
    """What is checked before a change is proposed."""

    checks: Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_commands)] = Field(
        (), description="commands of your own that check a change, one a line; one that fails goes back to the editor"
    )
    checks_pass_environment: Names = Field(
        (), description="names of variables that these commands get besides PATH, HOME, language and the like"
    )
