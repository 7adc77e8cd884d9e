"""What somebody prefers for the jobs that they ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preference:
    """`project` is a project's name, empty: none; `quiet`: nobody is mentioned at the end."""

    project: str = ""
    quiet: bool = False
