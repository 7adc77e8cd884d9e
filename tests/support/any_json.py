"""Any JSON, as Hypothesis makes it: for readers of what others send."""

from typing import Any

from hypothesis import strategies as st

KEYS = st.text(max_size=8)


def any_json(
    keys: st.SearchStrategy[str] = KEYS, *, odd: st.SearchStrategy[Any] | None = None
) -> st.SearchStrategy[Any]:
    """Returns values of a few levels, with these keys; `odd` are values besides JSON's own."""
    own = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    return st.recursive(
        own if odd is None else own | odd,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=7),
        max_leaves=10,
    )
