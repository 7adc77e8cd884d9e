"""Runs in its own process: prints its id and the length of its task, fails, or never ends, as the task says."""

import os
import sys
import time


def main() -> None:
    asked = sys.stdin.read()
    sys.stdout.write(f"{os.getpid()} {len(asked)}")
    sys.stdout.flush()
    if asked == "for ever":
        time.sleep(600)
    if asked == "fail":
        sys.exit(7)
