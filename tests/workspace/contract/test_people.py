"""How the app sees people (guests, admins, outsiders, groups) and channels, and the scopes for that."""

from dataclasses import replace

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from support.worlds.workspace_world import client_of, refused, running

from bot.workspace import AppConfig, User, WorkspaceServer
from bot.workspace.model.app_config import DEFAULT_SCOPES


async def test_guests_admins_and_outsiders_can_be_distinguished(
    workspace: WorkspaceServer, client: AsyncWebClient
) -> None:
    single = User("U0UMA0001", "uma", "Uma Lee", "T0LOCAL01", is_restricted=True, is_ultra_restricted=True)
    workspace.state.add_user(single)
    keys = ("is_admin", "is_restricted", "is_ultra_restricted", "team_id")
    found = {}
    for name in ("ana", "ben", "gia", "emil", "uma"):
        user = (await client.users_info(user=workspace.people[name].id))["user"]
        found[name] = tuple(user[key] for key in keys)
    assert found == {
        "ana": (True, False, False, "T0LOCAL01"),
        "ben": (False, False, False, "T0LOCAL01"),
        "gia": (False, True, False, "T0LOCAL01"),
        "emil": (False, False, False, "T0PARTNER"),
        "uma": (False, True, True, "T0LOCAL01"),
    }


async def test_user_groups_and_their_members(workspace: WorkspaceServer, client: AsyncWebClient) -> None:
    members = [workspace.people["ana"].id, workspace.people["ben"].id]
    (bare,) = (await client.usergroups_list())["usergroups"]
    assert (bare["id"], bare["handle"], "users" in bare) == ("S0WRITERS", "writers", False)
    assert (await client.usergroups_users_list(usergroup="S0WRITERS"))["users"] == members
    assert (await refused(client.usergroups_users_list(usergroup="S0NONE")))["error"] == "no_such_subteam"


async def test_a_group_is_mentioned_by_its_handle(workspace: WorkspaceServer) -> None:
    said = await workspace.people["ana"].say("docs", "ask @writers, or @nobody.")
    assert said.text == "ask <!subteam^S0WRITERS>, or @nobody."


async def test_kinds_of_channels(workspace: WorkspaceServer, client: AsyncWebClient) -> None:
    keys = ("is_private", "is_im", "is_shared", "is_ext_shared", "is_member")
    await workspace.people["ana"].invite("leads", "pagehand")
    found = {}
    for name in ("docs", "general", "leads", "partners"):
        info = (await client.conversations_info(channel=workspace.channels[name].id))["channel"]
        found[name] = tuple(info[key] for key in keys)
    assert found == {
        "docs": (False, False, False, False, True),
        "general": (False, False, False, False, False),
        "leads": (True, False, False, False, True),
        "partners": (False, False, True, True, True),
    }
    direct = (await client.conversations_info(channel=workspace.channels["ana"].id))["channel"]
    assert (direct["is_im"], direct["user"]) == (True, workspace.people["ana"].id)


@pytest.mark.parametrize(
    ("scope", "method", "arguments"),
    [
        ("channels:read", "conversations.info", {"channel": "C0DOCS001"}),
        ("groups:read", "conversations.info", {"channel": "C0LEADS01"}),
        ("im:read", "conversations.info", {"channel": "D00ANA0001"}),
        ("channels:history", "conversations.replies", {"channel": "C0DOCS001", "ts": "1.0"}),
        ("im:history", "conversations.history", {"channel": "D00ANA0001"}),
        ("users:read", "users.info", {"user": "U0ANA0001"}),
        ("usergroups:read", "usergroups.list", {}),
        ("usergroups:read", "usergroups.users.list", {"usergroup": "S0WRITERS"}),
        ("files:read", "files.info", {"file": "F0"}),
        ("chat:write", "chat.postMessage", {"channel": "U0ANA0001", "text": "x"}),
    ],
)
async def test_a_missing_scope_for_people_is_named(scope: str, method: str, arguments: dict[str, str]) -> None:
    async with running(replace(AppConfig(), scopes=DEFAULT_SCOPES - {scope})) as workspace:
        workspace.channels.add_bot("leads")
        client = client_of(workspace)
        answer = await refused(client.api_call(method, params=arguments))
        assert (answer["error"], answer["needed"], scope in answer["provided"].split(",")) == (
            "missing_scope",
            scope,
            False,
        )
