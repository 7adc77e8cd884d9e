"""What rows of schema 0003 say, in the words of 0004: a part of that migration, to stay as it was released."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Facts = Mapping[str, str]
Fields = dict[str, Any]

_DELIVERIES = {"card": "card", "post": "post", "mark": "reaction", "tell": "ephemeral"}
_PROBLEMS = {
    **{name: name for name in ("out_of_reach", "rate_limited", "busy", "faulty", "not_allowed", "gone", "cannot_post")},
    "refused": "rejected",
    "unsure": "uncertain",
}
_REASONS = {
    **{name: name for name in ("api", "address", "project", "gone", "not_found", "archived", "not_started", "too_old")},
    "unreadable": "unreadable",
    "taken_archived": "accepted_while_archived",
}
_ANSWERS = {
    **{name: name for name in ("sent_again", "not_yours", "withdrawn", "nothing_new", "see_thread")},
    "already_taken": "already_accepted",
    "external": "other_workspace",
    "no_team": "unknown_workspace",
    "new_words": "new_words_sent",
}
_EARLIER = {"taken": "accepted", "refused": "rejected", "unsure": "uncertain"}
_STATE_FIELDS = {
    "said": "announced",
    "trouble": "problem",
    "trouble_words": "problem_text",
    "trouble_until": "problem_until",
    "misses": "not_found_count",
    "out_since": "outage_since",
    "out_said": "outage_announced",
    "outages": "outage_count",
    "watch_until": "poll_until",
    "finished": "finished_before",
}


# -- the state of a thread ----------------------------------------------------------------------------------------


def state_text(known: Any) -> Any:
    """Returns the JSON of a thread's state; what is no object stays as it is."""
    state = _object(known)
    if state is None:
        return known
    state = {_STATE_FIELDS.get(name, name): value for name, value in state.items()}
    if isinstance(state.get("problem"), str):
        state["problem"] = _PROBLEMS.get(state["problem"], state["problem"])
    if isinstance(state.get("unexplained"), list):
        state["unexplained"] = [_unexplained(saying) for saying in state["unexplained"]]
    return _text(state)


def _unexplained(saying: Any) -> Any:
    if not isinstance(saying, dict) or saying.get("what") != "refused" or not _are_facts(saying.get("facts")):
        return saying
    return {"key": saying.get("key"), "message": {"kind": "request_rejected", **_rejected(saying["facts"])}}


# -- the message of a notice --------------------------------------------------------------------------------------


def message_text(kind: str, what: str, facts_text: Any) -> str:
    """Returns the JSON of a notice's message; of a row that cannot be read, all it held, which is no JSON."""
    facts = _object(facts_text)
    message = _message(kind, what, facts) if facts is not None and _are_facts(facts) else None
    return f"{what} {facts_text}" if message is None else _text(message)


def _are_facts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _message(kind: str, what: str, facts: Facts) -> Fields | None:
    if what == "answer" and facts.get("answer") not in _ANSWERS:
        what = ""
    new_kind, fields = _MESSAGES.get(what, ("", None))
    if fields is not None:
        try:
            message = {"kind": new_kind, **fields(facts)}
        except KeyError:
            return None
        return _undelivered(message, facts) if kind == "tell" and what not in _PERSONAL else message
    if kind not in {"post", "tell"}:
        return None
    held = {"person_id": facts.get("person", ""), **{name: text for name, text in facts.items() if name != "person"}}
    return {"kind": "unknown", "unknown_kind": what, "fields": held, "delivery": _DELIVERIES[kind]}


def _undelivered(post: Fields, facts: Facts) -> Fields:
    """A post that was given up went to one person."""
    may_be_posted = bool(facts.get("in_doubt"))
    return {"kind": "post_not_delivered", "person_id": _person(facts), "post": post, "may_be_posted": may_be_posted}


def _person(facts: Facts) -> str:
    return facts.get("person", "")


def _request(facts: Facts, request_id: str) -> Fields:
    kind = facts.get("kind")
    kind = kind if kind in {"start", "follow_up"} else None
    return {"request_id": request_id, "person_id": _person(facts), "kind": kind, "text": facts.get("text", "")}


def _nothing(_: Facts) -> Fields:
    return {}


def _reaction(facts: Facts) -> Fields:
    return {"message_ts": facts["message_ts"], "reaction": facts["mark"] or None}


