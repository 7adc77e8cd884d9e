"""The search for secrets detects them."""

import logging
from pathlib import Path

import pytest
from support.oracles.leaks import SecretWatch, faults_in_logs

from bot.runtime.logging import JsonFormatter
from bot.workspace import WorkspaceServer


def found(watch: SecretWatch) -> int:
    """Returns the number of records found, which are not held against this test."""
    records, watch.found = watch.found, []
    return len(records)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
def test_a_secret_in_a_log_record_of_any_level_is_found(
    log_watch: SecretWatch, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    logging.getLogger("bot.anything").log(level, "see %s", "planted-secret-of-this-test")
    assert found(log_watch) == 1
    assert len(caplog.records) == (level >= logging.WARNING), "others hear more than the levels let through"


def test_secrets_a_workspace_sends_out_are_found(log_watch: SecretWatch) -> None:
    server = WorkspaceServer()
    tokens = server.credentials
    given = (tokens.bot_token, tokens.app_token, tokens.signing_secret, server.socket_mode.open_url())
    for secret in given:
        logging.getLogger("bot.anything").debug(secret)
    assert found(log_watch) == len(given)


@pytest.mark.parametrize("margin", ["", "    "])
def test_secrets_in_process_output_are_found(tmp_path: Path, margin: str) -> None:
    """Python prints a traceback without indentation, our log with one."""
    log = tmp_path / "a.log"
    assert faults_in_logs([], ["secret"]) == ["nothing was logged"]
    log.write_text("all is well\n")
    assert faults_in_logs([log], ["secret"]) == []
    told = f"ERROR it failed\n{margin}Traceback (most recent call last):\n{margin}  File 1\n"
    log.write_text(f"asked with c2VjcmV0LW9mLXRoaXM=\n{told}")
    leak, traceback = faults_in_logs([log], ["secret-of-this"])
    assert "a.log holds" in leak
    assert traceback.startswith(f"a.log: ERROR it failed\n{margin}Traceback")


def test_secrets_in_json_process_output_are_found(tmp_path: Path) -> None:
    """A secret is found in JSON's escaping, and a traceback in its part of the line."""
    secret, log = 'a "secret"\\', tmp_path / "a.log"
    record = logging.LogRecord("bot", logging.ERROR, "", 0, f"see {secret}", (), (KeyError, KeyError("x"), None))
    log.write_text(JsonFormatter([]).format(record) + "\n")
    leak, traceback = faults_in_logs([log], [secret])
    assert "a.log holds" in leak
    assert traceback == "a.log: KeyError: 'x'"
