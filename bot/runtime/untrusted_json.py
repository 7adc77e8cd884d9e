"""Reads JSON that others write: a field can be missing, null or of another type without spoiling the rest."""

from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    InstanceOf,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
)
from pydantic_core import PydanticUseDefault


def value_at(value: Any, *path: str) -> Any:
    """Returns what is at a path of keys; None if there is no such place."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """Returns the text at a path of keys, or an empty one."""
    found = value_at(value, *path)
    return found if isinstance(found, str) else ""


def object_at(value: Any, key: str) -> dict[str, Any]:
    """Returns the object under a key, or an empty one."""
    found = value_at(value, key)
    return found if isinstance(found, dict) else {}


def objects_at(value: Any, key: str) -> list[dict[str, Any]]:
    """Returns the objects in the list under a key, without other items; empty if there is no list."""
    items = value_at(value, key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


T = TypeVar("T")
MAX_ITEMS = 5_000
"""Of a list of objects; the rest is dropped."""

Text = InstanceOf[str]
"""A string as it is; pydantic's own `str` refuses lone surrogates, which JSON can hold."""


class LenientModel(BaseModel):
    """A JSON object. Every field needs a default: it is used where the value is missing or of the wrong type. Unknown
    fields are ignored, and no error is raised, so none can quote what somebody wrote.
    """

    # Built at first use: most kinds of payload are rare, and the models of parts are only used within others.
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    @classmethod
    def read(cls, value: object) -> Self:
        """Reads any JSON value; what is not an object reads as an empty one."""
        return cls.model_validate(value if isinstance(value, dict) else {})

    @field_validator("*", mode="wrap")
    @classmethod
    def _read_bad_value_as_absent(cls, value: Any, read: ValidatorFunctionWrapHandler) -> Any:
        try:
            return read(value)
        except ValidationError:
            raise PydanticUseDefault from None


def objects_in(value: object) -> list[dict[str, Any]]:
    """Returns the objects of a list, without whatever else is in it. Raises ValueError if the value is not a list."""
    return [item for item in _items_in(value)[:MAX_ITEMS] if isinstance(item, dict)]


def _texts_in(value: object) -> list[str]:
    return [item for item in _items_in(value) if isinstance(item, str)]


def _items_in(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not a list")  # noqa: TRY004 - pydantic takes ValueError for a bad value
    return value


Objects = Annotated[tuple[T, ...], BeforeValidator(objects_in)]
"""The objects of a list, of which at most MAX_ITEMS are read."""
Texts = Annotated[tuple[Text, ...], BeforeValidator(_texts_in)]
"""The strings of a list."""
IsPresent = Annotated[bool, BeforeValidator(bool)]
"""Whether a field holds anything but null, false, zero or nothing: for fields whose presence alone tells something."""
IsText = Annotated[bool, BeforeValidator(lambda value: isinstance(value, str))]
"""Whether a field holds a string, where an empty one differs from none."""
EmptyAsNone = BeforeValidator(lambda value: value or None)
"""For an optional object: an empty one tells nothing."""
