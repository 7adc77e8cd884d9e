"""Payloads of Slack's interactions (docs.slack.dev, "Interactivity"): clicks, shortcuts and modals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from bot.domain.requests.request import Person
from bot.runtime.untrusted_json import LenientModel, Objects, Text
from bot.slack.message_parts.slack_message import SlackMessage, Ts
from bot.slack.receiving.payloads.payload import InstalledView, SlackPayload, counted_as, is_ours
from bot.slack.rendering.modals import Input, ModalPlace, parse_place
from bot.slack.sending.identity import Identity
from bot.slack.sending.views import ShownView


class Reference(LenientModel):
    """The person who clicked, used the shortcut or submitted the modal, or the channel where it happened."""

    id: Text = ""
    team_id: Text = ""


class InteractionPayload(SlackPayload):
    """An interaction of any kind."""

    user: Reference = Reference()
    channel: Reference = Reference()
    trigger_id: Text = ""


# Clicks.


class ChosenOption(LenientModel):
    """An option of a menu."""

    value: Text = ""


class Element(LenientModel):
    """A button or menu that was used, or the content of an input; in a view's block, as it was shown first."""

    action_id: Text = ""
    action_ts: Text = ""
    value: Text = ""
    selected_option: ChosenOption = ChosenOption()
    selected_options: Objects[ChosenOption] = ()
    initial_options: Objects[ChosenOption] = ()
    selected_conversation: Text = ""


class ClickContainer(LenientModel):
    """What contains the element: a message or a view."""

    channel_id: Text = ""
    message_ts: Text = ""


class ClickPayload(InteractionPayload):
    """`block_actions`."""

    actions: Objects[Element] = ()
    container: ClickContainer = ClickContainer()

    @property
    def element(self) -> Element:
        """The element that was used: Slack reports one at a time."""
        return self.actions[0] if self.actions else Element()

    @property
    def channel_id(self) -> str:
        """The channel of the message; empty in a view."""
        return self.channel.id or self.container.channel_id


# Shortcuts.


class MessageShortcutPayload(InteractionPayload):
    """`message_action`: a shortcut that was used on a message."""

    message: SlackMessage = SlackMessage()
    message_ts: Ts = ""


# Modals.


@dataclass(frozen=True)
class GivenAnswer:
    """The content of an input for an agent's question; `text` is empty if nothing was answered."""

    block_id: str
    title: str
    text: str
    is_required: bool


class BlockLabel(LenientModel):
    """The title of an input."""

    text: Text = ""


class ViewBlock(LenientModel):
    """A block of a view."""

    block_id: Text = ""
    label: BlockLabel = BlockLabel()
    element: Element = Element()


def _inputs(values: object) -> dict[str, Any]:
    """Returns the state of each input by its block's id, which is also its action id."""
    blocks = values.items() if isinstance(values, dict) else ()
    held = {block_id: actions.get(block_id) for block_id, actions in blocks if isinstance(actions, dict)}
    return {block_id: state for block_id, state in held.items() if isinstance(state, dict)}


class ViewState(LenientModel):
    """The contents of a view's inputs."""

    values: Annotated[Mapping[Text, Element], BeforeValidator(_inputs)] = Field(default_factory=dict)


class SlackView(InstalledView):
    """A view as it was shown when something happened in it."""

    id: Text = ""
    hash: Text = ""
    private_metadata: Text = ""
    blocks: Objects[ViewBlock] = ()
    state: ViewState = ViewState()

    @property
    def shown(self) -> ShownView:
        """The view's id and the hash of its content."""
        return ShownView(self.id, self.hash)

    @property
    def place(self) -> ModalPlace:
        """The place that the view is about."""
        return parse_place(self.private_metadata)

    def text(self, block_id: str) -> str:
        """Returns the text in an input."""
        return self._input(block_id).value

    def choice(self, block_id: str) -> str:
        """Returns the value of the chosen option; empty if none is chosen."""
        return self._input(block_id).selected_option.value

    def ticked(self, block_id: str) -> bool | None:
        """Returns whether a box is ticked; None if it is not shown, or as unticked as at first."""
        now = bool(self._input(block_id).selected_options)
        began = any(block.element.initial_options for block in self.blocks if block.block_id == block_id)
        return now if now or began else None

    def channel(self, block_id: str) -> str:
        """Returns the chosen channel; empty if none is chosen."""
        return self._input(block_id).selected_conversation

    def texts(self, prefix: str) -> Sequence[tuple[str, str]]:
        """Returns the ids and texts of the inputs whose block ids have the prefix, in the order of the blocks."""
        ids = (block.block_id for block in self.blocks)
        return [(block_id, self.text(block_id)) for block_id in ids if block_id.startswith(prefix)]

    def answers(self) -> list[GivenAnswer]:
        """Returns the answers to an agent's questions, in the order of their inputs. The person's own words take
        precedence over their choice.
        """
        found = []
        for block_id, block in {block.block_id: block for block in self.blocks}.items():
            kind, _, number = block_id.partition("/")
            if kind in {Input.ANSWER, Input.REQUIRED_ANSWER}:
                text = self.text(f"{Input.OTHER_ANSWER}/{number}").strip() or self._answer(block_id)
                is_required = kind == Input.REQUIRED_ANSWER
                found.append(GivenAnswer(block_id, block.label.text, text, is_required=is_required))
        return found

    def _answer(self, block_id: str) -> str:
        chosen = "; ".join(option.value for option in self._input(block_id).selected_options)
        return chosen or self.choice(block_id) or self.text(block_id).strip()

    def _input(self, block_id: str) -> Element:
        return self.state.values.get(block_id, Element())


class ViewPayload(InteractionPayload):
    """`view_submission`."""

    view: SlackView = SlackView()


class ViewClickPayload(ClickPayload):
    """`block_actions` in a modal."""

    view: SlackView = SlackView()


_WORKSPACE = "T"
"""The first letter of workspaces' ids; those of organizations begin with E."""
_NAMES_WHERE = frozenset({"view_submission", "view_closed", "message_action", "shortcut"})
"""Kinds of interactions that name the workspace in which they happened."""


def user_of(payload: InteractionPayload, identity: Identity) -> Person:
    """Returns who clicked, used the shortcut or submitted the modal. The id is empty if the payload names nobody."""
    team_id = payload.user.team_id
    is_colleague = team_id.startswith(_WORKSPACE) and _happened_in_our_organization(payload, identity)
    return Person(payload.user.id, identity.team_id if is_colleague else counted_as(team_id, identity))


def _happened_in_our_organization(payload: InteractionPayload, identity: Identity) -> bool:
    """Whether a modal or a shortcut was used in a workspace of our organization; False if we have none. For these,
    `team` is where it happened; for a click it is where the app is installed, for every person.
    """
    if not identity.enterprise_id or payload.type not in _NAMES_WHERE:
        return False
    if payload.team is None:  # the app is installed for the whole organization
        return payload.enterprise is not None and payload.enterprise.id == identity.enterprise_id
    return is_ours(payload.team.id, identity) or is_ours(payload.team.enterprise_id, identity)
