"""The job API, self-hosted: a job edits a real git repository and ends in a pull request.

It stands alone: nothing of the bot is needed to run it, and any client of the job API can use it.
"""

from bot.jobserver.errors import JobServerError
from bot.jobserver.server import JobServer
from bot.jobserver.settings import JobServerSettings

__all__ = ["JobServer", "JobServerError", "JobServerSettings"]
