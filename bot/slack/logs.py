"""Loggers for Slack's libraries: they would print messages, and addresses that let their holder in."""

import logging

_LIBRARIES = ("slack_sdk", "slack_bolt")


def quiet_logger(name: str) -> logging.Logger:
    """For handing to a library whose levels are set: it builds its debug lines only at level DEBUG, never from here."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    return logger


def silent_logger(name: str) -> logging.Logger:
    """For the Socket Mode client, whose failures carry the address with its ticket; the receiver tells of them."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.CRITICAL + 1)
    logger.propagate = False
    return logger


def quiet_libraries() -> None:
    """Keeps Slack's libraries at warnings, whatever level the root logger has."""
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
