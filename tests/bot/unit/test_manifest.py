"""The app's manifest: valid by Slack's own schema, with exactly what the listeners and calls use."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft7Validator
from multidict import CIMultiDict
from referencing import Registry, Resource

from bot.app.checks.manifest import manifest_faults
from bot.app.edges import check_scopes
from bot.app.manifest import ManifestChoices, manifest_for, manifest_text
from bot.cli.main import main
from bot.errors import CannotStart
from bot.notices.said import ButtonId
from bot.slack.receiving.listeners import buttons, events, messages, openings
from bot.slack.rendering import blocks
from bot.slack.rendering.home import HOME_RETRY, HOME_STOP
from bot.slack.sending.authorization import NEEDED_SCOPES, granted_scopes

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT.parent / "shared" / "data" / "manifest-schema"
VERSIONS = ("1.0.0", "2.0.0")
USED = {
    "auth.test": None,
    "chat.postMessage": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "conversations.join": "channels:join",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "reactions.add": "reactions:write",
    "reactions.remove": "reactions:write",
    "apps.connections.open": None,
    "chat.getPermalink": None,
    "bots.info": "users:read",
    "users.conversations": "channels:read",
    "users.info": "users:read",
    "conversations.info": "channels:read",
    "files.completeUploadExternal": "files:write",
    "files.getUploadURLExternal": "files:write",
    "files.info": "files:read",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "views.open": None,
    "views.update": None,
    "views.publish": None,
}
"""The scope that each method needs for a bot token (docs.slack.dev); in private channels those of groups."""
EVENT_SCOPES = {
    "app_mention": "app_mentions:read",
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "reaction_added": "reactions:read",
    "app_home_opened": None,
    "channel_id_changed": "groups:read",
    "member_joined_channel": "channels:read",
}


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "manifest.yml").read_text())
    return loaded


def called_methods() -> set[str]:
    """The Web API methods in the source, found by the SDK's names for them."""
    source = "\n".join(path.read_text() for path in (ROOT / "bot" / "slack").rglob("*.py"))
    names = set(
        re.findall(
            r"client\.((?:chat|conversations|reactions|auth|apps|bots|users|usergroups|views|files)_\w+)\(", source
        )
    )
    if "files_upload_v2" in names:  # the SDK's own name for two of Slack's
        names = names - {"files_upload_v2"} | {"files_getUploadURLExternal", "files_completeUploadExternal"}
    nested = {"apps_connections_": "apps.connections_", "usergroups_users_": "usergroups.users_"}
    for name, path in nested.items():
        names = {found.replace(name, path) for found in names}
    return {re.sub(r"_(\w+)$", r".\1", name) for name in names}


VARIANTS = (
    ManifestChoices(),
    ManifestChoices(address="https://pagehand.example.org", command="/write"),
    ManifestChoices(address="https://example.org/pagehand/slack/events"),
)


def made(choices: ManifestChoices) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(manifest_text(choices))
    assert loaded == manifest_for(choices)
    return loaded


@pytest.fixture(scope="module")
def schema() -> Draft7Validator:
    whole = json.loads((SCHEMA / "manifest.schema.json").read_text())
    references = set(re.findall(r'"\$ref": "([^"#]+)"', json.dumps(whole)))
    resources = []
    for version in VERSIONS:
        contents = json.loads((SCHEMA / f"manifest.schema.{version}.json").read_text())
        uri = next(reference for reference in references if reference.endswith(f"manifest.schema.{version}.json"))
        resources.append((uri, Resource.from_contents(contents)))
    registry: Registry[Any] = Registry().with_resources(resources)
    return Draft7Validator(whole, registry=registry)


@pytest.mark.skipif(not SCHEMA.is_dir(), reason="Slack's manifest schema is not beside this repository")
@pytest.mark.parametrize("choices", VARIANTS)
def test_the_manifest_is_valid_by_slacks_schema(schema: Draft7Validator, choices: ManifestChoices) -> None:
    assert [error.message for error in schema.iter_errors(made(choices))] == []


def test_the_default_manifest_equals_the_file_at_the_top() -> None:
    printed = CliRunner().invoke(main, ["manifest"])
    assert printed.output == (ROOT / "manifest.yml").read_text(encoding="utf-8")


def test_over_http_every_request_url_is_the_same(manifest: dict[str, Any]) -> None:
    choices = ManifestChoices(command="/write", address="https://pagehand.example.org/")
    over_http = made(choices)
    assert list(manifest_faults(over_http, choices, "A1")) == []
    (command,) = over_http["features"]["slash_commands"]
    assert command.pop("url") == "https://pagehand.example.org/slack/events"
    assert command["should_escape"] is True
    command["command"] = "/docs"
    over_http["settings"]["socket_mode_enabled"] = True
    for part in ("event_subscriptions", "interactivity"):
        del over_http["settings"][part]["request_url"]
    assert over_http == manifest


def test_only_what_pagehand_can_do_without_is_optional(manifest: dict[str, Any]) -> None:
    optional = set(manifest["oauth_config"]["scopes"]["bot_optional"])
    assert optional < {scope.name for scope in NEEDED_SCOPES if not scope.required}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--http", "http://pagehand.example.org"], "must begin with https://"),
        (["--http", "pagehand.example.org"], "must be a URL"),
        (["--http", "https://example.org/?x: y"], "must be a URL"),
        (["--command", "docs"], "must be a slash and one word"),
        (["--command", "/docs: x"], "must be a slash and one word"),
    ],
)
def test_values_slack_would_refuse_are_refused_with_a_reason(arguments: list[str], words: str) -> None:
    refused = CliRunner().invoke(main, ["manifest", *arguments])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert words in refused.output


