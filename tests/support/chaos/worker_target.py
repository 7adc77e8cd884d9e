"""`pagehand` in a process that has told its id: the start script of the workers that are killed.

Where it is killed or paused is up to the git that is first on its PATH (`GIT`) and to its agent (`AGENT`): it starts
them before and after each step of an instruction. `how point` in the file `order` beside that git is what happens to
the worker there: once, and then the file's name is `reached`.
"""

import json
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[3])]

from bot.cli.main import main as pagehand  # noqa: E402 - run as a script, Python looks for modules beside it only

POINTS = ("claimed", "edits", "edited", "pushing", "pushed", "recorded")
"""`recorded` and not proposed: the pull request begins with a fetch of the branch that was just pushed."""
GIT = r"""#!/bin/sh
here=${0%/*} kind= branch=
reach() {
    read -r how point 2>/dev/null <"$here/order" && [ "$point" = "$1" ] || return 1
    mv "$here/order" "$here/reached" 2>/dev/null && kill -s "$how" "$(cat "$here/pid")"
}
for word; do
    case $word in
        fetch | push) kind=$word ;;
        *refs/heads/pagehand/*) branch=${word##*refs/heads/pagehand/} branch=${branch%\*} ;;
    esac
done
case $kind in
    fetch) if rm "$here/pushed-$branch" 2>/dev/null; then reach recorded; else reach claimed; fi ;;
    push) if reach pushing; then [ "$how" = STOP ] && sleep 2 || exit 1; fi ;;
esac
PATH=${PATH#*:} git "$@"
code=$?
if [ "$kind$code" = push0 ]; then : >"$here/pushed-$branch"; reach pushed; fi
exit $code
"""
AGENT = r"""
import os, re, signal
HERE = Path(os.environ["PATH"].partition(":")[0])
ASKED = re.compile(r"job (\d+) step (\d+) for ([\d.]+) s( asks)?\s*$")

def reach(point):
    try:
        how, at = (HERE / "order").read_text().split()
        if at == point:
            (HERE / "order").rename(HERE / "reached")
            os.kill(int((HERE / "pid").read_text()), signal.Signals["SIG" + how])
    except (OSError, ValueError):
        pass

def form(agent):
    port = {"type": "string", "title": "Port", "enum": ["80", "443"]}
    params = {"sessionId": agent.session_id, "mode": "form", "message": "Which port?",
              "requestedSchema": {"type": "object", "properties": {"port": port}}}
    return agent.request("elicitation/create", params)["result"].get("content") or {}

def turn(agent, text):
    reach("edits")
    asked = ASKED.search(text)
    job, step, seconds, asks = asked.groups() if asked else ("0", text[-100:].strip(), "0", None)
    said = form(agent).get("port", "unanswered") if asks else "done"
    if agent.cancelled.wait(float(seconds)):
        (HERE / f"cancelled-{job}").write_text("")
        return "cancelled"
    with Path("docs", f"job{job}.md").open("a") as page:
        page.write(f"step {step} {said}\n")
    agent.say("A line more.")
    reach("edited")
"""


def main() -> None:
    """Its standard output is for the report, so whatever else is printed goes to its log."""
    report = os.dup(1)
    os.dup2(2, 1)
    Path(os.environ["PATH"].partition(":")[0], "pid").write_text(str(os.getpid()))
    os.write(report, json.dumps({"pid": os.getpid(), "at": time.monotonic(), "began": True}).encode() + b"\n")
    pagehand()


if __name__ == "__main__":
    main()
