"""Who may do what where: what is not known to be allowed is refused."""

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.channels import Channel
from bot.domain.members import Member
from bot.domain.permissions import PermissionRules, Refusal, refusal
from bot.domain.requests import Person

ANA = Person("UANA", "T1")
BOOLEANS = st.booleans()
MEMBERS = st.builds(
    Member,
    st.sampled_from(["UANA", "UBEN"]),
    st.just("Ana"),
    st.sampled_from(["", "T1", "T1", "T2"]),
    BOOLEANS,
    is_bot=BOOLEANS,
    deleted=BOOLEANS,
)
CHANNELS = st.builds(Channel, st.sampled_from(["C1", "C2"]), st.just("docs"), BOOLEANS, BOOLEANS)
RULES = st.builds(
    PermissionRules,
    st.sampled_from(["T1", "T1", ""]),
    allow_guests=BOOLEANS,
    allow_shared_channels=BOOLEANS,
    people=st.frozensets(st.sampled_from(["UANA", "UBEN"])),
    groups=st.frozensets(st.sampled_from(["S1"])),
    channels=st.frozensets(st.sampled_from(["C1", "C2"])),
    hourly_limit=st.integers(0, 3),
)


@given(st.none() | MEMBERS, st.none() | CHANNELS, RULES, BOOLEANS, st.integers(0, 4))
def test_whoever_may_fulfils_every_rule(
    member: Member | None,
    channel: Channel | None,
    rules: PermissionRules,
    in_groups: bool,  # noqa: FBT001 - Hypothesis passes it so
    asked: int,
) -> None:
    """Each rule by itself, said another way round."""
    if refusal(ANA, member, channel, rules, in_groups=in_groups, asked_last_hour=asked) is not None:
        return
    assert member is not None
    assert channel is not None
    assert (member.id, member.team_id) == ("UANA", rules.team_id) == ("UANA", "T1")
    assert not member.is_bot
    assert not member.deleted
    assert rules.allow_guests or not member.is_guest
    assert rules.allow_shared_channels or not channel.is_shared_outside
    listed = "UANA" in rules.people or (in_groups and bool(rules.groups))
    assert listed or not (rules.people or rules.groups)
    assert channel.id in rules.channels or not rules.channels
    assert asked < rules.hourly_limit or not rules.hourly_limit


@given(MEMBERS, CHANNELS, RULES, BOOLEANS)
def test_what_is_allowed_more_refuses_nobody(
    member: Member,
    channel: Channel,
    rules: PermissionRules,
    in_groups: bool,  # noqa: FBT001 - Hypothesis passes it so
) -> None:
    """A rule that is taken away is never the reason for a refusal."""
    free = PermissionRules("T1", allow_guests=True, allow_shared_channels=True)
    refused = refusal(ANA, member, channel, free, in_groups=in_groups, asked_last_hour=99)
    assert refused in {None, Refusal.PERSON_UNKNOWN, Refusal.OTHER_ORGANIZATION, Refusal.NOT_A_PERSON}
    if refusal(ANA, member, channel, rules, in_groups=in_groups, asked_last_hour=0) is None:
        assert refused is None
