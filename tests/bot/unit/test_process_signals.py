"""What asks a process to end."""

import signal

from bot.runtime.process_signals import ending_signals


def test_a_terminal_that_closes_ends_it_unless_nohup_was_there() -> None:
    """`nohup` starts a program with SIGHUP ignored (POSIX)."""
    assert ending_signals() == (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert ending_signals() == (signal.SIGTERM, signal.SIGINT)
    finally:
        signal.signal(signal.SIGHUP, before)
