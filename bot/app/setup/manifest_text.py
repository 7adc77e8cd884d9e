"""The Slack app's manifest: manifest.yml, changed for a mode, a command and fewer features."""

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bot.app.settings.features import Feature, scopes_and_events
from bot.errors import ConfigError
from bot.runtime.http.proxies import is_this_machine

EVENTS_PATH = "/slack/events"
_COMMAND = re.compile(r"/[\w.-]{1,31}")
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+[A-Za-z0-9/._~-]*")


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
    """Returns the manifest in YAML; by default manifest.yml to the letter."""
    if choices == ManifestChoices():
        return template()
    return yaml.safe_dump(manifest_for(choices), sort_keys=False, allow_unicode=True, width=1000)


def manifest_for(choices: ManifestChoices) -> dict[str, Any]:
    """Returns the manifest."""
    manifest: dict[str, Any] = yaml.safe_load(template())
    scopes, settings, features = manifest["oauth_config"]["scopes"], manifest["settings"], manifest["features"]
    events, (command,), url = settings["event_subscriptions"], features["slash_commands"], choices.request_url
    left_out = scopes_and_events(choices.without)
    for names in (*scopes.values(), events["bot_events"]):
        names[:] = [name for name in names if name not in left_out]
    if not scopes["bot_optional"]:
        del scopes["bot_optional"]
    if Feature.DIRECT_MESSAGES in choices.without:
        features["app_home"]["messages_tab_read_only_enabled"] = True
    command["command"] = choices.command
    if url:
        command["url"] = events["request_url"] = settings["interactivity"]["request_url"] = url
        settings["socket_mode_enabled"] = False
    return manifest


def template() -> str:
    """Returns manifest.yml: the package's own or, in a checkout, the one at the top level."""
    packaged = files("bot") / "manifest.yml"
    path = packaged if packaged.is_file() else Path(__file__).parents[3] / "manifest.yml"
    return path.read_text(encoding="utf-8")


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
