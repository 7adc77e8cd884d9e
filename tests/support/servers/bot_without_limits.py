"""The bot as `pagehand run` runs it, with a Slack without rate limits, for benchmarks."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.fakes.slack_limits import ANY_NUMBER

from bot.app import application
from bot.app.edges import Edges
from bot.app.settings.config import load
from bot.runtime.logging import configure_logging


def lift(edges: Edges) -> None:
    """Removes Slack's rate limits."""
    edges.timings = replace(edges.timings, slack_limits=ANY_NUMBER)


def main() -> None:
    config = load(os.environ)
    configure_logging(config.log_level, config.secrets)
    asyncio.run(application.run(config, decorate=lift))


if __name__ == "__main__":
    main()
