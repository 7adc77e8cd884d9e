"""A transaction, put together from what it can do."""

from bot.store.audit import Audit
from bot.store.channel_ids import ChannelIds
from bot.store.claims import Claims
from bot.store.database_check import DatabaseCheck
from bot.store.early_replies import EarlyReplies
from bot.store.limits import Limits
from bot.store.message_versions import MessageVersions
from bot.store.notices import Notices
from bot.store.people import Drafts, Homes, Preferences
from bot.store.polls import Polls
from bot.store.quotations import Quotations
from bot.store.request_parts import RequestParts
from bot.store.requests import Requests
from bot.store.restoration import Restoration
from bot.store.retention import Retention
from bot.store.session import Session
from bot.store.slack_calls import SlackCalls
from bot.store.threads import Threads


class SqlTransaction:
    """ports.Transaction."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.now = session.now
        self.threads = Threads(session)
        self.slack_calls = SlackCalls(session)
        self.notices = Notices(session, self.slack_calls)
        self.requests = Requests(session, self.notices)
        self.request_parts = RequestParts(session)
        self.polls = Polls(session, self.notices)
        self.early_replies = EarlyReplies(session)
        self.message_versions = MessageVersions(session)
        self.channel_ids = ChannelIds(session)
        self.claims = Claims(session)
        self.retention = Retention(session)
        self.quotations = Quotations(session)
        self.restoration = Restoration(session)
        self.audit = Audit(session)
        self.limits = Limits(session)
        self.drafts = Drafts(session)
        self.preferences = Preferences(session)
        self.homes = Homes(session)
        self.database_check = DatabaseCheck(session)
