"""An agent's multiple-choice question is offered as buttons, a list or a modal if it fits; otherwise as text."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.jobs.details import JobReport, QuestionField
from bot.domain.threads.thread import Thread
from bot.jobapi.models import FieldKind
from bot.notices.job import JobFinished, QuestionAsked
from bot.notices.notice import Notice, NoticeContent
from bot.runtime.text import displayable
from bot.slack.rendering.blocks import CHOOSE_ANSWER, FILL_IN_ANSWER, MAX_OPTION_VALUE, MAX_VALUE, SEND_ANSWERS
from bot.slack.rendering.message_context import MessageContext
from bot.slack.rendering.modal_inputs import answer_choices, decoded_fields, encoded_fields
from bot.slack.rendering.modals import ModalPlace, answer_modal
from bot.slack.rendering.notices import messages
from bot.slack.rendering.text import width
from bot.workspace.wire.views import checked_view

THREAD = Thread("th1", "T1", "C1", "U0ANA", "Do it", "p", 0.0, ts="1.1")
CHARACTERS = st.characters(exclude_categories=("C", "Z")) | st.just("😀")
LABELS = st.text(CHARACTERS, min_size=1, max_size=75).filter(lambda label: displayable(label) == label)
"""Labels that the reader of a job's details accepts: they are visible text."""


def choice(*labels: str) -> QuestionField:
    return QuestionField("Which page?", FieldKind.CHOICE, labels)


@st.composite
def fields(draw: st.DrawFn) -> QuestionField:
    kind = draw(st.sampled_from(FieldKind))
    several = kind in {FieldKind.CHOICE, FieldKind.CHOICES}
    most = draw(st.sampled_from([1, 5, 6, 100]))
    options = draw(st.lists(LABELS, min_size=1, max_size=most, unique=True)) if several else []
    own_words, required = draw(st.booleans()), draw(st.booleans())
    return QuestionField(draw(LABELS), kind, tuple(options), own_words=several and own_words, required=required)


def shown(message: NoticeContent) -> list[dict[str, Any]]:
    (made,) = messages(THREAD, Notice(1, "k", "th1", message, created_at=0.0), MessageContext())
    return [element for block in made.blocks if block["type"] == "actions" for element in block["elements"]]


def test_a_few_choices_become_buttons() -> None:
    made = shown(QuestionAsked("Which page?", (choice("Install", "Set up"),)))
    assert [(each["text"]["text"], each["action_id"], each["value"]) for each in made] == [
        ("Install", SEND_ANSWERS[0], "th1/Install"),
        ("Set up", SEND_ANSWERS[1], "th1/Set up"),
    ]


def test_a_yes_no_question_becomes_buttons() -> None:
    made = answer_choices(THREAD, [QuestionField("Sure?", FieldKind.YES_OR_NO)])
    assert [each["value"] for each in made] == ["th1/Yes", "th1/No"]


def test_many_choices_become_a_list() -> None:
    (made,) = answer_choices(THREAD, [choice(*(f"Page {number}" for number in range(100)))])
    assert (made["action_id"], len(made["options"])) == (CHOOSE_ANSWER, 100)
    assert made["options"][99]["value"] == "th1/Page 99"


def test_several_fields_or_choices_are_filled_in_in_a_modal() -> None:
    asked = (choice("A", "B"), QuestionField("Why?", FieldKind.TEXT))
    for each in (asked, (QuestionField("Pages", FieldKind.CHOICES, ("A", "B")),)):
        (made,) = answer_choices(THREAD, each)
        assert made["action_id"] == FILL_IN_ANSWER
        assert decoded_fields(made["value"].partition("/")[2]) == each


def test_a_question_for_words_or_a_number_has_no_button() -> None:
    for kind in (FieldKind.TEXT, FieldKind.NUMBER):
        assert answer_choices(THREAD, [QuestionField("Why?", kind)]) == []
    assert shown(QuestionAsked("Why?")) == []


def test_questions_that_do_not_fit_are_answered_in_text() -> None:
    """Labels with the maximum width of a button, of characters that count twice; more fields than a button holds."""
    assert answer_choices(THREAD, [choice("😀" * 75)]) == []
    assert answer_choices(THREAD, [choice(*(f"{number:075}" for number in range(100)))]) == []
    assert answer_choices(THREAD, [QuestionField("x" * 200, FieldKind.TEXT)] * 10) == []


def test_an_end_with_a_question_has_the_choices_first() -> None:
    report = JobReport(question="Which?", question_fields=(choice("A"),), examples=("Fix it",))
    assert [each["value"] for each in shown(JobFinished(report=report))][:2] == ["th1/A", "th1/Fix it"]
    old = JobReport(question_fields=(choice("A"),))
    assert shown(JobFinished(report=old)) == []


@given(st.lists(fields(), max_size=10))
def test_any_answer_form_is_accepted_by_slack(asked: list[QuestionField]) -> None:
    made = answer_choices(THREAD, asked)
    for element in made:
        assert width(element.get("value", "")) <= MAX_VALUE
        assert all(width(option["value"]) <= MAX_OPTION_VALUE for option in element.get("options", ()))
    if made and made[0]["action_id"] == FILL_IN_ANSWER:
        checked_view(answer_modal(ModalPlace("C1", thread_id="th1"), asked), "modal")
        assert decoded_fields(encoded_fields(asked)) == tuple(asked)


@given(st.text(max_size=50) | st.sampled_from(['[["t","colour",[],false,false]]', '[["t"]]', "[[]]", '{"t":1}']))
def test_a_foreign_value_has_no_fields(text: str) -> None:
    assert decoded_fields(text) == ()
