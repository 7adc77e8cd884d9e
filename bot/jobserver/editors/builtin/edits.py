"""What the built-in editor can do, as values."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Replace:
    """Exact text, wherever it stands in the documents."""

    old: str
    new: str
    where: str | None = None


@dataclass(frozen=True)
class FixSpelling:
    """Misspelt words with one known correction."""

    where: str | None = None


@dataclass(frozen=True)
class AddPage:
    """A new document."""

    title: str
    text: str
    where: str | None = None


@dataclass(frozen=True)
class AddSection:
    """A new last section of a document."""

    title: str
    page: str
    text: str


@dataclass(frozen=True)
class AddAttachment:
    """A file that came with the prompt, shown at the end of a document."""

    file: str
    page: str


@dataclass(frozen=True)
class RenamePage:
    """Another title, and a file's name after it."""

    page: str
    title: str


@dataclass(frozen=True)
class Rename:
    """A page that is called so, or else the words."""

    old: str
    new: str


@dataclass(frozen=True)
class UpdateVersion:
    """The version that the pages name."""

    new: str
    where: str | None = None


Edit = Replace | FixSpelling | AddPage | AddSection | AddAttachment | RenamePage | Rename | UpdateVersion