def test_the_manifests_scopes_match_the_calls_and_events(manifest: dict[str, Any]) -> None:
    assert called_methods() <= set(USED)
    needed = {USED[method] for method in called_methods()} - {None}
    needed |= {EVENT_SCOPES[event] for event in manifest["settings"]["event_subscriptions"]["bot_events"]} - {None}
    needed |= {"commands", "groups:history", "groups:read"}
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == needed


def test_the_manifests_events_match_the_listeners(manifest: dict[str, Any]) -> None:
    subscribed = {name.split(".")[0] for name in manifest["settings"]["event_subscriptions"]["bot_events"]}
    assert subscribed == {*messages.EVENTS, events.REACTION, events.ID_CHANGED, events.JOINED, events.HOME_OPENED}


def test_every_button_has_a_listener(manifest: dict[str, Any]) -> None:
    assert manifest["settings"]["interactivity"]["is_enabled"] is True
    source = Path(blocks.__file__).read_text(encoding="utf-8")
    made = set(re.findall(r'^[A-Z_]+ = "([a-z_]+)"$', source, re.MULTILINE)) | set(blocks.CHOOSE_PROJECT_BUTTONS)
    made |= {*ButtonId, *blocks.SEND_EXAMPLES, *blocks.SEND_ANSWERS}
    others = {blocks.FOLLOW_UP, blocks.HAND_OVER, blocks.FILL_IN_ANSWER, ButtonId.OPEN_FORM, ButtonId.MAKE_CHANGE}
    on_home = {HOME_RETRY, HOME_STOP}
    assert {*buttons.RECORDED, *buttons.SAYING_FOLLOW_UPS, *buttons.LINKS, *others} - on_home == made


def test_the_manifests_shortcuts_match_the_listeners(manifest: dict[str, Any]) -> None:
    named = {(shortcut["type"], shortcut["callback_id"]) for shortcut in manifest["features"]["shortcuts"]}
    assert named == {("message", openings.HAND_TO_PAGEHAND), ("global", openings.NEW_TASK)}


def test_every_requested_scope_has_a_purpose() -> None:
    text = (ROOT / "manifest.yml").read_text(encoding="utf-8")
    listed = re.findall(r"^      - ([a-z_:.]+)( # .+)?$", text, re.MULTILINE)
    assert listed
    assert [name for name, comment in listed if not comment] == []


def test_direct_message_events_require_the_messages_tab(manifest: dict[str, Any]) -> None:
    """If the Messages tab is read-only, neither messages nor slash commands can be sent from it."""
    scopes, settings = manifest["oauth_config"]["scopes"]["bot"], manifest["settings"]["event_subscriptions"]
    home = manifest["features"]["app_home"]
    writable = home["messages_tab_read_only_enabled"] is False
    assert home["messages_tab_enabled"] is True, "private notices can be direct messages"
    assert ("im:history" in scopes) is ("message.im" in settings["bot_events"]) is writable


ALL = frozenset(scope.name for scope in NEEDED_SCOPES)
REQUIRED = sorted(scope.name for scope in NEEDED_SCOPES if scope.required)


def test_the_scopes_match_the_manifest() -> None:
    manifest = yaml.safe_load((Path(__file__).parents[3] / "manifest.yml").read_text(encoding="utf-8"))
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == [scope.name for scope in NEEDED_SCOPES]


def test_no_message_names_a_scope_missing_from_the_manifest() -> None:
    """A person asked to grant it would look for it in vain. One scope is the app-level token's own."""
    modules = (Path(__file__).parents[3] / "bot" / "slack").rglob("*.py")
    texts = [module.read_text(encoding="utf-8") for module in modules]
    named = {name for text in texts for name in re.findall(r"\b[a-z_]+:(?:read|write|history|join)\b", text)}
    assert named <= {*ALL, "connections:write"}


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ({"x-oauth-scopes": "chat:write,commands"}, frozenset({"chat:write", "commands"})),
        ({"X-OAuth-Scopes": "chat:write, commands"}, frozenset({"chat:write", "commands"})),
        ({"X-OAuth-Scopes": ""}, None),
        ({"X-OAuth-Scopes": "<!channel>"}, None),
        ({}, None),
    ],
)
def test_an_answer_lists_the_granted_scopes(headers: dict[str, str], names: frozenset[str] | None) -> None:
    assert granted_scopes(CIMultiDict(headers)) == names


def test_scopes_that_identify_people_and_channels_are_required() -> None:
    """Whatever is not known to be allowed is refused: without these, everything would be."""
    assert REQUIRED == ["channels:history", "channels:read", "chat:write", "commands", "users:read"]


@pytest.mark.parametrize("name", REQUIRED)
def test_without_a_vital_scope_the_bot_does_not_start(name: str) -> None:
    with pytest.raises(CannotStart) as caught:
        check_scopes(ALL - {name, "reactions:write"}, ())
    said = str(caught.value)
    assert f"Slack has not granted the scope {name}. Without it, " in said
    assert "Slack has not granted the scope reactions:write. Without it, replies get no marks." in said
    assert "api.slack.com/apps" in said
    assert "Reinstall to Workspace" in said
    assert not [other for other in ALL - {name, "reactions:write"} if other in said]


@pytest.mark.parametrize("name", sorted(ALL - set(REQUIRED)))
def test_without_an_optional_scope_the_bot_starts(name: str) -> None:
    check_scopes(ALL - {name}, ())
