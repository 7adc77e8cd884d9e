"""Carries out edits on the files of a working copy, and says in words what was done and what was left alone."""

from collections.abc import Sequence
from typing import assert_never

from bot.jobserver.editors.builtin.answers import Note
from bot.jobserver.editors.builtin.attachments import GivenFile
from bot.jobserver.editors.builtin.edits import (
    AddAttachment,
    AddPage,
    AddSection,
    Edit,
    FixSpelling,
    Rename,
    RenamePage,
    Replace,
    UpdateVersion,
)
from bot.jobserver.editors.builtin.files import WorkingFiles
from bot.jobserver.editors.builtin.page_edits import add_attachment, add_page, add_section
from bot.jobserver.editors.builtin.renames import rename, rename_page
from bot.jobserver.editors.builtin.versions import update_version
from bot.jobserver.editors.builtin.word_edits import correct_spelling, replace


def carry_out(edit: Edit, files: WorkingFiles, given: Sequence[GivenFile] = ()) -> Note:
    """Changes the files. Raises EditError where that could not be done, and OSError."""
    match edit:
        case Replace():
            note = replace(edit, files)
        case FixSpelling():
            note = correct_spelling(edit, files)
        case AddPage():
            note = add_page(edit, files)
        case AddSection():
            note = add_section(edit, files)
        case AddAttachment():
            note = add_attachment(edit, files, given)
        case RenamePage():
            note = rename_page(edit, files)
        case Rename():
            note = rename(edit, files)
        case UpdateVersion():
            note = update_version(edit, files)
        case _:
            assert_never(edit)
    return note
