"""Writes the tables of `bot/docs/settings.md` from the models of the settings: run it after a change to one."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from pydantic import ByteSize, SecretStr
from pydantic.fields import FieldInfo

from bot.app.settings.config import Config
from bot.jobserver.settings import JobServerSettings
from bot.runtime.settings import variable_name

PAGE = Path(__file__).parents[2] / "bot" / "docs" / "settings.md"
END = "<!-- end -->"


def with_tables(page: str) -> str:
    """Returns the page with its tables as the models have them now; its other words stay."""
    of_bot = {variable_name(Config, name): field for name, field in Config.model_fields.items()}
    of_job_server = {name.upper(): field for name, field in JobServerSettings.model_fields.items()}
    for mark, fields in {"<!-- bot -->\n": of_bot, "<!-- job server -->\n": of_job_server}.items():
        before, _, rest = page.partition(mark)
        page = before + mark + _table(fields) + END + rest.partition(END)[2]
    return page


def _table(fields: Mapping[str, FieldInfo]) -> str:
    rows = (f"| `{name}` | {_default(field.default)} | {field.description} |\n" for name, field in fields.items())
    return "| name | default | meaning |\n|---|---|---|\n" + "".join(rows)


def _default(value: object) -> str:
    """Returns it as somebody would write it; empty if there is none."""
    match value:
        case SecretStr():
            text = value.get_secret_value()
        case timedelta():
            return f"{value.days} days" if value.days else f"{value.seconds // 60} minutes"
        case bool():
            text = str(value).lower()
        case ByteSize():
            text = value.human_readable().replace(".0", "")
        case float():
            text = f"{value:g}"
        case tuple():
            text = " ".join(map(str, value))
        case _:
            text = str(value) if isinstance(value, int | str | Path) else ""
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
