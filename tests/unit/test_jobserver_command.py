"""What an editor's program gets: its arguments and its environment."""

from hypothesis import given
from hypothesis import strategies as st

from bot.jobserver.editors.command import child_environment, command_arguments
from bot.jobserver.settings import PREFIX

KEY = "planted-key-of-sixteen"


@given(prompt=st.text())
def test_a_prompt_is_never_an_option(prompt: str) -> None:
    program, bare, flag = command_arguments(("agent", "{prompt}", "--say={prompt}"), prompt)
    assert program == "agent"
    assert not bare.startswith("-")
    assert bare.lstrip(" ") == prompt.lstrip(" ")
    assert flag == f"--say={prompt}"


def test_a_childs_environment_is_an_allow_list() -> None:
    seen = {"PATH": "/bin", "A_KEY": "a", "OTHER": "o", "HOME": f"/x/{KEY}", f"{PREFIX}API_KEY": KEY}
    kept = child_environment(seen, ["A_KEY", f"{PREFIX}API_KEY"], secret=KEY)
    assert kept == {"PATH": "/bin", "A_KEY": "a", "GIT_TERMINAL_PROMPT": "0"}
