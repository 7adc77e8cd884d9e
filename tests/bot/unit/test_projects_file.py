"""The file with several projects: its values, and how its errors are reported."""

from pathlib import Path

import pytest

from bot.app.settings.config import Config, load
from bot.domain.projects import ChannelSettings, JobApiAbilities, PostMode, ReplyMode
from bot.errors import ConfigError

SLACK = {"SLACK_BOT_TOKEN": "xoxb-planted-bot", "SLACK_APP_TOKEN": "xapp-planted-app"}
JOB_API = {"JOB_API_URL": "https://jobs.example.org", "JOB_API_KEY": "planted-key"}
CHANNEL_ID = "must be a channel id, like C0123ABCD (Slack shows it at the end of the channel's details)"
TWO = """
[[projects]]
name = "guides"
project = "prj_guides"
words = ["install guide", "tutorial"]

[[projects]]
name = "api"
project = "prj_api"
url = "https://api.example.org/"
key_file = "api.key"
get_path = "/jobs/{id}"
timeout = 7
idempotent = true
requester = true
cancel = true
files = true
instruction = true
channels = ["C1"]

[[channels]]
id = "C2"
project = "API"
replies = "mentions"
broadcast = true
mention = false
posts = "ends"
"""


def loaded(directory: Path, text: str, **environ: str) -> Config:
    file = directory / "projects.toml"
    file.write_text(text, encoding="utf-8")
    return load({**SLACK, "PAGEHAND_PROJECTS": str(file), **environ})


def faults(directory: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, text, **environ)
    listed = caught.value.faults
    assert all(fault.startswith("PAGEHAND_PROJECTS") for fault in listed), listed
    assert "planted" not in "".join(listed)
    return [fault.removeprefix("PAGEHAND_PROJECTS: ") for fault in listed]


def test_a_project_inherits_missing_values_from_the_settings(tmp_path: Path) -> None:
    (tmp_path / "api.key").write_text("planted-api-key\n")
    config = loaded(tmp_path, TWO, **JOB_API, PAGEHAND_REPLIES="participants", JOB_API_TIMEOUT="9")
    guides, api = config.projects
    assert (guides.id, guides.job_api.base_url, guides.job_api.timeout) == ("prj_guides", JOB_API["JOB_API_URL"], 9)
    assert guides.job_api.api_key.newest == "planted-key"
    assert guides.project.abilities == JobApiAbilities()
    assert (api.id, api.job_api.base_url, api.job_api.timeout) == ("prj_api", "https://api.example.org", 7)
    assert api.job_api.api_key.newest == "planted-api-key"
    assert (api.job_api.get_path, api.job_api.can_cancel) == ("/jobs/{id}", True)
    assert api.project.abilities == JobApiAbilities(
        idempotent=True, requester=True, cancel=True, files=True, instruction=True
    )
    known = config.known_projects
    assert known.names == ("guides", "api")
    assert known.all[1].channels == {"C1", "C2"}
    assert known.channel("C2") == ChannelSettings(
        ReplyMode.MENTIONS, broadcast=True, mention=False, posts=PostMode.ENDS
    )
    assert (known.posts("C2"), known.posts("C9")) == (PostMode.ENDS, PostMode.ALL)
    assert known.channel("C9") == ChannelSettings(ReplyMode.PARTICIPANTS)


def test_without_a_file_the_settings_form_one_project() -> None:
    config = load({**SLACK, **JOB_API, "JOB_API_PROJECT": "prj", "JOB_API_CANCEL": "true"})
    (only,) = config.projects
    assert (only.project.name, only.id) == ("prj", "prj")
    assert only.project.abilities == JobApiAbilities(cancel=True)


def test_with_a_file_the_job_api_settings_are_optional(tmp_path: Path) -> None:
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://a.example"\nkey_variable = "A_KEY"'
    config = loaded(tmp_path, text, A_KEY="planted-a-key")
    assert config.projects[0].job_api.api_key.newest == "planted-a-key"
    assert "planted-a-key" in config.secrets
    assert "planted" not in repr(config)


def test_a_key_variable_can_name_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted-a-key")
    text = '[[projects]]\nname = "a"\nproject = "p"\nkey_variable = "A_KEY"'
    config = loaded(tmp_path, text, **JOB_API, A_KEY_FILE=str(tmp_path / "key"))
    assert config.projects[0].job_api.api_key.newest == "planted-a-key"


def test_a_plain_http_address_is_warned_about_for_each_project(tmp_path: Path) -> None:
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "http://a.example"\nkey_variable = "A_KEY"'
    (warning,) = loaded(tmp_path, text, A_KEY="planted-a-key").warnings
    assert warning.startswith("the url of a begins with http://")


def test_all_malformed_values_are_reported_at_once_with_their_place(tmp_path: Path) -> None:
    """Nothing in the file is quoted."""
    text = """
    [[projects]]
    name = "two words planted"
    url = "planted"
    key_file = "planted-none"
    key_variable = "not a name, but planted"
    timeout = "20"
    cancel = "yes"
    words = ["ok", "?!"]
    channels = "C1"
    urll = 1

    [[projects]]
    name = "b"
    project = "p"
    channels = ["#planted", "C7"]

    [[channels]]
    id = "C7"
    replies = "planted"
    """
    names = "name, project, url, key_file, key_variable, get_path, timeout"
    more = "idempotent, requester, cancel, files, instruction, channels, words"
    assert sorted(faults(tmp_path, text, **JOB_API)) == sorted(
        [
            "project 1, name: must be one word of at most 60 letters, digits, dots and hyphens, because people type it",
            "project 1, project: is missing",
            "project 1, url: must begin with http:// or https:// and name a host",
            "project 1, key_file: names a file that cannot be read: No such file or directory",
            "project 1, key_variable: must be the name of an environment variable (not the key itself)",
            "project 1, timeout: must be a number",
            "project 1, cancel: must be true or false",
            "project 1, words, entry 2: must contain a letter or a digit",
            "project 1, channels: must be a list, in [ ]",
            f"project 1: it has an entry urll that is unknown; the known ones are {names}, {more}",
            f"project 2, channels, entry 1: {CHANNEL_ID}",
            "channel 1, replies: must be 'everyone', 'participants' or 'mentions'",
        ]
    )


