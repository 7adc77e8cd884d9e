"""Checks what has arrived from Slack so far, and when it last did."""

from collections.abc import Iterator, Mapping

from bot.domain.findings import Finding
from bot.domain.last_times import LastTime

ARRIVALS, SIGNATURES = "arrivals", "slack.signing_secret"
_KINDS: Mapping[LastTime, tuple[str, str]] = {
    LastTime.COMMAND: ("slash command", "write `{command} help` in a channel of Slack's"),
    LastTime.EVENT: ("event (a message, a mention, a reaction)", "invite Pagehand to a channel, and mention it there"),
    LastTime.CLICK: ("click (a button, a menu, a form)", "write `{command}` in a channel, and close the form"),
}
_LATELY = 3600.0
"""Seconds for which a wrong signature counts, unless a correctly signed request came later."""


def arrival_findings(last: Mapping[LastTime, float], now: float, *, command: str) -> Iterator[Finding]:
    """Reports when each kind last arrived; one that never did is a warning."""
    for kind, (words, attempt) in _KINDS.items():
        check = f"{ARRIVALS}.{kind}"
        if kind in last:
            yield Finding.ok(check, f"The last {words} came {ago(now - last[kind])}.")
        else:
            yield Finding.warning(
                check,
                f"No {words} has come yet.",
                why="Whether Slack's requests arrive is not known before one does.",
                fix=f"Start Pagehand, {attempt.format(command=command)}, and run this again half a minute later. If "
                "nothing comes, `pagehand doctor --configuration-token` shows how the app is set up.",
            )


def signature_finding(last: Mapping[LastTime, float], now: float, *, by_socket: bool) -> Finding:
    """Reports whether Slack's requests are signed with our signing secret, which only a request shows."""
    if by_socket:
        return Finding.ok(SIGNATURES, "It is not needed: Slack is reached over Socket Mode.")
    arrived = max((last[kind] for kind in _KINDS if kind in last), default=None)
    refused = last.get(LastTime.BAD_SIGNATURE)
    if refused is not None and refused > (arrived or 0.0) and (arrived is None or now - refused < _LATELY):
        return Finding.error(
            SIGNATURES,
            f"A request came {ago(now - refused)} that is not signed with SLACK_SIGNING_SECRET.",
            why="If it was Slack's, all that people do in Slack is turned away.",
            fix="At api.slack.com/apps, choose your app and then Basic Information, App Credentials: copy the Signing "
            "Secret (not the Client Secret) into SLACK_SIGNING_SECRET, and start Pagehand again.",
        )
    if arrived is None:
        return Finding.not_checked(SIGNATURES, "Whether SLACK_SIGNING_SECRET is right shows with the first request.")
    return Finding.ok(SIGNATURES, f"A request that came {ago(now - arrived)} was signed with it.")


def ago(seconds: float) -> str:
    """Returns how long ago something was, as text."""
    seconds = max(seconds, 0.0)
    for length, unit in ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "less than a minute ago"
