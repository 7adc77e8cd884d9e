"""The logging of Slack's libraries, kept quiet: they would log messages, and addresses that let their holder in."""

import logging

_LIBRARIES = ("slack_sdk", "slack_bolt")


def quiet_logger(name: str) -> logging.Logger:
    """Returns a logger at level WARNING to hand to a library, which then does not even build its debug lines."""
    logger = logging.getLogger(name)
    logger.setLevel(logging.WARNING)
    return logger


def silent_logger(name: str) -> logging.Logger:
    """Returns a logger that logs nothing, for the Socket Mode client: its failures carry the address with its ticket,
    and the receiver tells of them.
    """
    logger = logging.getLogger(name)
    logger.setLevel(logging.CRITICAL + 1)
    logger.propagate = False
    return logger


def quiet_libraries() -> None:
    """Sets the loggers of Slack's libraries to WARNING, whatever level the root logger has."""
    for name in _LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
