"""Renders users, channels and messages as Slack's API and events do."""

import hashlib
import re
from collections.abc import Callable
from urllib.parse import quote

from bot.workspace.model.app_config import AppConfig
from bot.workspace.model.entities import Channel, File, Json, Message, User
from bot.workspace.model.state import State
from bot.workspace.model.text import unescape

FILES_PATH = "/files-pri"
_REFERENCE = re.compile(r"<([^<>]+)>")


def rich_text_of(text: str) -> list[Json]:
    """Returns the blocks for a person's message: a section of texts, users, channels, broadcasts and links."""
    elements: list[Json] = []
    position = 0
    for match in _REFERENCE.finditer(text):
        _add_text(elements, text[position : match.start()])
        elements.append(_element(match.group(1)))
        position = match.end()
    _add_text(elements, text[position:])
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": _block_id(text), "elements": [section]}]


def _add_text(elements: list[Json], text: str) -> None:
    if text:
        elements.append({"type": "text", "text": unescape(text)})


def _element(reference: str) -> Json:
    target, _, label = reference.partition("|")
    match target[:1]:
        case "@":
            return {"type": "user", "user_id": target[1:]}
        case "#":
            return {"type": "channel", "channel_id": target[1:]}
        case "!" if target.startswith("!subteam^"):
            return {"type": "usergroup", "usergroup_id": target.removeprefix("!subteam^")}
        case "!":
            return {"type": "broadcast", "range": target[1:]}
    link: Json = {"type": "link", "url": unescape(target)}
    if label:
        link["text"] = unescape(label)
    return link


def _block_id(text: str) -> str:
    """Returns an id that depends only on the text, so that a message always looks the same."""
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:5]


class Renderer:
    """Renders the state as Slack's JSON for one app.

    Args:
        state: The workspace.
        app: The app.
        origin: Returns the workspace's own address, for URLs of files.
    """

    def __init__(self, state: State, app: AppConfig, origin: Callable[[], str]) -> None:
        self._state = state
        self._app = app
        self.origin = origin

    def user(self, user: User) -> Json:
        body: Json = {
            "id": user.id,
            "team_id": user.team_id,
            "name": user.name,
            "deleted": False,
            "real_name": user.real_name,
            "profile": {"real_name": user.real_name, "display_name": user.name},
            "is_restricted": user.is_restricted,
            "is_ultra_restricted": user.is_ultra_restricted,
            "is_bot": user.is_bot,
            "is_workflow_bot": False,
        }
        if user.id == self._app.bot_user_id:
            body["profile"] |= {"api_app_id": self._app.app_id, "bot_id": self._app.bot_id}
        return body

    def channel(self, channel: Channel) -> Json:
        if channel.is_im:
            return {"id": channel.id, "created": channel.created, "is_im": True, "user": channel.user}
        return {
            "id": channel.id,
            "name": channel.name,
            "is_channel": not channel.is_private,
            "is_group": channel.is_private,
            "is_im": False,
            "is_private": channel.is_private,
            "created": channel.created,
            "is_archived": channel.is_archived,
            "is_shared": channel.is_ext_shared,
            "is_ext_shared": channel.is_ext_shared,
            "is_member": self._app.bot_user_id in channel.members,
        }

    def message(self, message: Message, *, metadata: bool = False) -> Json:
        """Returns a message as in histories, answers and events; the first one of a thread has the counts."""
        body: Json = {"type": "message", "user": message.user, "text": message.text, "ts": message.ts}
        body |= _given(subtype=message.subtype, client_msg_id=message.client_msg_id, inviter=message.inviter)
        body["team"] = self._team_of(message.user)
        if message.bot_id:
            body |= {"bot_id": message.bot_id, "app_id": message.app_id}
        if message.bot_id == self._app.bot_id:
            body["bot_profile"] = self.bot_profile() | {"team_id": self._state.team.id}
        body |= _given(blocks=self._blocks(message), attachments=message.attachments)
        if message.files:
            body |= {"files": [self._file_of(message, file) for file in message.files], "upload": False}
        if message.edited_ts:
            body["edited"] = {"user": message.edited_by, "ts": message.edited_ts}
        if message.reactions:
            body["reactions"] = [
                {"name": name, "users": list(users), "count": len(users)} for name, users in message.reactions.items()
            ]
        if metadata and message.metadata is not None:
            body["metadata"] = message.metadata
        return body | self._thread_fields(message)

    def file(self, file: File) -> Json:
        """Returns a file as in ``files.info`` and messages."""
        name = quote(file.name)
        url = f"{self.origin()}{FILES_PATH}/{self._state.team.id}-{file.id}/download/{name}"
        return {
            "id": file.id,
            "name": file.name,
            "title": file.name,
            "mimetype": self._state.files.kind(file),
            "size": file.size,
            "mode": "hosted",
            "url_private": url,
            "url_private_download": url,
            "permalink": f"{self.origin()}/files/{file.id}/{name}",
            "file_access": "visible",
        }

    def permalink(self, message: Message) -> str:
        """Returns a message's permalink; a reply's opens its thread."""
        link = f"{self.origin()}/archives/{message.channel}/p{message.ts.replace('.', '')}"
        if message.is_reply and message.thread_ts:
            link += f"?thread_ts={quote(message.thread_ts)}&cid={message.channel}"
        return link

    def forwarded(self, message: Message) -> Json:
        """Returns the attachment with a message that somebody shares: its text, blocks, files and origin."""
        shown, author = self.message(message), self._state.users[message.user]
        attachment: Json = {
            "ts": message.ts,
            "is_msg_unfurl": True,
            "is_share": True,
            "channel_id": message.channel,
            "author_id": message.user,
            "author_name": author.real_name,
            "from_url": self.permalink(message),
            "text": message.text,
            "fallback": f"[{message.ts}] {author.name}: {message.text}",
        }
        if blocks := shown.get("blocks"):
            place = {"team": self._state.team.id, "channel": message.channel, "ts": message.ts}
            attachment["message_blocks"] = [{**place, "message": {"blocks": blocks}}]
        return attachment | ({"files": shown["files"]} if "files" in shown else {})

    def _file_of(self, message: Message, file: File) -> Json:
        """Returns a message's file. In a channel shared with another organization, only ``files.info`` has the rest."""
        channel = self._state.channels[message.channel]
        if channel.is_ext_shared:
            return {"id": file.id, "mode": "file_access", "file_access": "check_file_info"}
        return self.file(file)

    def _thread_fields(self, message: Message) -> Json:
        conversation = self._state.conversation(self._state.channels[message.channel])
        if message.is_reply and message.thread_ts:
            root = conversation.get(message.thread_ts)
            fields: Json = {"thread_ts": message.thread_ts}
            if root:
                fields["parent_user_id"] = root.user
            if message.subtype == "thread_broadcast" and root:
                fields["root"] = self.message(root)
            return fields
        replies = conversation.replies(message.ts)
        if not replies:
            return {}
        return {"thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts}

    def bot_profile(self) -> Json:
        return {
            "id": self._app.bot_id,
            "app_id": self._app.app_id,
            "user_id": self._app.bot_user_id,
            "name": self._app.display_name,
        }

    def _team_of(self, user: str) -> str:
        found = self._state.users.get(user)
        return found.team_id if found else self._state.team.id

    def _blocks(self, message: Message) -> list[Json] | None:
        """Returns an app's own blocks, or those that Slack's composer makes of a person's message."""
        if message.blocks is not None or message.bot_id or message.subtype in {"channel_join", "channel_leave"}:
            return message.blocks
        return rich_text_of(message.text) if message.text and message.subtype != "tombstone" else None


def _given(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
