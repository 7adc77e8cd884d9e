"""Which paths a job may change, and which names are held out anywhere."""

from pathlib import PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.jobserver.repository.allowed_paths import AllowedPaths, folded
from bot.jobserver.repository.listings import folders_of
from bot.jobserver.settings import JobServerSettings

pytestmark = pytest.mark.promise("files that run")

RUNS = [
    ".github/workflows/x.yml", ".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab-ci.yml",
    "ci/Jenkinsfile",
    ".circleci/config.yml", "azure-pipelines.yml", ".claude/settings.json", ".cursor/rules/a.mdc", ".vscode/tasks.json",
    ".mcp.json", ".devcontainer/devcontainer.json", "AGENTS.md", "docs/CLAUDE.md", "docs/Agents.md", "agents.md",
    ".gitattributes", ".gitmodules", ".git-hooks/pre-commit", "package.json", "docs/package.json", "package-lock.json",
    "pnpm-lock.yaml", "yarn.lock", "uv.lock", "requirements.txt", "docs/requirements-docs.txt", "conf.py",
    "docs/conf.py",
    "docusaurus.config.ts", "astro.config.mjs", "Makefile", "docs/Makefile", "Dockerfile", "Dockerfile.dev", "a.sh",
    ".readthedocs.yaml", "netlify.toml", "vercel.json", ".vitepress/config.mts", "book.toml", "_config.yml", ".npmrc",
    "mkdocs.yml", "docs/_ext/x.py", "sidebars.js", "theme/x.tsx", ".env", ".pre-commit-config.yaml", "go.mod",
    "docs/.github/workflows/x.yml", "compose.yaml", "docker-compose.override.yml", "docs/make.bat", "pyproject.toml",
]  # fmt: skip
CONTENT = [
    "README.md", "docs/a.md", "docs/a.mdx", "docs.json", "mint.json", "SUMMARY.md", "docs/_sidebar.md", "a/b/c/d.rst",
    "docs/agents.md", "docs/guides/claude.md", "docs/dockerfile.md", "docs/Makefile.md", "images/dockerfile.png",
    ".gitignore", "docs/.pages", ".gitbook/assets/a.png", "docs/openapi.yaml", "api/spec.json", "static/site.css",
    "LICENSE",
    "docs/github/workflows.md", "docs/package.json.md", "docs/conf.py.md", "CHANGELOG", "docs/con~fig.md",
    "i18n/de.json",
]  # fmt: skip
DISGUISES = [
    ".GitHub/Workflows/x.yml", ".git\u200bhub/workflows/x.yml", ".github./workflows/x.yml", ".github /x.yml",
    "GITHUB~1/x.yml",
    ".github::$INDEX_ALLOCATION/x.yml", "PACKAGE.JSON", "package.json::$DATA", "pac\u212aage.json",
    ".g\u0131thub/x.yml", ".G\u0130THUB/x.yml", "make\ufb01le", "\uff0egithub/x.yml", "docs\\.github\\x.yml",
    "conf.py. ",
    "\u2024github/workflows/x.yml", "PACKAG~1.JSO", "\ufeff.github/x.yml", "Conf.Py", "docker\u00adfile", "AGENTS.md.",
]  # fmt: skip
EVERYTHING = AllowedPaths()


def allows(path: str, *patterns: str) -> bool:
    return AllowedPaths(patterns or ("**",)).allows(PurePosixPath(path))


@pytest.mark.parametrize("path", RUNS)
def test_executable_paths_are_held_out_unless_named(path: str) -> None:
    """A pattern with a wildcard in its place is no name; the path itself, written out, is."""
    name = PurePosixPath(path).name
    assert not allows(path)
    assert not allows(path, "**", f"**/{name[:1]}*", "docs/**", "*", "**/*.*")
    assert allows(path, path)


@pytest.mark.parametrize("path", CONTENT)
def test_readable_documents_are_content(path: str) -> None:
    """Even about executables."""
    assert allows(path)


@pytest.mark.parametrize("path", DISGUISES)
def test_a_name_some_system_confuses_with_another_is_held_out(path: str) -> None:
    """Case, accents, invisible characters, what Windows cuts off, its short names, and its separator."""
    assert not allows(path)


