"""What can go wrong in the job server.

JobServerError            words for whoever runs the server
├── GitError              git ended with an error; its words are kept, its addresses are not
├── EditError             the editor could not do its work: the job fails with this reason
└── MergeError            a pull request could not be merged: the page says why
"""


class JobServerError(Exception):
    """Base of all errors the job server raises on purpose."""


class GitError(JobServerError):
    """A git command failed."""


class EditError(JobServerError):
    """The editor failed; the job ends as `failed`."""


class MergeError(JobServerError):
    """A pull request could not be merged; nothing was changed."""
