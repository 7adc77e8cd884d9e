"""What GitHub answered last about single pull requests: asking again with its ETag costs nothing of the rate limit."""

import re
from collections import UserDict

Answer = tuple[str | None, str | None, object, str | None]
"""The ETag, when it was modified last, the parsed body, and the next page: what gidgethub keeps."""
_KEPT = 100
"""Answers have up to 100 kB in memory."""
_SINGLE = re.compile(r"/pulls/\d+\Z", re.ASCII)


class AnswerCache(UserDict[str, Answer]):
    """By address; holds the newest hundred, and lists and checks of commits never."""

    def __setitem__(self, address: str, answer: Answer) -> None:
        if not _SINGLE.search(address):
            return
        self.data.pop(address, None)
        self.data[address] = answer
        if len(self.data) > _KEPT:
            del self.data[next(iter(self.data))]
