"""What GitHub's refusals of git mean, how long its rate limits last, and what a killed server left."""

import os
import tempfile
import time
from pathlib import Path

import pytest

from bot.jobserver.pull_requests.github.api import seconds_to_wait
from bot.jobserver.repository.credentials import remove_abandoned, speaks_to_remote
from bot.jobserver.repository.git import explain

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (("remote: error: GH013: Repository rule violations found for refs/heads/pagehand/1.\nremote: \n"
         "remote: - Commits must have verified signatures.\n"), "Commits must have verified signatures."),
        ("remote: error: File big.bin is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB", "larger than"),
        (("! [remote rejected] a -> a (refusing to allow a Personal Access Token to create or update workflow "
         "`.github/workflows/x.yml` without `workflow` scope)"), "permission Workflows"),
        ("fatal: unable to access 'the repository/': The requested URL returned error: 429", "try again later"),
        ("fatal: unable to access 'the repository/': The requested URL returned error: 503", "an internal error"),
        ("error: RPC failed; HTTP 301 curl 22 The requested URL returned error: 301", "another address now"),
        ("fatal: unable to access 'the repository/': Could not resolve host: git.example.com", "cannot be reached"),
    ],
)  # fmt: skip
def test_the_hosts_message_is_explained(errors: str, words: str) -> None:
    assert words in (explain(errors) or "")


def test_unknown_messages_are_quoted_from_git_and_long_ones_cut() -> None:
    assert explain("fatal: something new") is None
    assert len(explain("remote: error: GH006: " + "no " * 10_000) or "") < 600


@pytest.mark.parametrize(
    ("status", "said", "headers", "seconds"),
    [
        (403, "Forbidden", {}, None),
        (404, "rate limit", {"retry-after": "5"}, None),
        (403, "You have exceeded a secondary rate limit", {}, 60),
        (403, "x", {"retry-after": "7", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000100"}, 7),
        (403, "x", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000100"}, 101),
        (403, "x", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1600000000"}, 1),
        (403, "x", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9e99"}, 3601),
        (429, "x", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nan"}, 60),
        (429, "x", {"x-ratelimit-remaining": "0"}, 60),
        (429, "", {}, 60),
    ],
)
def test_retry_delays_are_parsed(status: int, said: str, headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(status, said, headers, now=NOW) == seconds


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("push", "--quiet"), True),
        (("ls-remote", "--", "x"), True),
        (("--git-dir=/x", "fetch"), True),
        (("commit", "-m", "push"), False),
        ((), False),
    ],
)
def test_credentials_are_used_only_for_the_remote(arguments: tuple[str, ...], *, expected: bool) -> None:
    assert speaks_to_remote(arguments) is expected


def test_leftovers_of_a_killed_server_are_eventually_removed() -> None:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None  # noqa: S108
    old, new = (Path(tempfile.mkdtemp(prefix="pagehand-git-", dir=place)) for _ in range(2))
    (old / "credentials").write_text("https://x:planted-secret@github.com\n")
    long_ago = time.time() - 2 * 3600
    os.utime(old, (long_ago, long_ago))
    try:
        remove_abandoned()
        assert (old.exists(), new.exists()) == (False, True)
    finally:
        new.rmdir()
