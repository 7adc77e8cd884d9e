"""A small documentation repository for demos: the handbook of a fictional lamp."""

import shutil
import subprocess
import tempfile
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

Lumo is a desk lamp with an open interface: set it up, choose its colour and drive it from your own programs.

- [Getting started](docs/getting-started.md)
- [Guides](docs/guides/index.md)
"""
_GETTING_STARTED = """# Getting started

1. Plug the lamp in. The ring turns white.
2. Hold the button for three seconds, untill the ring blinks.
3. Pair it with `lumo pair --code 123-456`.

The lamp remembers its last colour. Next, let it [follow a schedule](guides/schedules.md).
"""
_GUIDES = """# Guides

| Guide | What you get |
| --- | --- |
| [Colours](colours.md) | the right colour at the right time |
| [Schedules](schedules.md) | light that follows your day |
| [Scenes](scenes.md) | several lamps that change together |
"""
_COLOURS = """# Colours

You can set any colour by name or by number. If a colour name is not known, the lamp keeps the colour it has.

```shell
lumo set --color amber
```

Your phone beeps when the lamp has saved it. If you did not recieve a beep, hold the button a little longer.
"""
_SCHEDULES = """# Schedules

A schedule changes brightness and colour over the day. Open **Schedules**, choose **New**, and pick a time and the
colour for it. Between two times the lamp fades slowly, so the change is hardly noticable.
"""
_SCENES = """# Scenes

A scene holds the state of several lamps: on or off, brightness and colour.

Set every lamp as you want it, then choose **Save as scene**. Lamps that are seperate from the group keep their state.
"""
_FILES = {
    "README.md": _README,
    "docs/getting-started.md": _GETTING_STARTED,
    "docs/guides/index.md": _GUIDES,
    "docs/guides/colours.md": _COLOURS,
    "docs/guides/schedules.md": _SCHEDULES,
    "docs/guides/scenes.md": _SCENES,
}


def make_sample_repository(directory: Path) -> Path:
    """Creates a bare repository with one commit on `main` and returns its path, `directory`/lumo-handbook.git.

    Keeps an existing one. Blocks for less than a second.
    """
    target = directory / "lumo-handbook.git"
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix=".making-") as scratch:
        work, bare = Path(scratch) / "work", Path(scratch) / "bare"
        _git(Path(scratch), "init", "--quiet", "--initial-branch=main", str(work))
        for name, text in _FILES.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            (work / name).write_text(text, encoding="utf-8")
        _git(work, "add", "--all")
        _git(work, "commit", "--quiet", "-m", "Start the handbook", "--date=2026-01-01T09:00:00Z")
        _git(Path(scratch), "clone", "--quiet", "--bare", "--no-local", "--", str(work), str(bare))
        bare.rename(target)
    return target


def _git(directory: Path, *arguments: str) -> None:
    path = shutil.which("git")
    if path is None:
        raise FileNotFoundError("git is not installed")
    environment = {"PATH": str(Path(path).parent), **_AUTHOR}
    subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=directory, env=environment, check=True, capture_output=True,
    )  # fmt: skip
