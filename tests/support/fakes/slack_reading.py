"""The Slack look-ups before a request is sent, in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.messages import FileContent, SlackFile, ThreadMessage
from bot.domain.people import Account, ChannelInfo, Member
from bot.domain.requests.request import Reply
from bot.errors import ChatError, ChatRejected
from bot.ports.slack import SlackReading


@dataclass
class FakeSlackReading:
    """Slack for reading. Everybody is a member of T1 and every channel is internal, except for what `members` and
    `channels` say; `faults` are raised first, in order, and those in `refused` always, by the look-up or its kind.
    `asked` records the look-ups, `accounts` whose they found. `messages` are those of people, by channel and thread
    ("": outside threads) and by `ts`: as edited, None as written.
    """

    members: dict[str, Member | None] = field(
        default_factory=lambda: {"UEVA": Member("UEVA", "Eva", "T2", is_guest=False)}
    )
    channels: dict[str, ChannelInfo | None] = field(default_factory=dict)
    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    threads: dict[str, list[ThreadMessage]] = field(default_factory=dict)
    files: dict[str, FileContent] = field(default_factory=dict)
    looked_up: dict[str, SlackFile] = field(default_factory=dict)
    faults: list[ChatError] = field(default_factory=list)
    refused: dict[str, ChatError] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    accounts: dict[str, Account] = field(default_factory=dict)
    messages: dict[tuple[str, str], dict[str, Reply | None]] = field(default_factory=dict)

    def known_member(self, person_id: str) -> Member | None:
        return None

    def known_account(self, user_id: str) -> Account | None:
        return self.accounts.get(user_id)

    async def member(self, person_id: str) -> Member:
        self._ask(f"member {person_id}")
        member = self.members.get(person_id, Member(person_id, person_id, "T1", is_guest=False))
        if member is None:
            self.accounts[person_id] = Account.BOT
            raise ChatRejected("user_not_found")
        self.accounts[person_id] = member.account
        return member

    async def members_of(self, group_ids: Collection[str]) -> frozenset[str]:
        self._ask("groups")
        return frozenset[str]().union(*(self.groups.get(group_id, frozenset()) for group_id in group_ids))

    async def channel(self, channel_id: str) -> ChannelInfo:
        self._ask(f"channel {channel_id}")
        ours = ChannelInfo(channel_id, "docs", is_shared_outside=False, is_private=False)
        channel = self.channels.get(channel_id, replace(ours, is_direct=channel_id.startswith("D")))
        if channel is None:
            raise ChatRejected("channel_not_found")
        return channel

    async def thread(
        self, channel_id: str, thread_ts: str, *, after_ts: str = "", before_ts: str = "", limit: int = 51
    ) -> Sequence[ThreadMessage]:
        self._ask(f"thread {thread_ts}")
        said = self.threads.get(thread_ts, [])
        return [each for each in said if each.ts > after_ts and (not before_ts or each.ts < before_ts)][-limit:]

    async def versions(self, channel_id: str, thread_ts: str, *, since_ts: str) -> Mapping[str, Reply | None]:
        self._ask(f"versions {thread_ts or channel_id}")
        if (channel_id, thread_ts) not in self.messages:
            raise ChatRejected("not_in_channel")
        return {ts: now for ts, now in self.messages[channel_id, thread_ts].items() if ts >= since_ts}

    async def look_up(self, file: SlackFile) -> SlackFile:
        if not file.must_look_up:
            return file
        self._ask(f"look up {file.id}")
        if file.id not in self.looked_up:
            raise ChatRejected("file_not_found")
        return self.looked_up[file.id]

    async def read(self, file: SlackFile, *, max_bytes: int) -> FileContent:
        self._ask(f"file {file.id}")
        if file.id not in self.files:
            raise ChatRejected("file_not_found")
        content = self.files[file.id]
        return replace(content, data=content.data[:max_bytes], complete=len(content.data) <= max_bytes)

    @property
    def ports(self) -> SlackReading:
        """Returns this as the preparer's ports."""
        return SlackReading(self, self, self, self, self, self)

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        if (refused := self.refused.get(what, self.refused.get(what.partition(" ")[0]))) is not None:
            raise refused
        if self.faults:
            raise self.faults.pop(0)
