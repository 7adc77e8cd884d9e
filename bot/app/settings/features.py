"""The features that the Slack app can do without, with the scopes and events that each needs."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Feature(StrEnum):
    """What the app can do without, by the names on the command line, in PAGEHAND_WITHOUT and in manifest.yml."""

    DIRECT_MESSAGES = "direct-messages"
    FILES = "files"
    JOINING = "joining"
    PRIVATE_CHANNELS = "private-channels"
    REACTIONS = "reactions"
    USER_GROUPS = "user-groups"


_NEEDS: Mapping[Feature, frozenset[str]] = {
    Feature.DIRECT_MESSAGES: frozenset({"im:history", "message.im"}),
    Feature.FILES: frozenset({"files:read"}),
    Feature.JOINING: frozenset({"channels:join"}),
    Feature.PRIVATE_CHANNELS: frozenset({"groups:history", "groups:read", "message.groups", "channel_id_changed"}),
    Feature.REACTIONS: frozenset({"reactions:read", "reactions:write", "reaction_added"}),
    Feature.USER_GROUPS: frozenset({"usergroups:read"}),
}


def scopes_and_events(features: Iterable[Feature]) -> frozenset[str]:
    """Returns the scopes and events, by Slack's names, that only these features need."""
    return frozenset[str]().union(*(_NEEDS[feature] for feature in features))


def feature_that_needs(name: str) -> Feature | None:
    """Returns the feature that a scope or event is for; None if the app cannot do without it."""
    return next((feature for feature, names in _NEEDS.items() if name in names), None)


def features_in(text: str) -> frozenset[Feature]:
    """Returns the features in a comma-separated text. Raises ValueError, whose message continues a setting's name."""
    try:
        return frozenset(map(Feature, text.replace(",", " ").split()))
    except ValueError:
        raise ValueError(f"must be features, separated by commas, of {', '.join(Feature)}") from None
