"""Every setting of the job server, read from PAGEHAND_JOBSERVER_... variables."""

from bot.jobserver.settings.server import JobServerSettings
from bot.jobserver.settings.values import PREFIX, is_branch_name, repository_protocol

__all__ = ["PREFIX", "JobServerSettings", "is_branch_name", "repository_protocol"]
