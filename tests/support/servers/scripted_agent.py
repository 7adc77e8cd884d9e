"""An agent that follows a script: a program that speaks the Agent Client Protocol, without any library.

    python scripted_agent.py SCRIPT

SCRIPT is a Python file that is given `agent` and defines what to do in a turn, and before:

    def turn(agent, text): ...            the end of a turn: its stop reason, or the whole result
    def started(agent): ...               before anything is read
    capabilities = {...}                  of `initialize`
    options = [...]                       what can be chosen for a session, as `configOptions`

Everything it receives is kept in HOME/received.jsonl, and its sessions in HOME/sessions.json, so that tests can look at
them and a later process can resume.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

Message = dict[str, Any]


class Refused(Exception):
    """Answered as an error of JSON-RPC."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Agent:
    """What a script can use."""

    def __init__(self, script: Path) -> None:
        self.home = Path(os.environ["HOME"])
        self.script: dict[str, Any] = {"Refused": Refused, "__name__": "script", "Path": Path, "time": time}
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), self.script)  # noqa: S102 - a test's own
        self.session_id = ""
        self.client: Message = {}
        self.cancelled = threading.Event()
        self._inbox: Queue[Message | None] = Queue()
        self._answers: Queue[Message] = Queue()
        self._asked = 0

    # for a turn

    def update(self, kind: str, /, **fields: Any) -> None:
        """Sends a `session/update`."""
        self.notify("session/update", {"sessionId": self.session_id, "update": {"sessionUpdate": kind, **fields}})

    def say(self, text: str) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text})

    def call(self, call_id: str, title: str, kind: str = "edit", **fields: Any) -> None:
        self.update("tool_call", toolCallId=call_id, title=title, kind=kind, status="pending", **fields)

    def ask(self, call_id: str, *kinds: str, **fields: Any) -> str:
        """Asks for permission; returns the kind of the chosen option, or `cancelled`."""
        kinds = kinds or ("allow_always", "allow_once", "reject_once")
        options = [{"optionId": f"id-{kind}", "name": kind, "kind": kind} for kind in kinds]
        call = {"toolCallId": call_id, **fields}
        params = {"sessionId": self.session_id, "toolCall": call, "options": options}
        outcome = self.request("session/request_permission", params)["result"]["outcome"]
        return str(outcome.get("optionId", outcome["outcome"])).removeprefix("id-")

    def request(self, method: str, params: Message) -> Message:
        self._asked += 1
        self.send({"jsonrpc": "2.0", "id": f"agent-{self._asked}", "method": method, "params": params})
        return self._answers.get()

    def notify(self, method: str, params: Message) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, message: Any) -> None:
        self.raw(json.dumps(message) + "\n")

    def raw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def memory(self) -> list[str]:
        """The earlier prompts of this session."""
        memory: list[str] = self._sessions()[self.session_id]
        return memory

    # the protocol

    def serve(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()
        self.script.get("started", lambda _: None)(self)
        while (message := self._inbox.get()) is not None:
            answer: Message = {"jsonrpc": "2.0", "id": message["id"]}
            try:
                answer["result"] = self._handle(message["method"], message.get("params") or {})
            except Refused as refused:
                answer["error"] = refused.error
            self.send(answer)

    def _read(self) -> None:
        for line in sys.stdin:
            with (self.home / "received.jsonl").open("a", encoding="utf-8") as stream:
                stream.write(line)
            message = json.loads(line)
            if message.get("method") == "session/cancel":
                self.cancelled.set()
            elif "method" in message:
                self._inbox.put(message)
            else:
                self._answers.put(message)
        self._inbox.put(None)

    def _handle(self, method: str, params: Message) -> Any:
        handlers: dict[str, Callable[[Message], Any]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/resume": self._resume,
            "session/prompt": self._prompt,
            "session/set_config_option": self._set_option,
        }
        if method in self.script.get("overrides", {}):
            return self.script["overrides"][method](self, params)
        if method not in handlers:
            raise Refused(-32601, "Method not found")
        return handlers[method](params)

    def _initialize(self, params: Message) -> Message:
        self.client = params["clientCapabilities"]
        capabilities = self.script.get("capabilities", {"sessionCapabilities": {"resume": {}}})
        info = {"name": "scripted", "version": "1.2.3"}
        return {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info}

    def _new(self, params: Message) -> Message:
        sessions = self._sessions()
        self.session_id = f"session-{len(sessions) + 1}"
        self._save(sessions | {self.session_id: []})
        return {"sessionId": self.session_id, **self._options()}

    def _resume(self, params: Message) -> Message:
        if params["sessionId"] not in self._sessions():
            raise Refused(-32002, "Resource not found")
        self.session_id = params["sessionId"]
        return self._options()

    def _options(self) -> Message:
        return {"configOptions": self.script["options"]} if "options" in self.script else {}

    def _set_option(self, params: Message) -> Message:
        for option in self.script["options"]:
            if option["id"] == params["configId"]:
                option["currentValue"] = params["value"]
        self.update("config_option_update", **self._options())
        return self._options()

    def _prompt(self, params: Message) -> Any:
        text = "".join(block.get("text", "") for block in params["prompt"])
        self._save(self._sessions() | {self.session_id: [*self.memory(), text]})
        end = self.script["turn"](self, text)
        return {"stopReason": end or "end_turn"} if not isinstance(end, dict) else end

    def _sessions(self) -> dict[str, list[str]]:
        path = self.home / "sessions.json"
        sessions: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return sessions

    def _save(self, sessions: dict[str, list[str]]) -> None:
        (self.home / "sessions.json").write_text(json.dumps(sessions), encoding="utf-8")


if __name__ == "__main__":
    Agent(Path(sys.argv[1])).serve()
