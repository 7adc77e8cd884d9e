"""A module for a process of its own: tells its id and what it was asked, or works on for ever."""

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
