"""What a code host means when it turns git away, in words that say what to do. Pure.

Source of the phrases: GitHub's documentation of its push errors (GH001 to GH013), and git's http.c and remote-curl.c.
"""

_NOT_LET_IN = (
    "the repository's host does not accept the token or password: make a new token, or check that it has not expired "
    "and that its organisation allows it"
)
_MAY_NOT_WRITE = (
    "the token may not write to the repository: give it, or the App, the permission Contents: read and write for it"
)
IS_SHALLOW = (
    "the repository is a shallow clone, without its whole history: run `git fetch --unshallow` in it, "
    "or set PAGEHAND_JOBSERVER_REPOSITORY to what it was cloned from"
)
_REASONS = (
    (("was archived so it is read-only", "repository is archived"),
     "the repository is archived at its host: nobody can change it until it is unarchived there"),
    (("shallow update not allowed", "shallow roots are not allowed", "from a shallow repository"), IS_SHALLOW),
    (("without `workflow` scope", "without `workflows` permission"),
     ("the change touches workflows of GitHub Actions, which this token may not change; "
     "let a person do that, or give it the permission Workflows")),
    (("GH006", "protected branch"),
     ("the branch is protected at its host: exempt branches that begin with pagehand/ from the protection, "
     "or allow the token's user or App to push to them")),
    (("GH013", "rule violations"),
     ("a rule of the repository forbids it: exempt branches that begin with pagehand/ from the rule, "
     "or add the token's user or App to those who may bypass it")),
    (("GH001", "exceeds GitHub's file size limit"), "a file is larger than the host takes (GitHub: 100 MB)"),
    (("Authentication failed", "could not read Username", "could not read Password"), _NOT_LET_IN),
    (("returned error: 403", "Permission to ", "Write access to repository not granted"), _MAY_NOT_WRITE),
    (("Repository not found", "' not found"),
     "the host shows no such repository: check its address, and that the token or App has access to it"),
    (("returned error: 30", "HTTP 301", "HTTP 302", "HTTP 307", "HTTP 308",
      "unable to update url base from redirection"),
     "the repository has another address now: set PAGEHAND_JOBSERVER_REPOSITORY to it"),
    (("returned error: 429",), "the repository's host lets nothing through for now: try again later"),
    (("returned error: 5",), "the repository's host has a fault of its own: try again later"),
    (("Could not resolve host", "Failed to connect", "Connection refused", "Connection timed out",
      "Connection reset", "Empty reply from server", "early EOF", "unexpected disconnect"),
     "the repository's host cannot be reached: check the network and its address, then try again"),
)  # fmt: skip
_LENGTH = 300


def explain(errors: str) -> str | None:
    """Returns why the host turned git away, with what the host itself said; None where that is not known."""
    for phrases, reason in _REASONS:
        if any(phrase in errors for phrase in phrases):
            said = _said_by_host(errors)
            return f"{reason} (it says: {said})" if said else reason
    return None


def _said_by_host(errors: str) -> str:
    lines = (line.removeprefix("remote:").strip() for line in errors.splitlines() if line.startswith("remote:"))
    said = " ".join(" ".join(line.removeprefix("error:") for line in lines if line.strip("- ")).split())
    return said if len(said) <= _LENGTH else f"{said[: _LENGTH - 1].rstrip()}…"
