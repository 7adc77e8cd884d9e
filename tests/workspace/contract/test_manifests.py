"""``apps.manifest.*`` and what they mean for the app's scopes, as Slack documents them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.workspace_world import running

from bot.workspace import WorkspaceServer

MANIFEST: dict[str, Any] = {
    "display_information": {"name": "Docs bot", "background_color": "#112233"},
    "oauth_config": {"scopes": {"bot": ["chat:write", "users:read"]}},
    "settings": {"socket_mode_enabled": True},
}


@pytest.fixture
async def workspace() -> AsyncIterator[WorkspaceServer]:
    async with running(is_installed=False) as workspace:
        yield workspace


def client(workspace: WorkspaceServer, token: str) -> AsyncWebClient:
    return AsyncWebClient(token, base_url=workspace.api_url)


async def call(workspace: WorkspaceServer, method: str, **arguments: Any) -> dict[str, Any]:
    if "manifest" in arguments:
        arguments["manifest"] = json.dumps(arguments["manifest"])
    configuration = client(workspace, workspace.credentials.configuration_token)
    answer = (await configuration.api_call(f"apps.manifest.{method}", json=arguments)).data
    assert isinstance(answer, dict)
    return answer


async def scopes(workspace: WorkspaceServer) -> set[str]:
    answer = await client(workspace, workspace.credentials.bot_token).auth_test()
    return set(answer.headers["X-OAuth-Scopes"].split(","))


async def test_an_app_is_created_then_installed_then_changed_then_reinstalled(workspace: WorkspaceServer) -> None:
    created = await call(workspace, "create", manifest=MANIFEST)
    assert created["app_id"] == workspace.app.app_id
    assert created["credentials"]["signing_secret"] == workspace.credentials.signing_secret
    with pytest.raises(SlackApiError, match="invalid_auth"):
        await scopes(workspace)
    workspace.install()
    assert await scopes(workspace) == {"chat:write", "users:read"}
    more = MANIFEST | {"oauth_config": {"scopes": {"bot": ["chat:write", "files:read"]}}}
    assert (await call(workspace, "update", app_id=created["app_id"], manifest=more))["permissions_updated"] is True
    assert await scopes(workspace) == {"chat:write", "users:read"}
    assert (await call(workspace, "export", app_id=created["app_id"]))["manifest"] == more
    workspace.install()
    assert await scopes(workspace) == {"chat:write", "files:read"}
    assert (await call(workspace, "update", app_id=created["app_id"], manifest=more))["permissions_updated"] is False


async def test_another_app_is_another_one(workspace: WorkspaceServer) -> None:
    first, second = [await call(workspace, "create", manifest=MANIFEST) for _ in range(2)]
    assert first["app_id"] != second["app_id"]
    assert first["credentials"]["signing_secret"] != second["credentials"]["signing_secret"]


@pytest.mark.parametrize(
    ("manifest", "pointer"),
    [
        ({}, "/display_information"),
        ([], "/"),
        (MANIFEST | {"settings": {"interactivity": {"is_enabled": True}}}, "/settings/interactivity"),
        (MANIFEST | {"settings": {"event_subscriptions": {"bot_events": ["x"]}}}, "/settings/event_subscriptions"),
    ],
)
async def test_a_manifest_that_breaks_a_rule_is_refused_with_its_place(
    workspace: WorkspaceServer, manifest: Any, pointer: str
) -> None:
    for method in ("validate", "create"):
        with pytest.raises(SlackApiError) as caught:
            await call(workspace, method, manifest=manifest)
        assert caught.value.response["error"] == "invalid_manifest"
        assert [error["pointer"] for error in caught.value.response["errors"]] == [pointer]
    assert (await call(workspace, "validate", manifest=MANIFEST))["ok"] is True


async def test_only_a_configuration_token_manages_apps(workspace: WorkspaceServer) -> None:
    await call(workspace, "create", manifest=MANIFEST)
    workspace.install()
    with pytest.raises(SlackApiError, match="not_allowed_token_type"):
        await client(workspace, workspace.credentials.bot_token).api_call(
            "apps.manifest.export", json={"app_id": workspace.app.app_id}
        )
    with pytest.raises(SlackApiError, match="invalid_app_id"):
        await call(workspace, "update", app_id="A0OTHER", manifest=MANIFEST)
