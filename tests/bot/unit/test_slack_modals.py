"""Pagehand's modals: within Slack's limits whatever they contain, and with the given values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.context.thread_context import ContextNotes
from bot.domain.people.members import Preference
from bot.domain.projects import MOST_PROJECTS
from bot.runtime.secrets import SecretKind
from bot.slack.receiving.payloads.interactions import ViewPayload
from bot.slack.rendering.modals import (
    CONTEXT_WIDTH,
    MAX_CONTEXT_INPUTS,
    ContextScope,
    Drafted,
    ModalPlace,
    ShownContext,
    View,
    context_fields,
    follow_up_modal,
    hand_over_modal,
    new_job_modal,
    parse_place,
    secret_found,
    settings_modal,
)
from bot.slack.rendering.text import shorten_plain, width
from bot.workspace.wire.views import checked_view

TEXTS = st.text(max_size=60) | st.text(alphabet="😀a\n", max_size=40).map(lambda text: text * 200)
NAMES = st.lists(
    st.text(min_size=1, max_size=90).filter(lambda name: bool(shorten_plain(name, 75))), max_size=4, unique=True
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def inputs(view: View) -> dict[str, Any]:
    return {block["block_id"]: block["element"] for block in view["blocks"] if block["type"] == "input"}


@given(draft=TEXTS, projects=NAMES, quiet=st.booleans(), channel=st.sampled_from(["", "C1"]))
def test_a_job_modal_is_accepted_by_slack(draft: str, projects: list[str], channel: str, *, quiet: bool) -> None:
    """With any draft and project names."""
    drafted = Drafted(draft, Preference(projects[0] if projects else "gone", quiet))
    view = new_job_modal(ModalPlace(channel), drafted, projects)
    checked_view(view, "modal")
    checked_view(follow_up_modal(ModalPlace(thread_id="th1"), drafted), "modal")
    checked_view(settings_modal(drafted.preference, projects), "modal")
    assert ("project" in inputs(view)) is (len(projects) > 1)
    assert ("channel" in inputs(view)) is (not channel)
    assert view["notify_on_close"] is True


@given(
    text=TEXTS,
    scope=st.sampled_from(ContextScope),
    has_thread=st.booleans(),
    masked=st.lists(st.sampled_from(SecretKind), unique=True),
    names=NAMES,
)
def test_a_message_modal_is_accepted_by_slack(
    text: str, scope: ContextScope, masked: list[SecretKind], names: list[str], *, has_thread: bool
) -> None:
    """With any message and files."""
    notes = ContextNotes(words_left_out=has_thread)
    context = ShownContext(text, tuple(masked), notes, has_thread=has_thread, unreadable=True, file_names=tuple(names))
    place = ModalPlace("C1", "1.1", "1.2", scope=scope, files=tuple("F" * len(names)), file_names=tuple(names))
    view = hand_over_modal(place, Drafted(), names, context)
    checked_view(view, "modal")
    assert ("scope" in inputs(view)) is has_thread


def test_inputs_keep_their_ids_and_start_with_the_given_values() -> None:
    """Typed text is sent at once, and defaults are preselected."""
    view = new_job_modal(ModalPlace("C1"), Drafted("Fix it", Preference("api", quiet=True)), ("guides", "api"))
    prompt = next(block for block in view["blocks"] if block.get("block_id") == "prompt")
    assert prompt["dispatch_action"] is True
    assert prompt["element"]["initial_value"] == "Fix it"
    assert "max_length" not in prompt["element"]
    assert inputs(view)["project"]["initial_option"]["value"] == "api"
    assert inputs(view)["telling"]["initial_option"]["value"] == "quiet"
    other = new_job_modal(ModalPlace("C1"), Drafted("", Preference("gone")), ("guides", "api"))
    assert "initial_option" not in inputs(other)["project"]
    assert "initial_value" not in inputs(other)["prompt"]


def test_a_project_is_matched_in_any_case_and_an_unknown_one_reported() -> None:
    """The error is at the choice, or in its place if there is only one project."""

    def job(said: str, *projects: str) -> View:
        return new_job_modal(ModalPlace("C1"), Drafted("", Preference(said)), projects)

    assert inputs(job("API", "guides", "Api"))["project"]["initial_option"]["value"] == "Api"
    view = job("a*pi", "guides", "api")
    (block,) = [block for block in view["blocks"] if block.get("block_id") == "project"]
    assert "initial_option" not in block["element"]
    assert block["hint"]["text"] == "There is no project called a*pi. Please choose one of these."
    said = "There is no project called a&lt;pi. The job is for the only one there is."
    assert said in str(job("a<pi", "guides")["blocks"])
    assert "no project" not in str((job("Guides", "guides"), job("", "guides"), job("", "guides", "api")))
    names = tuple(f"project-{number}" for number in range(MOST_PROJECTS))
    view = job(names[-1].upper(), *names)
    assert inputs(view)["project"]["initial_option"]["value"] == names[-1]
    assert len(inputs(view)["project"]["options"]) == MOST_PROJECTS


@given(st.text(max_size=200) | st.text(alphabet="a😀", min_size=2_990, max_size=3_010))
def test_a_cut_text_fits_slacks_limit(text: str) -> None:
    """Counted as Slack counts; text that fits is unchanged."""
    for limit in (10, 75, 3_000):
        shown = shorten_plain(text, limit)
        assert width(shown) <= limit
        assert shown.removesuffix("…") in shorten_plain(text, 10_000)


@given(st.lists(st.text(alphabet=st.characters(exclude_characters="\r"), max_size=400), max_size=30))
def test_a_long_context_is_shown_in_several_inputs(lines: list[str]) -> None:
    """Joined, they are the text again, except for breaks in lines that are too long for one."""
    text = "\n".join(lines)[:CONTEXT_WIDTH]
    fields = context_fields(text)
    assert all(width(field) <= 3_000 for field in fields)
    if width(text) <= CONTEXT_WIDTH:
        assert "".join(fields).replace("\n", "") == text.replace("\n", "")
    if text and all(len(line) < 400 for line in text.split("\n")):
        joined = "\n".join(fields)
        assert joined == text or len(fields) == MAX_CONTEXT_INPUTS


@pytest.mark.parametrize("text", ["x" * 15_000, "y\n" * 7_500, ("z" * 1_600 + "\n") * 9, "😀" * 7_500, "\n" * 15_000])
def test_all_inputs_together_have_room_for_the_longest_context(text: str) -> None:
    """Wherever its lines end."""
    kept = "".join(context_fields(text[:CONTEXT_WIDTH])).replace("\n", "")
    assert kept == text[:CONTEXT_WIDTH].replace("\n", "")


@given(
    st.builds(ModalPlace, *[st.text(max_size=30)] * 5, *[st.lists(st.text(max_size=40), max_size=20).map(tuple)] * 2)
)
def test_a_place_round_trips(place: ModalPlace) -> None:
    """File names are left out if they do not fit."""
    text = place.encoded()
    assert len(text) <= 3_000
    read = parse_place(text)
    assert read in {place, ModalPlace(**{**place.__dict__, "file_names": ()})}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "5", '{"channel_id": 5, "files": [1, "F1"], "other": "x"}', "[" * 50_000]
)
def test_an_invalid_place_is_empty(text: str) -> None:
    """Slack returns what it was given; anything else is harmless."""
    read = parse_place(text)
    assert read.channel_id == ""
    assert read.files in {(), ("F1",)}


def test_a_secret_is_reported_at_its_field() -> None:
    """With a remedy."""
    assert secret_found((SecretKind.AWS, SecretKind.JWT)) == (
        "This looks like a secret (AWS key, JSON Web Token) and would leave Slack. Please take it out."
    )


@given(JSON)
def test_a_submission_of_any_shape_is_read(body: Any) -> None:
    """Missing values are empty."""
    for shape in (
        body,
        {"view": body},
        {"view": {"state": body, "blocks": body}},
        {"view": {"state": {"values": body}}},
    ):
        view = ViewPayload.read(shape).view
        assert isinstance(view.id, str)
        assert isinstance(view.place, ModalPlace)
        assert isinstance(view.text("prompt") + view.choice("scope") + view.channel("channel"), str)
        assert list(view.texts("context/")) == []
