"""A small documentation repository for demos: the handbook of a fictional lamp."""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

_AUTHOR = {
    "GIT_AUTHOR_NAME": "Robin Field",
    "GIT_AUTHOR_EMAIL": "robin@lumo.example",
    "GIT_COMMITTER_NAME": "Robin Field",
    "GIT_COMMITTER_EMAIL": "robin@lumo.example",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TEMPLATE_DIR": "",
    "LC_ALL": "C.UTF-8",
}
_README = """# Lumo handbook

Lumo is a desk lamp with an open interface. These pages tell how to set it up, choose its colour and drive it from
your own programs. All of it is for version 2.0 of its software.

- [Getting started](docs/getting-started.md)
- [Guides](docs/guides/index.md)
- [Reference](docs/reference.md)
- [Troubleshooting](docs/troubleshooting.md)
"""
_GETTING_STARTED = """# Getting started

## What is in the box

The lamp, a power cable and a small card with the pairing code.

## Pair the lamp

1. Plug it in. The ring turns white.
2. Hold the button for three seconds, untill the ring blinks.
3. Enter the pairing code within one minute.

```shell
lumo pair --code 123-456
```

The lamp remembers its last colour, even after a power cut.

## Next

Choose a [colour for the evening](guides/colours.md) or let the lamp [follow a schedule](guides/schedules.md).
"""
_GUIDES = """# Guides

Each guide is about one thing and takes a few minutes.

| Guide | What you get |
| --- | --- |
| [Colours](colours.md) | the right colour at the right time |
| [Schedules](schedules.md) | light that follows your day |
| [Scenes](scenes.md) | several lamps that change together |
"""
_COLOURS = """# Colours

Every lamp starts with a warm white. You can set any colour by name or by number.

## Set a colour by name

```shell
lumo set --color amber
```

The names are the usual ones of the web. If a colour name is not known, the lamp keeps the colour it has.

## Set a colour by number

Give the three parts of the colour, each from 0 to 255. A brighter background makes the same colour look paler, so
try it in the room where the lamp will stand.

## Save a colour

Hold the button while the colour is shown.

Your phone beeps when the lamp has saved it. If you did not recieve a beep, hold the button a little longer.
"""
_SCHEDULES = """# Schedules

A schedule changes brightness and colour over the day.

## Make a schedule

1. Open **Schedules** and choose **New**.
2. Pick a time and the colour for it.
3. Repeat for as many times as you like; twelve is the maximum.

Between two times the lamp fades slowly, so the change is hardly noticable.

## Daylight saving

Schedules follow the clock on the wall. On the two days a year when the clock changes, the lamp changes with it.
"""
_SCENES = """# Scenes

A scene holds the state of several lamps: on or off, brightness and colour.

## Save a scene

Set every lamp as you want it, then choose **Save as scene**. Lamps that are seperate from the group keep their state.

## Start a scene

```shell
lumo scene start evening
```

All lamps reach the colour of the scene within half a second.
"""
_REFERENCE = """# Reference

| Command | What it does |
| --- | --- |
| `lumo pair --code CODE` | pairs a lamp |
| `lumo set --color NAME` | sets the colour |
| `lumo scene start NAME` | starts a scene |
| `lumo status` | prints brightness, colour and firmware version |

Every command ends with 0 on success and with 1 if no lamp answered.
"""
_TROUBLESHOOTING = """# Troubleshooting

## The lamp does not answer

Check that the ring is white. If it is off, the lamp has no power; if it is red, it has lost the network.

## The colour looks wrong

Strong daylight changes how a colour looks. Compare it in the evening before you change anything.

## Start over

Hold the button for ten seconds. This will definately erase all scenes and schedules.
"""
_CONTRIBUTING = """# Contributing

Small corrections are welcome. Write short sentences, say "you" to the reader, and try every command before you
describe it.
"""
_HISTORY: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("Start the handbook", {"README.md": _README, "docs/getting-started.md": _GETTING_STARTED}),
    (
        "Add the guides",
        {
            "docs/guides/index.md": _GUIDES,
            "docs/guides/colours.md": _COLOURS,
            "docs/guides/schedules.md": _SCHEDULES,
            "docs/guides/scenes.md": _SCENES,
        },
    ),
    ("Add the reference of commands", {"docs/reference.md": _REFERENCE}),
    ("Tell what to do when the lamp misbehaves", {"docs/troubleshooting.md": _TROUBLESHOOTING}),
    ("Say how to contribute", {"CONTRIBUTING.md": _CONTRIBUTING}),
)


def make_sample_repository(directory: Path) -> Path:
    """Creates a bare repository with a few commits on `main` and returns its path, `directory`/lumo-handbook.git.

    Keeps an existing one. Blocks for less than a second.
    """
    target = directory / "lumo-handbook.git"
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".making-") as scratch:
        work, bare = Path(scratch) / "work", Path(scratch) / "bare"
        _git(Path(scratch), "init", "--quiet", "--initial-branch=main", str(work))
        for day, (message, files) in enumerate(_HISTORY, start=1):
            _commit(work, message, files, day)
        _git(Path(scratch), "clone", "--quiet", "--bare", "--no-local", "--", str(work), str(bare))
        bare.rename(target)
    return target


def _commit(work: Path, message: str, files: Mapping[str, str], day: int) -> None:
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    _git(work, "add", "--all")
    _git(work, "commit", "--quiet", "-m", message, f"--date=2026-01-0{day}T09:00:00Z")


def _git(directory: Path, *arguments: str) -> None:
    path = shutil.which("git")
    if path is None:
        raise FileNotFoundError("git is not installed")
    environment = {"PATH": str(Path(path).parent), **_AUTHOR}
    subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=directory, env=environment, check=True, capture_output=True,
    )  # fmt: skip
