"""Uploaded files, laid into a job's folder under names that are safe for a path, a shell and a prompt."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from bot.jobserver.editors.interface import AttachedFile
from bot.jobserver.errors import JobServerError
from bot.jobserver.store.records import Attachment

_LONGEST_NAME = 80
_LONGEST_SUFFIX = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_READ_ONLY = 0o400


def lay_out(attachments: Sequence[Attachment], uploads: Path, folder: Path) -> tuple[AttachedFile, ...]:
    """Copies the files into a folder, which is made where there are any; returns them as they lie there, in order.

    They are copies: a program without a sandbox could change what it is given.

    Raises:
        JobServerError: one of them is gone, or the disk does not let it.
    """
    if not attachments:
        return ()
    # The same file under the same name, sent again, is the one that lies there.
    files = list(dict.fromkeys((attachment.upload_id, attachment.name) for attachment in attachments))
    names = dict(zip(files, safe_names([name for _, name in files]), strict=True))
    try:
        folder.mkdir(mode=0o700)
        for (upload_id, _), name in names.items():
            shutil.copyfile(uploads / upload_id, folder / name)
            (folder / name).chmod(_READ_ONLY)
    except OSError as error:
        raise JobServerError(f"the files that came with this cannot be laid out: {error.strerror}") from error
    return tuple(
        AttachedFile(names[file.upload_id, file.name], file.name, file.mimetype, file.size) for file in attachments
    )


def safe_names(names: Sequence[str]) -> list[str]:
    """Returns a file name for each, no two alike, also where capitals make no difference."""
    taken = set[str]()
    found = []
    for name in map(safe_name, names):
        number, unique = 1, name
        while unique.lower() in taken:
            number += 1
            path = PurePosixPath(name)
            unique = f"{path.stem}-{number}{path.suffix}"
        taken.add(unique.lower())
        found.append(unique)
    return found


def safe_name(name: str) -> str:
    """Returns the last part of a path as a name of plain characters that hides nothing and is no option."""
    path = PurePosixPath(name.replace("\\", "/"))
    suffix = _UNSAFE.sub("", path.suffix)[:_LONGEST_SUFFIX]
    stem = _UNSAFE.sub("-", path.name.removesuffix(path.suffix)).strip("-.")[:_LONGEST_NAME]
    return f"{stem or 'file'}{suffix if suffix != '.' else ''}"
