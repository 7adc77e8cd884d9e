"""The scopes that Pagehand needs: those of the manifest, and what is reported if one is missing."""

import re
from pathlib import Path

import pytest
import yaml
from multidict import CIMultiDict

from bot.app.settings.features import Feature, scopes_and_events
from bot.app.startup import check_scopes
from bot.errors import CannotStart
from bot.runtime.health.report import ComponentStatus, Health
from bot.slack.sending.scopes import NEEDED_SCOPES, MissingScopes, granted_scopes

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
        check_scopes(ALL - {name, "reactions:write"}, MissingScopes(), ())
    said = str(caught.value)
    assert f"Slack has not granted the scope {name}. Without it, " in said
    assert "Slack has not granted the scope reactions:write. Without it, replies get no marks." in said
    assert "api.slack.com/apps" in said
    assert "Reinstall to Workspace" in said
    assert not [other for other in ALL - {name, "reactions:write"} if other in said]


@pytest.mark.parametrize("name", sorted(ALL - set(REQUIRED)))
def test_without_an_optional_scope_the_bot_warns_once_and_starts(name: str, caplog: pytest.LogCaptureFixture) -> None:
    missing = MissingScopes()
    check_scopes(ALL - {name}, missing, ())
    missing.add([name])
    assert missing.names == (name,)
    (record,) = caplog.records
    assert name in record.message
    assert "Reinstall to Workspace" in record.message


def test_features_left_out_on_purpose_are_not_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    left_out = scopes_and_events([Feature.FILES, Feature.REACTIONS])
    missing = MissingScopes(left_out)
    check_scopes(ALL - left_out, missing, left_out)
    missing.add(["files:read"])  # as a call to Slack shows
    assert (missing.names, caplog.text) == ((), "")
    check_scopes(ALL - left_out - {"im:history"}, missing, left_out)
    assert missing.names == ("im:history",)


def test_the_health_names_missing_scopes_as_a_warning() -> None:
    missing = MissingScopes()
    health = Health(lambda: [ComponentStatus("outbox")], [missing.warning])
    assert health.report()["warnings"] == []
    missing.add(["reactions:write", "groups:history"])
    state = health.report()
    assert state["ok"] is True
    assert state["warnings"] == [missing.warning()]
    assert "Slack has not granted groups:history, reactions:write." in missing.warning()
