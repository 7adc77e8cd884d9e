"""Whatever else Slack sends: answered too, since without an answer people see an error, or it comes again."""

import re

from slack_bolt.app.async_app import AsyncApp
from slack_bolt.context.ack.async_ack import AsyncAck

from bot.slack.text import escape
from bot.slack.wording import Wording

ANYTHING = re.compile("")


def register(app: AsyncApp, wording: Wording) -> None:
    """Listens last, for what no other listener takes."""

    async def command(ack: AsyncAck) -> None:
        await ack(f"Pagehand does not know this command. Try `{escape(wording.command)} help`.")

    async def interaction(ack: AsyncAck) -> None:
        await ack()

    async def options(ack: AsyncAck) -> None:
        await ack(options=[])

    async def event() -> None:
        """Bolt acknowledges an event itself."""

    app.command(ANYTHING)(command)
    app.action(ANYTHING)(interaction)
    app.shortcut(ANYTHING)(interaction)
    app.view_submission(ANYTHING)(interaction)
    app.view_closed(ANYTHING)(interaction)
    app.options(ANYTHING)(options)
    app.event(ANYTHING)(event)
