"""What the demo prints of a thread."""

from bot.cli.demo_scenario import ThreadPrinter
from bot.cli.demo_services import CHANNEL, manifest
from bot.workspace.server import WorkspaceServer


async def test_the_printed_thread_shows_nothing_that_misleads() -> None:
    workspace, printed = WorkspaceServer(manifest()), list[str]()
    await workspace.start()
    try:
        ts = (await workspace.people["ana"].say(CHANNEL, "see \u202egnp.exe\u202c @ben \u200bthere")).ts
        ThreadPrinter(workspace, printed.append).print(ts)
    finally:
        await workspace.stop()
    (line,) = printed
    assert line.endswith(": see gnp.exe @Ben Okafor there")
