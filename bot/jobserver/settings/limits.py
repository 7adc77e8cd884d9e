"""Settings: what a change may hold, how much it may be, and how long things are kept."""

from datetime import timedelta

from pydantic import Field

from bot.jobserver.settings.budget import Budget, BudgetSetting
from bot.jobserver.settings.values import Allowances, Duration, Patterns
from bot.runtime.settings import Settings


class LimitSettings(Settings):
    """What a change may hold, how much it may be, and how long things are kept."""

    paths: Patterns = Field(
        ("**",),
        description="what a job may change, such as docs/** README.md: patterns with spaces between, or a JSON list; "
        "names of what runs at a build, in CI, editors and agents have to be written out",
    )
    allowed_secrets: Allowances = Field(
        (),
        description="where what looks like a secret may be pushed: patterns of paths, each alone or with a colon and "
        "the rule that does not hold there, such as docs/samples/** docs/a.md:jwt",
    )
    max_changed_files: int = Field(
        2_000, ge=1, description="how many files one instruction may change; of a change of more nothing is taken"
    )
    max_file_megabytes: float = Field(
        5.0,
        gt=0,
        description="how large a file may be that is added or changed, in megabytes; larger ones are left out",
    )
    max_upload_megabytes: float = Field(
        10.0, gt=0, le=1000, description="how large a file may be that comes with a prompt, in megabytes"
    )
    upload_space_megabytes: float = Field(
        2_000.0,
        gt=0,
        description="how much all files together may take that came with prompts, in megabytes; more are refused",
    )
    budget: BudgetSetting = Field(
        Budget(),
        description="how many tokens a job may take of its model before its thread is asked, and all jobs of a day, "
        "such as job=2M day=20M",
    )
    keep_for: Duration = Field(
        timedelta(days=90),
        description="how long an archived job is kept, before it goes with its texts, log, folders and ended branches "
        "(seconds or ISO 8601)",
    )
