"""Which workflows start when a job's branch is pushed."""

import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.setup_check import starts_at_push

BRANCH = "pagehand/0123456789abcdef"


@pytest.mark.parametrize(
    ("on", "starts"),
    [
        ("on: push", True), ("on: [pull_request, push]", True), ("'on': push", True), ("on:\n  push:", True),
        ("on: {push: {branches: [main]}}", False), ("on: {push: {branches: main}}", False),
        ("on: {push: {branches: ['**']}}", True), ("on: {push: {branches: ['*']}}", False),
        ("on: {push: {branches: ['*/*']}}", True), ("on: {push: {branches: ['pagehand/**']}}", True),
        ("on: {push: {branches: ['**', '!pagehand/**']}}", False), ("on: {push: {branches: ['!x', '**']}}", True),
        ("on: {push: {branches-ignore: ['pagehand/**']}}", False), ("on: {push: {branches-ignore: [main]}}", True),
        ("on: {push: {tags: ['v*']}}", False), ("on: {push: {paths: ['src/**']}}", True), ("on: create", True),
        ("on: pull_request", False), ("on: {workflow_dispatch: }", False), ("name: x", False),
        ("on: {push: {branches: ['page[a-h]and/*']}}", True), ("on: {push: {branches: ['pageha?nd/?0*']}}", True),
        ("on: {push: {branches: ['[']}}", False), ("on: {push: {branches: []}}", False), ("on: {push: null}", True),
    ],
)  # fmt: skip
def test_workflow_triggers_are_understood(on: str, starts: bool) -> None:  # noqa: FBT001
    """As in GitHub's documentation."""
    assert starts_at_push(f"{on}\njobs: {{}}\n", BRANCH) is starts


@given(st.text(max_size=200))
def test_any_workflow_is_read_or_refused_with_a_reason(text: str) -> None:
    """A repository may have anything in there."""
    for whole in (text, f"on: {text}", f"on: {{push: {{branches: ['{text}']}}}}"):
        with contextlib.suppress(ValueError):
            assert starts_at_push(whole, BRANCH) in {True, False}


def test_the_worst_pattern_is_matched_in_time() -> None:
    """Many wildcards are taken for a match."""
    begin = time.process_time()
    assert starts_at_push(f"on: {{push: {{branches: ['{'**a' * 500}']}}}}", BRANCH)
    assert not starts_at_push(f"on: {{push: {{branches: ['{'*e' * 500}x']}}}}", BRANCH)
    assert time.process_time() - begin < 2
