"""What can go wrong in the job server.

JobServerError                    the words are for whoever runs the server
├── GitError                      git ended with an error; its words are kept, its addresses are not
│   ├── PushRejectedError         somebody else pushed to the branch meanwhile: start again from there
│   └── NoSuchBranchError         the repository has no branch of this name
├── CodeHostError                 GitHub did not do what was asked: the words say why, and what to do
│   └── NothingToProposeError     a branch holds nothing that its base does not hold
├── HeldBackError                 a change was not pushed, since it holds a secret, or may hold one: the words say where
├── LeakScanError                 a change cannot be looked through for secrets
├── EditError                     the editor could not do its work: the job fails with this reason
│   ├── NotOfferedError           an agent has no such model, effort or mode: the words list those that it has
│   └── BudgetUsedUpError         it was ended, or not begun, since no tokens are left: what was done is kept
├── MergeError                    a pull request could not be merged: the page says why
├── PullRequestNotFoundError      the page is answered with 404
└── RequestRejectedError          the job API does not take a request: the words are for the client
    ├── JobNotFoundError
    ├── JobArchivedError
    ├── FileNotUploadedError
    ├── FileMismatchError
    ├── FileTooLargeError
    ├── UploadSpaceError
    ├── IdempotencyKeyReusedError
    └── RateLimitExceededError
"""


class JobServerError(Exception):
    """Base of all errors the job server raises on purpose."""


class GitError(JobServerError):
    """A git command failed."""


class PushRejectedError(GitError):
    """The branch has commits that the pushed one does not build on."""


class NoSuchBranchError(GitError):
    """A branch is not in the repository."""


class CodeHostError(JobServerError):
    """A code host did not do what was asked; nothing secret is in its words."""


class NothingToProposeError(CodeHostError):
    """A pull request of this branch would be empty."""


class HeldBackError(JobServerError):
    """A change holds what looks like a secret; no value is in the words."""


class LeakScanError(JobServerError):
    """A change could not be looked through for secrets."""


class EditError(JobServerError):
    """The editor failed; the job ends as `failed`."""


class NotOfferedError(EditError):
    """An agent does not offer what is to be chosen of it."""


class BudgetUsedUpError(EditError):
    """No tokens are left.

    `question` asks whether it may go on, where somebody can say so; else it is empty. `was_heard`: whether the editor
    was told of the instruction.
    """

    def __init__(self, reason: str, question: str = "", *, was_heard: bool = True) -> None:
        super().__init__(reason)
        self.question = question
        self.was_heard = was_heard


class MergeError(JobServerError):
    """A pull request could not be merged; nothing was changed."""


class PullRequestNotFoundError(JobServerError):
    """There is no pull request of this number."""


class RequestRejectedError(JobServerError):
    """The job API does not take a request; nothing was recorded."""


class JobNotFoundError(RequestRejectedError):
    """There is no such job."""


class JobArchivedError(RequestRejectedError):
    """The job takes no more messages."""


class FileNotUploadedError(RequestRejectedError):
    """A prompt names a file that is not kept here."""


class FileMismatchError(RequestRejectedError):
    """The bytes of an upload are not those that its address names."""


class FileTooLargeError(RequestRejectedError):
    """A file is larger than one may be."""


class UploadSpaceError(RequestRejectedError):
    """There is no room for more files until some are deleted."""


class IdempotencyKeyReusedError(RequestRejectedError):
    """The same Idempotency-Key came with another body or for another job."""


class RateLimitExceededError(RequestRejectedError):
    """The project has used its hour's share. `retry_after` is in whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many requests; try again in {retry_after} s")
        self.retry_after = retry_after
