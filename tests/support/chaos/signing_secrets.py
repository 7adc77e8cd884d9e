"""Slack's signing secret is replaced again and again while requests arrive: both values are accepted meanwhile."""

import asyncio
from collections.abc import Iterator

from support.chaos.process_world import ProcessWorld, put_secrets
from support.oracles.promises import Broken, Promise

from bot.runtime.rotating_secrets import LOOK_EVERY

UNTIL_READ = LOOK_EVERY + 0.2
"""Seconds after which the next request finds the file's new content."""
STAYS = 3.0
"""Seconds, at least, for which the old value stays valid after Slack uses the new one: longer than a request takes."""


async def replace_signing_secrets(world: ProcessWorld, over: asyncio.Event) -> None:
    """Replaces the secret as the operator's guide says: first in the file, beside the old one, then in Slack."""
    file, credentials = world.signing_secret_file, world.workspace.credentials
    while file is not None and not over.is_set():
        await asyncio.sleep(world.rng.uniform(STAYS, 2 * STAYS))
        old, new = credentials.signing_secret, f"{world.rng.getrandbits(128):032x}"
        world.signing_secrets.append(new)
        put_secrets(file, new, old)
        await asyncio.sleep(UNTIL_READ)
        credentials.signing_secret = new


def wrongly_refused(world: ProcessWorld) -> Iterator[Broken]:
    """No request of Slack's is refused. One that a killed process had begun gets no answer at all."""
    for record in world.workspace.deliveries.records:
        if record.failed == "http_error":
            payload = record.envelope.payload
            what = payload.get("text") or payload.get("event", {}).get("type") or record.envelope.type
            yield Broken(Promise.NOTHING_LOST, f"{world.name}: Slack's request {what!r} was refused")
