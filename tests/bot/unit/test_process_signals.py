"""Signals that end a process."""

import asyncio
import signal

import pytest

from bot.runtime.process_signals import ending_signals, run_until_signal


def test_a_closing_terminal_ends_it_except_under_nohup() -> None:
    """`nohup` starts a program with SIGHUP ignored (POSIX)."""
    assert ending_signals() == (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ending_signals() == (signal.SIGTERM, signal.SIGINT)
    finally:
        signal.signal(signal.SIGHUP, before)


class Running:
    """Records that it was stopped."""

    stopped = False

    async def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_every_signal_stops_the_process_alike(number: signal.Signals) -> None:
    running = Running()

    async def start() -> Running:
        asyncio.get_running_loop().call_soon(signal.raise_signal, number)
        return running

    before = {each: signal.getsignal(each) for each in ending_signals()}
    try:
        asyncio.run(run_until_signal(start))
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert running.stopped
