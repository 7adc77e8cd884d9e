"""The errors of the job server.

JobServerError                    the message is for the operator
├── GitError                      git failed; the message keeps its output, without addresses
│   ├── PushRejectedError         somebody else has pushed to the branch: start again from there
│   ├── NoSuchBranchError         the repository has no branch of this name
│   └── OutputTooLongError        git said more than is read
├── CodeHostError                 GitHub refused a request: the message says why, and what to do
│   └── NothingToProposeError     a branch contains nothing that its base does not
├── LeakScanError                 a change cannot be searched for secrets
├── EditError                     the editor failed: the job fails with this reason
│   ├── NotOfferedError           an agent has no such model, effort or mode: the message lists what it has
│   └── BudgetUsedUpError         it was stopped, or not started, because no tokens are left: its work is kept
├── DecisionError                 what a reviewer decided cannot be done: the page says why
├── PullRequestNotFoundError      the page is answered with 404
└── RequestRejectedError          the job API rejects a request: the message is for the client
    └── RateLimitExceededError
LeaseLostError                    nothing on its way handles it: what a worker has lost, it drops
"""


class JobServerError(Exception):
    """Base of all errors that the job server raises deliberately."""


class LeaseLostError(Exception):
    """An instruction belongs to another worker now, or may soon; nothing was recorded."""


class GitError(JobServerError):
    """A git command failed."""


class PushRejectedError(GitError):
    """The branch has commits that the pushed one does not build on."""


class NoSuchBranchError(GitError):
    """A branch is not in the repository."""


class OutputTooLongError(GitError):
    """A git command printed more than is read."""


class CodeHostError(JobServerError):
    """A code host refused a request; the message contains no secret."""


class NothingToProposeError(CodeHostError):
    """A pull request of this branch would be empty."""


class LeakScanError(JobServerError):
    """A change could not be searched for secrets."""


class EditError(JobServerError):
    """The editor failed; the job ends as `failed`."""


class NotOfferedError(EditError):
    """An agent does not offer the option that was to be set."""


class BudgetUsedUpError(EditError):
    """No tokens are left.

    `question` asks whether the job may continue; it is empty if nobody can allow that. `was_heard`: whether the editor
    has received the instruction.
    """

    def __init__(self, reason: str, question: str = "", *, was_heard: bool = True) -> None:
        super().__init__(reason)
        self.question = question
        self.was_heard = was_heard


class DecisionError(JobServerError):
    """A pull request could not be merged or judged; nothing was changed."""


class PullRequestNotFoundError(JobServerError):
    """There is no pull request of this number."""


class RequestRejectedError(JobServerError):
    """The job API rejects a request; nothing was recorded. `status` is that of the answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class RateLimitExceededError(RequestRejectedError):
    """The project has used its hourly quota. `retry_after` is in whole seconds."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"too many requests; try again in {retry_after} s", 429)
        self.retry_after = retry_after