def test_all_contradictions_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("planted-key")
    text = """
    [[projects]]
    name = "one"
    project = "o"
    key_file = "key"
    key_variable = "ONE_KEY"
    words = ["ok"]

    [[projects]]
    name = "twice"
    project = "p"
    words = ["OK!"]

    [[projects]]
    name = "TWICE"
    project = "p"

    [[channels]]
    id = "C7"
    project = "third"

    [[channels]]
    id = "C7"
    project = "planted"
    """
    assert sorted(faults(tmp_path, text, **JOB_API, ONE_KEY="planted-other-key")) == [
        "channel 1, project: no project has this name",
        "channel 2, project: no project has this name",
        "channels 1 and 2 have the same id",
        "project 1: it has both key_file and key_variable: remove one of them",
        "projects 1 and 2 have the same word",
        "projects 2 and 3 have the same name",
        "projects 2 and 3 have the same project (at the same url)",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "[[projects]]: is missing"),
        ("projects = []", "[[projects]]: must occur at least once, and at most 100 times"),
        ("projects = 1", "[[projects]]: must be a list, in [ ]"),
        ("projects = [1]", "project 1: must be a table"),
        (
            'more = 1\n[[projects]]\nname = "a"\nproject = "p"',
            "it has an entry more that is unknown; the known ones are [[projects]], [[channels]]",
        ),
    ],
)
def test_a_file_of_the_wrong_shape_is_explained(tmp_path: Path, text: str, fault: str) -> None:
    assert faults(tmp_path, text, **JOB_API) == [fault]


def test_an_unreadable_file_is_reported_with_the_rest(tmp_path: Path) -> None:
    """Nothing is reported as missing that the file may contain."""
    file = tmp_path / "projects.toml"
    environ = {**SLACK, "PAGEHAND_PROJECTS": str(file), "PORT": "planted"}

    def listed() -> list[str]:
        with pytest.raises(ConfigError) as caught:
            load(environ)
        return [fault for fault in caught.value.faults if not fault.startswith("PORT ")]

    assert listed() == ["PAGEHAND_PROJECTS names a file that cannot be read: No such file or directory"]
    file.write_bytes(b"\xff\xfeplanted")
    assert listed() == ["PAGEHAND_PROJECTS names a file that cannot be read: it is not text"]
    file.write_text("[[projects]]\nname = planted")
    assert listed() == ["PAGEHAND_PROJECTS names a file that is not TOML (at line 2, column 8)"]


def test_a_key_is_used_only_by_its_project(tmp_path: Path) -> None:
    """The key in the settings belongs to the address in the settings."""
    text = '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://other.example"'
    assert faults(tmp_path, text, **JOB_API) == [
        "project 1: it has a url of its own, so it needs key_file or key_variable: JOB_API_KEY is not sent elsewhere"
    ]
    same = text.replace("https://other.example", f"{JOB_API['JOB_API_URL']}/")
    assert loaded(tmp_path, same, **JOB_API).projects[0].job_api.base_url == JOB_API["JOB_API_URL"]


def test_a_value_missing_from_file_and_settings_is_reported(tmp_path: Path) -> None:
    """Both the address and the key are required."""
    assert faults(tmp_path, '[[projects]]\nname = "a"\nproject = "p"') == [
        "project 1: it has no url, and JOB_API_URL is not set",
        "project 1: it has neither key_file nor key_variable, and JOB_API_KEY is not set",
    ]


def test_a_channel_belongs_to_one_project(tmp_path: Path) -> None:
    """Wherever that is configured."""
    text = """
    projects = [{ name = "a", project = "p", channels = ["C1"] }, { name = "b", project = "q" }]
    channels = [{ id = "C1", project = "b" }]
    """
    assert faults(tmp_path, text, **JOB_API) == ["projects 1 and 2 have the same channel"]
    assert loaded(tmp_path, text.replace('project = "b"', 'project = "A"'), **JOB_API).known_projects.all[0].channels


@pytest.mark.parametrize("key", ["planted_a1b2c3d4", "PLANTED7EXAMPLE7KEY"])
def test_a_key_in_place_of_a_variable_name_is_not_printed(tmp_path: Path, key: str) -> None:
    """Many keys look like names."""
    text = f'[[projects]]\nname = "a"\nproject = "p"\nkey_variable = "{key}"'
    (fault,) = faults(tmp_path, text, **JOB_API)
    assert "key_variable: names a variable that is not set" in fault
    assert key not in fault


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 0), (0o644, 1)])
def test_a_world_readable_key_file_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: int
) -> None:
    (tmp_path / "key").write_text("planted-key")
    (tmp_path / "key").chmod(mode)
    loaded(tmp_path, '[[projects]]\nname = "a"\nproject = "p"\nurl = "https://a.example"\nkey_file = "key"', **JOB_API)
    assert len(caplog.records) == warned
    assert all("everybody on this machine may read" in each.getMessage() for each in caplog.records)
    assert "planted-key" not in caplog.text