@pytest.mark.parametrize(
    ("pattern", "path", "is_allowed"),
    [
        ("docs/**", "docs/a/b.md", True), ("docs/**", "docs", False), ("docs/**", "blog/a.md", False),
        ("docs/**", "Docs/a.md", False), ("docs/*", "docs/a/b.md", False), ("*.md", "a.md", True), ("*.md",
        "a/b.md", False),
        ("**/*.md", "b.md", True), ("**/*.md", "a/b/c.md", True), ("a/**/b.md", "a/b.md", True),
        ("a/**/b.md", "a/x/y/b.md", True), ("**", ".github/x.yml", False), (".github/**", ".github/x/y.yml", True),
        (".github/**", ".github/.vscode/x", False), ("**/package.json", "a/package.json", True),
        ("examples/**/*.py", "examples/a/b.py", True), ("examples/**", "examples/a.py", False), ("**/*.py",
        "conf.py", False),
        ("**/*.p?", "a.py", False), ("b\u00fccher/*", "bu\u0308cher/a.md", True), ("docs/[ab].md", "docs/a.md", True),
    ],
)  # fmt: skip
def test_patterns_match_paths(pattern: str, path: str, is_allowed: bool) -> None:  # noqa: FBT001
    """`*` stays within a name, `**` crosses folders, and neither matches executables."""
    assert allows(path, pattern) is is_allowed


def test_a_file_that_starts_as_a_program_is_one_under_any_name() -> None:
    """Only its own name allows it."""
    path = PurePosixPath("bin/tool")
    assert AllowedPaths(("bin/*",)).allows(path)
    assert not AllowedPaths(("bin/*",)).allows(path, is_program=True)
    assert AllowedPaths(("bin/tool",)).allows(path, is_program=True)


NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in {".", ".."}
)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map("/".join)


@given(PATHS, st.sampled_from([".github", ".Claude", ".\u200bvscode", ".git\u00adhub"]), st.integers(0, 6))
@example("a/b", ".github", 1)
def test_wildcards_allow_no_path_through_a_held_out_folder(path: str, folder: str, at: int) -> None:
    """Wherever it is."""
    parts = [*path.split("/")[:at], folder, *path.split("/")[at:], "x.md"]
    assert not allows("/".join(parts), "**", "*/**", "**/*", "**/?*/**", "**/*.md")


@given(PATHS)
def test_folding_is_idempotent_and_case_insensitive(path: str) -> None:
    """Folding a folded name changes nothing."""
    once = folded(path)
    assert folded(once) == once
    assert folded(path.swapcase().upper()) == folded(path.upper())


def test_the_longest_pattern_and_path_are_matched_in_time() -> None:
    """A hundred `**` do not multiply."""
    pattern = "/".join(["**", "*a*a*a*b"] * 50)
    assert not allows("/".join(["a" * 250] * 60), pattern)


@pytest.mark.parametrize(
    "value", ["", "/docs/**", "docs//a", "../a", "docs/**,blog/**", "!docs", "{a,b}", "'a\\b'", "./a"]
)
def test_an_invalid_pattern_is_refused_at_start(value: str) -> None:
    """A setting that matches nothing would hold out everything, and one with a comma would look as if it did not."""
    with pytest.raises(ValidationError):
        JobServerSettings(repository="/x", api_key="a key of sixteen characters", paths=value)


def test_a_folder_with_a_slash_includes_everything_below() -> None:
    """People write it like this."""
    settings = JobServerSettings(repository="/x", api_key="a key of sixteen characters", paths="docs/ 'a b.md'")
    assert settings.paths == ("docs/**", "a b.md")


@given(st.lists(st.lists(st.text("ab.", min_size=1), min_size=1)))
def test_the_folders_of_paths_are_all_their_ancestors(names: list[list[str]]) -> None:
    """As in pathlib."""
    paths = [path for parts in names if (path := PurePosixPath(*parts)) != PurePosixPath()]
    assert folders_of(paths) == {folder for path in paths for folder in path.parents}
