"""A small documentation repository for demos: the handbook of a fictional lamp."""

import shutil
import subprocess
import tempfile
from pathlib import Path

_COMMIT = """\
commit refs/heads/main
committer Robin Field <robin@lumo.example> 1767258000 +0000
data <<.
Start the handbook
.
"""
"""Continues with the files, in the format of `git fast-import`."""
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
    files = "".join(f"M 100644 inline {name}\ndata {len(text.encode())}\n{text}\n" for name, text in _FILES.items())
    with tempfile.TemporaryDirectory(dir=directory, prefix=".making-") as scratch:
        bare = Path(scratch) / "bare"
        _git(directory, "init", "--quiet", "--bare", "--template=", "--initial-branch=main", str(bare))
        _git(bare, "fast-import", "--quiet", stdin=_COMMIT + files)
        bare.rename(target)
    return target


def _git(directory: Path, *arguments: str, stdin: str = "") -> None:
    path = shutil.which("git")
    if path is None:
        raise FileNotFoundError("git is not installed")
    environment = {"PATH": str(Path(path).parent), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    subprocess.run(
        [path, *arguments], cwd=directory, env=environment, check=True, capture_output=True, input=stdin.encode()
    )
