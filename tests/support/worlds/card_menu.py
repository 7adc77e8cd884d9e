"""The menu of a card, for pressing its items."""

from typing import TypedDict

from bot.slack.rendering.blocks import CARD_MENU
from bot.workspace.model.entities import Message


class MenuChoice(TypedDict):
    """What `press` takes beside the message."""

    action_id: str
    value: str


def menu_choice(card: Message, label: str) -> MenuChoice:
    """Returns what choosing the item with this label presses."""
    menus = [each for block in card.blocks or [] for each in block.get("elements", []) if each["type"] == "overflow"]
    values = {option["text"]["text"]: option["value"] for menu in menus for option in menu["options"]}
    return MenuChoice(action_id=CARD_MENU, value=values[label])