def _started(facts: Facts) -> Fields:
    told = {name: facts.get(name, "") for name in ("repository", "ref", "model")}
    return {"job_id": facts.get("job", ""), **told}


def _finished(facts: Facts) -> Fields:
    flags = {name: facts.get(name) == "yes" for name in ("new", "changed", "again")}
    return {"link": facts.get("link", ""), **flags}


def _link(facts: Facts) -> Fields:
    return {"link": facts.get("link", ""), "changed": facts.get("changed") == "yes"}


def _outage(facts: Facts) -> Fields:
    until = facts.get("until", "")
    return {
        "problem": _PROBLEMS.get(facts.get("trouble", ""), "out_of_reach"),
        "reason": facts.get("reason", ""),
        "problem_text": facts.get("words", ""),
        "until": int(until) if re.fullmatch("[0-9]{1,11}", until) else None,
        "waiting": _request(facts, "") if facts.get("request") == "yes" else None,
    }


def _denied(facts: Facts) -> Fields:
    waiting = None if facts.get("request") == "" else _request(facts, "")
    return {"status": 403 if facts.get("status") == "403" else 401, "waiting": waiting}


def _back(facts: Facts) -> Fields:
    return {"problem": _PROBLEMS.get(facts.get("trouble", ""))}


def _rejected(facts: Facts) -> Fields:
    reason = _REASONS.get(facts.get("reason", "api"), "other")
    return {"request": _request(facts, facts.get("request", "")), "reason": reason, "api_text": facts.get("words", "")}


def _uncertain(facts: Facts) -> Fields:
    return {"request": _request(facts, facts.get("request", "")), "job_ended": facts.get("ended", "yes") == "yes"}


def _not_posted(facts: Facts) -> Fields:
    scopes = [scope for scope in facts.get("scopes", "").split(", ") if scope]
    doubt = bool(facts.get("in_doubt"))
    reason = facts.get("reason", "")
    return {"person_id": _person(facts), "reason": reason, "missing_scopes": scopes, "may_be_posted": doubt}


def _not_fully_sent(facts: Facts) -> Fields:
    count = facts.get("count", "")[:6]
    return {
        "person_id": _person(facts),
        "words_sent": facts.get("sent") == "yes",
        "file_count": int(count) if count.isdecimal() else 0,
        "file_names": [name for name in facts.get("files", "").split("\n") if name.strip()],
        "forwarded": facts.get("forwarded") == "yes",
    }


def _edited(facts: Facts) -> Fields:
    earlier = _EARLIER.get(facts.get("state", ""), "accepted")
    request_id, text = facts.get("request", ""), facts.get("words", "")
    return {"person_id": _person(facts), "request_id": request_id, "text": text, "earlier": earlier}


def _whole_prompt(facts: Facts) -> Fields:
    return {"person_id": _person(facts), "prompt": facts.get("text", "")}


def _answer(facts: Facts) -> Fields:
    return {"person_id": _person(facts), "answer": _ANSWERS[facts["answer"]]}


_MESSAGES: Mapping[str, tuple[str, Callable[[Facts], Fields]]] = {
    "card": ("card_changed", _nothing),
    "mark": ("reaction_changed", _reaction),
    "started": ("job_started", _started),
    "active_again": ("job_active_again", _nothing),
    "finished": ("job_finished", _finished),
    "failed": ("job_failed", _nothing),
    "archived": ("job_archived", _nothing),
    "link": ("pull_request_found", _link),
    "gone": ("job_disappeared", _nothing),
    "damaged": ("record_damaged", _nothing),
    "out_of_reach": ("outage_started", _outage),
    "not_allowed": ("access_denied", _denied),
    "back": ("outage_ended", _back),
    "refused": ("request_rejected", _rejected),
    "unsure": ("request_uncertain", _uncertain),
    "cannot_post": ("card_not_posted", _not_posted),
    "not_carried": ("reply_not_fully_sent", _not_fully_sent),
    "new_words": ("reply_edited", _edited),
    "whole_prompt": ("prompt_requested", _whole_prompt),
    "answer": ("action_answered", _answer),
}
_PERSONAL = frozenset({"cannot_post", "new_words", "whole_prompt", "answer"})


# -- JSON ---------------------------------------------------------------------------------------------------------


def _object(text: Any) -> Fields | None:
    """Returns a JSON object; None where it is none, or holds half a character, which no database keeps."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _text(value: Fields) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
