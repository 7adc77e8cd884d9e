"""What is encrypted for the database: who changes, cuts or mixes it gets nothing decrypted, nor does another key."""

from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.errors import JobServerError
from bot.jobserver.sealing import OVERHEAD_BYTES, Sealing
from bot.runtime.rotating_secrets import RotatingSecret

KEY, NEW = "0a" * 32, "0b" * 32
CHUNKS = [b"planted one", b"planted two", b"planted three"]


def sealing(*keys: str) -> Sealing:
    return Sealing(RotatingSecret(" ".join(keys), lambda text: tuple(text.split())))


async def each(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def sealed(chunks: Sequence[bytes], *keys: str, name: str = "job file") -> list[bytes]:
    return [chunk async for chunk in sealing(*keys).seal(each(chunks), name)]


async def opened(chunks: Sequence[bytes], *keys: str, name: str = "job file") -> list[bytes]:
    return [chunk async for chunk in sealing(*keys).open(each(chunks), name)]


async def test_what_was_sealed_is_opened_and_cannot_be_read() -> None:
    found = await sealed(CHUNKS, KEY)
    assert await opened(found, KEY) == CHUNKS
    assert not any(b"planted" in chunk for chunk in found)
    assert [len(chunk) - OVERHEAD_BYTES for chunk in found] == [len(chunk) for chunk in CHUNKS]
    assert await opened(await sealed([], KEY), KEY) == [b""]


@pytest.mark.promise("rotation")
async def test_the_newest_key_seals_and_the_one_before_still_opens() -> None:
    before, since = await sealed(CHUNKS, KEY), await sealed(CHUNKS, NEW, KEY)
    assert await opened(before, NEW, KEY) == await opened(since, NEW) == CHUNKS
    for chunks, key in ((before, NEW), (since, KEY)):
        with pytest.raises(JobServerError, match="SESSION_KEY"):
            await opened(chunks, key)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda chunks: chunks[:-1],
        lambda chunks: chunks[1:],
        lambda chunks: [chunks[1], chunks[0], chunks[2]],
        lambda chunks: [*chunks, chunks[-1]],
        lambda chunks: [*chunks[:2], chunks[2][:5]],
        lambda _: [],
    ],
)
async def test_what_was_cut_or_moved_is_refused(spoil: Callable[[list[bytes]], list[bytes]]) -> None:
    with pytest.raises(JobServerError):
        await opened(spoil(await sealed(CHUNKS, KEY)), KEY)


async def test_a_chunk_of_another_file_is_refused() -> None:
    one, other = [await sealed(CHUNKS, KEY, name=name) for name in ("job one", "job other")]
    for chunks in (other, [one[0], other[1], one[2]]):
        with pytest.raises(JobServerError):
            await opened(chunks, KEY, name="job one")


@given(st.integers(0, 2), st.integers(0, 30), st.integers(1, 255))
async def test_a_changed_byte_is_refused(chunk: int, place: int, by: int) -> None:
    chunks = [bytearray(each) for each in await sealed(CHUNKS, KEY)]
    chunks[chunk][place] ^= by
    with pytest.raises(JobServerError):
        await opened([bytes(each) for each in chunks], KEY)
