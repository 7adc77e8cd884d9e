"""Who people are, and whether Slack can be asked: both change while requests wait."""

from hypothesis import strategies as st
from hypothesis.stateful import rule
from support.machine.people import PeopleMachine
from support.worlds.core_world import ANA, BEN

from bot.domain.people import Member
from bot.domain.requests.request import Person


class Membership(PeopleMachine):
    """Rules by which people become guests and members again, Slack cannot be read for a while, and jobs take time."""

    @rule(person=st.sampled_from([ANA, BEN]), guest=st.sampled_from([True, False, False]))
    def becomes_a_guest_or_a_member(self, *, person: Person, guest: bool) -> None:
        self.set_guest(person, guest=guest)

    @rule()
    def slack_is_away_or_back(self) -> None:
        self.set_away(away=not self.outside.reading.away)

    @rule()
    def an_hour_passes(self) -> None:
        self.advance(3_700.0)

    def is_guest(self, person: Person) -> bool:
        """Returns whether a person is a guest now."""
        member = self.outside.reading.members.get(person.id)
        return member is not None and member.is_guest

    def set_guest(self, person: Person, *, guest: bool) -> None:
        """Makes a person a guest or a member."""
        self.outside.reading.members[person.id] = Member(person.id, person.id, person.team_id, is_guest=guest)
        self.people.guests.setdefault(person.id, []).append((self.outside.step, guest))

    def set_away(self, *, away: bool) -> None:
        """Makes Slack unreadable or readable."""
        self.outside.reading.away = away
        self.people.away.append((self.outside.step, away))
