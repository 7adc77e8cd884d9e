"""The texts in a file's bytes: UTF-8, Latin-1, UTF-16, and what can be read in a binary. Pure, and linear."""

import codecs
import re

from bot.runtime.text import without_misleading

_READABLE = rb"\t\n\r\x20-\x7e"
_RUN = re.compile(rb"[%b]{8,}" % _READABLE)
_RUN_LITTLE = re.compile(rb"(?:[%b]\0){8,}" % _READABLE)
_RUN_BIG = re.compile(rb"(?:\0[%b]){8,}" % _READABLE)
_BOMS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def text_in(data: bytes) -> str:
    """Returns the text, without characters that nobody sees; of a binary the runs of readable characters."""
    if b"\0" not in data:
        return without_misleading(data.decode(errors="replace"))
    encoding = _BOMS.get(data[:2])
    if encoding:
        return without_misleading(data.decode(encoding, errors="replace"))
    runs = [*_RUN.findall(data), *(run[::2] for run in _RUN_LITTLE.findall(data))]
    return b"\n".join([*runs, *(run[1::2] for run in _RUN_BIG.findall(data))]).decode("ascii")
