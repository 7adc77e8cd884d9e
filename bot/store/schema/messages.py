"""Messages of notices as JSON: told apart by their `kind`, as databases hold them."""

import json
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from bot.domain.notices.messages import NoticeMessage
from bot.domain.notices.posts import Delivery, UnknownNotice
from bot.store.schema.column_types import storable_json

_MESSAGE: TypeAdapter[NoticeMessage] = TypeAdapter(Annotated[NoticeMessage, Field(discriminator="kind")])
KINDS = frozenset(kind for message in get_args(NoticeMessage) for kind in get_args(message.__annotations__["kind"]))


def json_text(value: Any) -> str:
    """Returns a value of JSON's types as text that any database keeps."""
    return json.dumps(storable_json(value), ensure_ascii=False, separators=(",", ":"))


def message_text(message: NoticeMessage) -> str:
    """Returns a message as JSON."""
    return json_text(_MESSAGE.dump_python(message, mode="json"))


def message_from(text: str, delivery: str) -> NoticeMessage:
    """Returns the message of a row. A kind that only a newer version knows is kept as it is, where it is a post or
    goes to one person. Raises ValueError.
    """
    found = from_json(text)
    kind = found.get("kind") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind in KINDS:
        return _MESSAGE.validate_python(found)
    if delivery not in {Delivery.POST, Delivery.EPHEMERAL}:
        raise ValueError(f"nothing is known of this {delivery}")
    return UnknownNotice(kind, {name: value for name, value in found.items() if name != "kind"}, Delivery(delivery))
