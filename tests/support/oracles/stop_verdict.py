"""What was written before a stop is not sent after it, unless somebody had that done."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]
_WITHOUT_EFFECT = {"received", "preparing", "withdrawn", "awaiting_person"}
_SENDING = {"send_held", "send_all_held", "send_again", "send_new_words"}


def took_effect(row: Row) -> bool:
    """Returns whether a request is a stop that was checked and allowed. A switch stops without withdrawing anything."""
    stop = row["kind"] == "stop" and row["way_in"] != "switch"
    return stop and row["state"] not in _WITHOUT_EFFECT and row["problem"] != "not_permitted"


def sent_in_spite_of_a_stop(rows: Iterable[Row], stopped: Mapping[str, int], sent: Mapping[str, int]) -> Iterator[str]:
    """Returns each follow-up that broke this. `stopped` and `sent` are the steps, by request, in which a stop had taken
    effect and in which a follow-up was claimed. What may have arrived stays as it is.
    """
    rows = list(rows)
    stops = [row for row in rows if took_effect(row) and row["id"] in stopped]
    named = {row["text"].partition(".")[0] for row in rows if row["kind"] in _SENDING}
    wanted = [row for row in rows if row["id"].partition(".")[0] in named]
    for row in rows:
        claimed = sent.get(row["merged_into"] or row["id"])
        if row["kind"] != "follow_up" or claimed is None or row["uncertain"]:
            continue
        if row in wanted or any(_shares_question(row, each) for each in wanted):
            continue
        for stop in stops:
            step, here = stopped[stop["id"]], stop["thread_id"] == row["thread_id"]
            if row["written_at"] == f"{row['recorded_at']:.6f}":  # a form's words have no time of Slack's own
                here = here and stop["recorded_at"] > row["recorded_at"]
            if here and stop["written_at"] > row["written_at"] and step < claimed:
                yield f"{row['id']} was sent in step {claimed}, and stopped by {stop['id']} in {step}"


def _shares_question(row: Row, first: Row) -> bool:
    """Returns whether a line in a direct message may have been asked about with an earlier one."""
    same = all(row[name] == first[name] for name in ("thread_id", "person_id", "way_in"))
    return same and row["way_in"] == "direct_message" and first["written_at"] < row["written_at"]
