"""The log of a job: a file of its own, for whoever runs the server."""

from pathlib import Path


def append_line(log: Path, text: str) -> None:
    with log.open("ab") as stream:
        stream.write(text.encode(errors="replace") + b"\n")
