"""What archives reveal: of any kind, nested, within limits that nothing small exceeds."""

import bz2
import gzip
import io
import lzma
import random
import tarfile
import time
import zipfile
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.leaks.archives import MOST_BYTES, MOST_ENTRIES, MOST_LAYERS, TooMuchPackedError, unpacked
from bot.jobserver.leaks.scan import Allowances, Scanner

OWN = "kX9/w2+QzR7vLm4&pT8sYb1dN6"
"""No rule recognizes it."""
_DRAWN = random.Random(8)  # noqa: S311 - the same in each run
AWS = "AKIA" + "".join(_DRAWN.choices("ABCDEFGHJKLMNOPQRSTUVWXYZ234567", k=16))
BOMB = b"\0" * (MOST_BYTES + 1)


def zipped(*files: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    with io.BytesIO() as packed:
        with zipfile.ZipFile(packed, "w", compression) as archive:
            for name, data in files:
                archive.writestr(name, data)
        return packed.getvalue()


def tarred(*files: tuple[str, bytes], mode: str = "w") -> bytes:
    with io.BytesIO() as packed:
        with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
            for name, data in files:
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return packed.getvalue()


def linked(target: str) -> bytes:
    with io.BytesIO() as packed:
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            entry = tarfile.TarInfo("link")
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
        return packed.getvalue()


def docx(text: bytes) -> bytes:
    return zipped(("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w:t>%b</w:t>" % text))


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "zip": lambda text: zipped(("a.txt", text)),
    "zip of bzip2": lambda text: zipped(("a.txt", text), compression=zipfile.ZIP_BZIP2),
    "zip of lzma": lambda text: zipped(("a.txt", text), compression=zipfile.ZIP_LZMA),
    "zip behind a program": lambda text: b"#!/bin/sh\n" + zipped(("a.txt", text)),
    "docx": docx,
    "name in a zip": lambda text: zipped((text.decode()[:26], b"x")),
    "tar.gz": lambda text: tarred(("a.txt", text), mode="w:gz"),
    "tar.xz": lambda text: tarred(("a.txt", text), mode="w:xz"),
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "gzip in two streams": lambda text: gzip.compress(text[:7]) + gzip.compress(text[7:]),
    "link in a tar": lambda text: linked(text.decode()[:78]),  # a longer one is there twice, once cut off
    "gzip that is cut off": lambda text: gzip.compress(text * 99)[:-9],
    "docx in a zip in a tar.gz": lambda text: tarred(("a.zip", zipped(("a.docx", docx(text)))), mode="w:gz"),
}


def found(data: bytes, known: tuple[str, ...] = (), *allowed: str) -> list[str]:
    return [one.rule or "own" for one in Scanner(known, Allowances(allowed)).suspicions("docs/a.zip", data)]


@pytest.mark.parametrize("kind", PACKED)
def test_a_key_in_an_archive_is_found(kind: str) -> None:
    """Secrets by the rules; each is reported once per archive."""
    packed = PACKED[kind](f"\nid: {AWS}\n".encode() * 9)
    assert AWS.encode() not in packed or kind == "name in a zip"
    assert found(packed) == ["aws-access-key-id"]
    assert found(packed, (), "docs/a.zip") == []


@pytest.mark.parametrize("kind", [kind for kind in PACKED if kind != "name in a zip"])
def test_a_value_of_the_server_in_an_archive_is_found(kind: str) -> None:
    """Nobody can allow it."""
    assert found(PACKED[kind](OWN.encode()), (OWN,), "**") == ["own"]


def test_the_same_key_in_many_files_of_an_archive_is_reported_once() -> None:
    packed = zipped(*((f"{number}.md", AWS.encode()) for number in range(30)))
    assert found(packed) == ["aws-access-key-id"]


def layers(number: int) -> bytes:
    data = b"at the bottom"
    for _ in range(number):
        data = gzip.compress(data)
    return data


def test_archives_are_scanned_to_a_documents_depth() -> None:
    assert list(unpacked(layers(MOST_LAYERS)))[-1] == b"at the bottom"


BOMBS: dict[str, Callable[[], bytes]] = {
    "zip": lambda: zipped(("a", BOMB)),
    "in an archive": lambda: zipped(("a.gz", gzip.compress(BOMB))),
    "many layers": lambda: layers(MOST_LAYERS + 1),
    "gzip": lambda: gzip.compress(BOMB),
    "bzip2": lambda: bz2.compress(BOMB),
    "xz": lambda: lzma.compress(BOMB),
    "many files": lambda: zipped(*((f"{number}", BOMB[:8_000_000]) for number in range(5))),
    "many names": lambda: tarred(*((f"{number}", b"") for number in range(MOST_ENTRIES + 1)), mode="w:gz"),
    "many streams": lambda: gzip.compress(b"") * (MOST_ENTRIES + 1),
}


@pytest.mark.first(bomb=3)
@pytest.mark.parametrize("bomb", BOMBS)
def test_oversized_archives_are_refused_early(bomb: str) -> None:
    data = BOMBS[bomb]()
    begin = time.process_time()
    with pytest.raises(TooMuchPackedError):
        list(unpacked(data))
    assert time.process_time() - begin < 10


def test_only_the_operator_can_allow_oversized_archives() -> None:
    """The server's own values are searched for up to the limits."""
    data = zipped(("a", OWN.encode()), ("b", layers(MOST_LAYERS + 1)))
    with pytest.raises(TooMuchPackedError):
        found(data)
    assert found(data, (), "docs/a.zip") == []
    assert found(data, (OWN,), "docs/a.zip") == ["own"]


def enciphered(data: bytes) -> bytes:
    """Returns a zip whose one file claims to need a password."""
    packed = bytearray(zipped(("a", data)))
    for magic, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        packed[packed.index(magic) + flags] |= 1
    return bytes(packed)


@pytest.mark.parametrize(
    "data",
    [
        enciphered(b"x"), zipped(("a", b"x" * 99))[:-30], b"PK\5\6", b"PK\5\6" + b"\xff" * 18, b"BZh9", b"\x1f\x8b\x08",
        b"\xfd7zXZ\0", b"\0" * 257 + b"ustar" + b"\xff" * 250, b"", b"No archive at all.",
    ],
    ids=range(10),
)  # fmt: skip
def test_unreadable_archives_are_scanned_as_raw_bytes(data: bytes) -> None:
    """The raw bytes are scanned."""
    assert all(len(content) < 99 for content in unpacked(data))
    assert found(data + b"\n" + AWS.encode()) == ["aws-access-key-id"]


@given(st.sampled_from(sorted(PACKED)), st.data())
def test_a_damaged_archive_raises_nothing_else(kind: str, data: st.DataObject) -> None:
    """Bytes are overwritten, cut off, or inserted."""
    packed = bytearray(PACKED[kind](b"some text" * 20))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(packed)))
        packed[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    try:
        contents = list(unpacked(bytes(packed)))
    except TooMuchPackedError:
        return
    assert sum(map(len, contents)) <= MOST_BYTES
