"""The settings of the server's process, which all its projects share."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import SettingsConfigDict

from bot.jobserver.settings.sandbox import MachineSettings
from bot.jobserver.settings.values import PREFIX, DurationOrNone, Names
from bot.queue.engine import sqlite_path
from bot.runtime.logging import LogFormat
from bot.runtime.rotating_secrets import RotatingSecret, rotating_secret

API_KEY_LENGTH = 16


def check_api_key(key: str) -> None:
    if len(key) < API_KEY_LENGTH or not key.isprintable():
        raise ValueError(f"must be one line of at least {API_KEY_LENGTH} characters")


def split_lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    has_more = parts.path not in {"", "/"} or parts.query or parts.fragment
    if parts.scheme not in {"http", "https"} or not parts.hostname or has_more:
        raise ValueError("must be an address without a path, such as https://docs-jobs.example.com")
    return value.rstrip("/")


def _postgres_url(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().lower().startswith("postgres"):
        raise ValueError("must begin with postgresql://")
    sqlite_path(value.get_secret_value())  # raises ValueError for what else is wrong
    return value


class ProcessSettings(MachineSettings):
    """Where the server listens and keeps its data, and how it works. Its projects' are in `JobServerSettings`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX)

    host: str = Field(
        "127.0.0.1",
        description="the address to listen on; anything but this machine needs an https proxy in front",
    )
    port: int = Field(8765, ge=0, le=65535, description="the port to listen on; 0 picks a free one")
    public_url: Annotated[str, AfterValidator(_web_address)] | None = Field(
        None,
        description="the address under which people reach the pull request pages, for links; by default http://host:port",
    )
    host_names: Names = Field(
        (),
        description="comma-separated names, besides those of the address and of PUBLIC_URL, by which clients call this "
        "server; others are refused",
    )
    data_directory: Path = Field(
        Path("pagehand-jobserver"), description="where jobs, logs, clones and local pull requests are kept"
    )
    database_url: Annotated[SecretStr, AfterValidator(_postgres_url)] | None = Field(
        None,
        description="the PostgreSQL database of jobs and local pull requests, such as "
        "postgresql://user:password@host:5432/name; by default a SQLite file in DATA_DIRECTORY",
    )
    metrics_token: Annotated[RotatingSecret, rotating_secret(check_api_key, split=split_lines)] | None = Field(
        None, description="the bearer token that GET /metrics requires; without one, there are no metrics"
    )
    log_format: LogFormat | None = Field(
        None,
        description="text is for people, json has one object a line; by default text on a terminal, json elsewhere",
    )
    max_prompt_characters: int = Field(250_000, ge=1, description="the longest accepted prompt, with its context")
    max_concurrent_jobs: int = Field(2, ge=1, le=64, description="how many jobs are worked on at once")
    stop_time: DurationOrNone = Field(
        timedelta(0),
        description="how long what runs may go on after the process was told to stop; then another process, or the "
        "next start, continues it",
    )
    config: Path | None = Field(
        None,
        description="a TOML file with several projects; without one, the settings are those of one",
    )
