"""The environment variables of the scheduler; `bot.app.settings.config` reads them with all others."""

from pydantic import Field, ValidationInfo, field_validator

from bot.runtime.settings import Settings


class SchedulerVariables(Settings):
    """How people's requests are merged, and jobs are polled and kept."""

    merge_seconds: float = Field(
        default=3.0,
        ge=0,
        le=60,
        alias="PAGEHAND_MERGE_SECONDS",
        description="replies by one person within so many seconds of each other are sent as one; 0: each separately",
    )
    poll_fastest: float = Field(
        default=2.0,
        ge=0.1,
        le=60,
        alias="PAGEHAND_POLL_FASTEST",
        description="seconds between polls right after a change",
    )
    poll_slowest: float = Field(
        default=30.0,
        validate_default=True,
        ge=0.1,
        le=600,
        alias="PAGEHAND_POLL_SLOWEST",
        description="seconds between polls of a job that has not changed for a while; a pull request that moves is "
        "read after twice as many, at most 60",
    )
    keep_days: float = Field(
        default=90.0,
        gt=0,
        le=36_500,
        alias="PAGEHAND_KEEP_DAYS",
        description="days until a finished job and its texts are deleted from the database",
    )

    @field_validator("poll_slowest")
    @classmethod
    def _not_below_fastest(cls, value: float, info: ValidationInfo) -> float:
        if value < info.data.get("poll_fastest", 0.0):
            raise ValueError("must not be shorter than PAGEHAND_POLL_FASTEST")
        return value
