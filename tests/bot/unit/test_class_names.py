"""A class name has one meaning in all of `bot/`."""

import ast
from collections import defaultdict
from pathlib import Path

BOT = Path(__file__).parents[3] / "bot"
SHAPES_OF_THE_JOB_API = {
    "AgentJob",
    "CancelBody",
    "ChangeKind",
    "Changes",
    "CheckResult",
    "CheckStatus",
    "FieldKind",
    "FileChange",
    "JobDetails",
    "PlanStep",
    "PromptBody",
    "PullRequestState",
    "QuestionField",
    "Requester",
    "StepStatus",
    "UploadedFile",
}
"""The job server publishes these and the bot reads them. Each has its own class of the same name,
since they are independent.
"""


def test_class_names_are_unique_except_job_api_shapes() -> None:
    rooms: dict[str, list[str]] = defaultdict(list)
    for module in sorted(BOT.rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                rooms[node.name].append(module.relative_to(BOT).parts[0])
    twins = {name: sorted(found) for name, found in rooms.items() if len(found) > 1}
    assert {name: found for name, found in twins.items() if name not in SHAPES_OF_THE_JOB_API} == {}
    assert {name for name, found in twins.items() if found.count("jobserver") == 1} == SHAPES_OF_THE_JOB_API
