"""A job that is polled, and what is announced of it: the decisions alone, without a store."""

from typing import Literal

from bot.domain.jobs.observe import JobObserved, Observation, decide, open_round
from bot.domain.jobs.poll_pace import Polling
from bot.domain.threads.thread import ThreadState
from bot.jobapi.models import Job
from bot.notices.notice import NewNotice

Seen = Job | Observation | Literal["follow-up"]
"""What a poll shows, or that somebody follows up."""


class PolledJob:
    """Polls a job, `every` seconds apart. `cards` counts the card's edits."""

    def __init__(self, every: float = 10.0, polling: Polling | None = None) -> None:
        self.state = ThreadState()
        self.now = 1_000.0
        self.every = every
        self.polling = polling or Polling()
        self.told: list[NewNotice] = []
        self.cards = 0

    def see(self, *seen: Seen) -> list[NewNotice]:
        """Returns what is announced after the last of these."""
        news: list[NewNotice] = []
        for each in seen:
            if each == "follow-up":
                self.follow_up()
                continue
            decision = decide(self.state, JobObserved(each) if isinstance(each, Job) else each, self.now, self.polling)
            self.state, self.now, news = decision.state, self.now + self.every, list(decision.notices)
            self.told += news
            self.cards += decision.card_changed
        return news

    def follow_up(self, asker_id: str = "") -> None:
        self.state = open_round(self.state, self.now, self.polling, asker_id)
