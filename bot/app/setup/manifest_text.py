"""The Slack app's manifest as text: manifest.yml, changed for a mode, a command and fewer features."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from bot.app.settings.features import Feature, scopes_and_events
from bot.errors import ConfigError
from bot.runtime.http.proxies import is_this_machine

EVENTS_PATH = "/slack/events"
_COMMAND = re.compile(r"/[\w.-]{1,31}")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+[A-Za-z0-9/._~-]*")
_ENTRY = re.compile(r" +- ([\w.:]+)(?: #.*)?$")
_OPTIONAL = "bot_optional:"


@dataclass(frozen=True)
class ManifestChoices:
    """What a manifest is for.

    Attributes:
        command: The slash command.
        address: Where Slack sends signed HTTP requests: `https://host`, or the whole request URL. Empty: Socket Mode.
        without: The features to leave out.
    """

    command: str = "/docs"
    address: str = ""
    without: frozenset[Feature] = frozenset()

    def __post_init__(self) -> None:
        faults = [*_command_faults(self.command), *_address_faults(self.address)]
        if faults:
            raise ConfigError(faults)

    @property
    def request_url(self) -> str:
        """The URL for all that Slack sends; empty with Socket Mode."""
        address = self.address.rstrip("/")
        return address if not address or address.endswith(EVENTS_PATH) else f"{address}{EVENTS_PATH}"


def manifest_text(choices: ManifestChoices) -> str:
    """Returns the manifest with its comments, in YAML; by default manifest.yml to the letter."""
    lines = _without(template().splitlines(keepends=True), choices.without)
    text = "".join(lines).replace("- command: /docs\n", f"- command: {choices.command}\n")
    if Feature.DIRECT_MESSAGES in choices.without:
        text = text.replace("messages_tab_read_only_enabled: false", "messages_tab_read_only_enabled: true")
    return _over_http(text, choices.request_url) if choices.address else text


def template() -> str:
    """Returns manifest.yml: the package's own or, in a checkout, the one at the top level."""
    packaged = files("bot") / "manifest.yml"
    path = packaged if packaged.is_file() else Path(__file__).parents[3] / "manifest.yml"
    return path.read_text(encoding="utf-8")


def _without(lines: list[str], without: Collection[Feature]) -> list[str]:
    left_out = scopes_and_events(without)
    kept = [line for line in lines if not ((entry := _ENTRY.match(line)) and entry[1] in left_out)]
    start = next(number for number, line in enumerate(kept) if line.strip() == _OPTIONAL)
    is_empty = not _ENTRY.match(kept[start + 1])
    return kept[: start - 1] + kept[start + 1 :] if is_empty else kept  # the line above is its comment


def _over_http(text: str, url: str) -> str:
    """Returns the manifest for signed requests: a URL for the command, the events, and the interactions."""
    for before, added in (
        ("    - command: .*", f"      url: {url}"),
        ("  event_subscriptions:", f"    request_url: {url}"),
        ("    is_enabled: true.*", f"    request_url: {url}"),
    ):
        text = re.sub(rf"^({before}\n)", rf"\g<1>{added}\n", text, flags=re.MULTILINE)
    text = text.replace("socket_mode_enabled: true", "socket_mode_enabled: false")
    return text.replace(
        "# The manifest of the Slack app, for Socket Mode.", "# The manifest of the Slack app, for HTTP."
    )


def _command_faults(command: str) -> list[str]:
    if _COMMAND.fullmatch(command):
        return []
    return ["the command must be a slash and one word of at most 31 letters, digits, dots, hyphens and underscores"]


def _address_faults(address: str) -> list[str]:
    if not address:
        return []
    if not _URL.fullmatch(address) or not urlsplit(address).hostname:
        return ["the address must be a URL like https://pagehand.example.org, without ? and #"]
    if urlsplit(address).scheme != "https" and not is_this_machine(urlsplit(address).hostname or ""):
        return ["the address must begin with https://: Slack sends to no other"]
    return []
