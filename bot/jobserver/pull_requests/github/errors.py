"""What can go wrong with a call to GitHub, by what is to be done about it.

CodeHostError
├── RefusedError      GitHub understood and said no: tell the person
├── BusyError         GitHub lets nothing through for longer than anybody would wait: tell the person until when
├── UncertainError    no answer, or none that makes sense: look whether it was carried out, then try again
└── MovedError        the repository has another name now: nothing was carried out
"""

from bot.jobserver.errors import CodeHostError


class RefusedError(CodeHostError):
    """An answer from 400 to 499. `said` is GitHub's own text: foreign, one line, for telling cases apart."""

    def __init__(self, words: str, *, status: int, said: str) -> None:
        self.status = status
        self.said = said
        super().__init__(words)


class BusyError(CodeHostError):
    """A rate limit."""


class UncertainError(CodeHostError):
    """The call may have been carried out, or not."""


class MovedError(CodeHostError):
    """A redirect; `location` is a path of this API."""

    def __init__(self, location: str) -> None:
        self.location = location
        super().__init__("the repository has another name now")
