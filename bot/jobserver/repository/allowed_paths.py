"""Decides which paths a job may change: those that patterns allow; files that run must be named. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase, translate
from pathlib import PurePosixPath
from unicodedata import category, normalize

from bot.runtime.text import without_misleading

_HARMLESS_DOTS = frozenset({
    ".authors.yml", ".git-blame-ignore-revs", ".gitbook", ".gitignore", ".gitkeep", ".keep", ".mailmap", ".meta.yml",
    ".mintignore", ".nav.yml", ".nojekyll", ".pages", ".spelling", ".wordlist.txt",
})  # fmt: skip
"""Every other name with a leading dot belongs to git, a code host, CI, an editor, an agent or a tool."""
_CONTENT = frozenset({
    ".adoc", ".asciidoc", ".avif", ".css", ".csv", ".gif", ".htm", ".html", ".ico", ".ipynb", ".jpeg", ".jpg",
    ".markdown", ".md", ".mdown", ".mdx", ".mp4", ".otf", ".pdf", ".png", ".rst", ".svg", ".ttf", ".webm", ".webp",
    ".woff", ".woff2",
})  # fmt: skip
"""File types of pages and pictures: `dockerfile.md` is about a Dockerfile."""
_AGENTS_PAGES = frozenset({
    "agent.md", "agents.md", "agents.override.md", "claude.local.md", "claude.md", "codex.md",
    "copilot-instructions.md",
    "gemini.md", "qwen.md", "warp.md",
})  # fmt: skip
_BUILD_FILES = (
    # owners, CI and hosts
    "codeowners", "appveyor.y*ml", "azure-pipelines*", "bitbucket-pipelines*", "buildspec*.y*ml", "cloudbuild*",
    "jenkinsfile*", "renovate.json*", "lefthook*", "netlify.toml", "vercel.*", "now.json", "wrangler.*", "amplify.y*ml",
    "app.y*ml", "firebase.json", "fly*.toml", "heroku.yml", "procfile*", "render.y*ml", "readthedocs.y*ml",
    "static.json",
    # packages and what they lock
    "*.lock", "*.lockb", "*-lock.*", "*shrinkwrap.json", "package.json", "package.json5", "package.y*ml", "pnpm-*",
    "deno.json*", "bower.json", "jsr.json", "go.mod", "go.sum", "go.work*", "cargo.toml", "composer.json", "gemfile*",
    "pipfile*", "pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini", "uv.toml", "poetry.toml", "pip.conf",
    "constraints*.txt", "*requirements*.txt", "environment.y*ml", "mix.exs", "pom.xml", "gradle.properties", "gradlew*",
    "mvnw*", "*.gemspec", "*.csproj", "*.sln", "directory.build.*", "nuget.config", "mise.toml", "mise.*.toml",
    # builds and containers
    "makefile*", "gnumakefile*", "*.mk", "cmakelists.txt", "*.cmake", "justfile", "*.just", "taskfile*", "rakefile*",
    "build", "*.bazel", "workspace", "meson.build", "meson_options.txt", "sconstruct", "earthfile", "tiltfile",
    "vagrantfile", "snakefile", "dockerfile*", "*.dockerfile", "containerfile*", "*compose*.y*ml", "devfile.y*ml",
    "skaffold.y*ml", "guardfile", "brewfile*", "dangerfile*", "fastfile", "podfile*",
    # site generators, and programs that load others according to their settings
    "*.config.*", "conf.py", "conftest.py", "hooks.py", "macros.py", "gatsby-*", "gulpfile*", "gruntfile*",
    "sidebars.*",
    "tsconfig*.json", "jsconfig*.json", "turbo.json", "nx.json", "lerna.json", "project.json", "rush.json",
    "_config*.y*ml",
    "config.toml", "config.y*ml", "hugo.toml", "hugo.y*ml", "hugo.json", "book.toml", "book.json", "mkdocs*.y*ml",
    "zensical.toml", "_quarto*.y*ml", "myst.y*ml", "antora-playbook*", "*-playbook.y*ml", "doxyfile*", "docfx.json",
    "typedoc.json", "jsdoc.json", "vale.ini", "biome.json*",
    # agents and editors
    "mcp.json", "opencode.json*", "crush.json", "*.code-workspace", "*.sublime-project", "*.mdc",
)  # fmt: skip
_PROGRAMS = frozenset({
    ".astro", ".awk", ".bash", ".bat", ".bzl", ".c", ".cc", ".cjs", ".clj", ".cmd", ".com", ".cpp", ".cs", ".csh",
    ".cts", ".dart", ".dll", ".dylib", ".erl", ".ex", ".exe", ".exs", ".fish", ".fs", ".go", ".gradle", ".groovy",
    ".h", ".hcl", ".hpp", ".hs", ".jar", ".java", ".jl", ".js", ".jsx", ".ksh", ".kt", ".kts", ".lua", ".m", ".mjs",
    ".ml", ".mm", ".mts", ".nim", ".nix", ".node", ".php", ".pl", ".pm", ".ps1", ".psm1", ".pth", ".py", ".pyc",
    ".pyw", ".r", ".rake", ".rb", ".rs", ".scala", ".sh", ".so", ".star", ".svelte", ".swift", ".tf", ".ts", ".tsx",
    ".vb", ".vbs", ".vue", ".wasm", ".zig", ".zsh",
})  # fmt: skip
_BUILD = re.compile("|".join(map(translate, _BUILD_FILES)))
_SHORT_OF_WINDOWS = re.compile(r"[^.~]{1,6}~[0-9]{1,6}(?:\.[^.]{0,3})?")
"""A short name on Windows, which may mean another file: GITHUB~1 is `.github`, PACKAG~1.JSO is `package.json`."""
_MARKS = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})
EVERYTHING = "**"
_WILDCARD = re.compile(r"[*?\[]")


class Held(Enum):
    """Why a part of a path is held out unless a pattern names it."""

    NAME = auto()
    PROGRAM = auto()
    """Because of its file type: a pattern such as `*.py` allows it."""


def folded(name: str) -> str:
    """Returns the form in which names are compared: equal for names that are the same file on some file system.

    It has no upper case, accents, invisible characters, or characters that Windows strips from the end.
    """
    if not name.isascii():
        plain = normalize("NFKD", without_misleading(name))
        name = "".join(sign for sign in plain if category(sign) not in _MARKS)
    return name.upper().casefold().partition(":")[0].strip("\0\t\r\n").rstrip(" .")


def held_parts(path: PurePosixPath) -> tuple[Held | None, ...]:
    """Returns for each part of a path why it is held out, or None."""
    *folders, name = path.parts
    return (*map(_held_folder, folders), _held_file(name, at_root=not folders))


def _held_folder(name: str) -> Held | None:
    return Held.NAME if any(map(_is_dotted, name.split("\\"))) else None


def _held_file(name: str, *, at_root: bool) -> Held | None:
    *folders, last = name.split("\\")  # as Windows reads it
    if any(map(_is_dotted, (*folders, last))) or _steers_agents(last, at_root=at_root):
        return Held.NAME
    plain = folded(last)
    ending = PurePosixPath(plain).suffix
    if ending in _CONTENT:
        return None
    if _BUILD.fullmatch(plain):
        return Held.NAME
    return Held.PROGRAM if ending in _PROGRAMS else None


def _is_dotted(name: str) -> bool:
    plain = folded(name)
    return (plain.startswith(".") and plain not in _HARMLESS_DOTS) or _SHORT_OF_WINDOWS.fullmatch(plain) is not None


def _steers_agents(name: str, *, at_root: bool) -> bool:
    """Tells whether agents read a file as instructions; below the root, a lower-case `agents.md` is a page."""
    return folded(name) in _AGENTS_PAGES and (at_root or name != name.lower())


@dataclass(frozen=True)
class AllowedPaths:
    """Patterns of paths: `*` and `?` match within a name, `**` matches any folders.

    No wildcard matches the name of a file that runs something; it must be written out. For programs a wildcard with the
    file type is enough: `examples/**/*.py`.
    """

    patterns: tuple[str, ...] = (EVERYTHING,)

    def allows(self, path: PurePosixPath, *, is_program: bool = False) -> bool:
        """Tells whether a job may add, change or delete this file. `is_program`: its contents are a program's."""
        held = list(held_parts(path))
        held[-1] = Held.NAME if is_program and held[-1] is None else held[-1]
        return any(_matches(pattern, path.parts, held) for pattern in self.patterns)


def matches(pattern: str, path: str) -> bool:
    """Tells whether a pattern matches a path, whatever the file is."""
    parts = path.split("/")
    return _matches(pattern, parts, [None] * len(parts))


def _matches(pattern: str, parts: Sequence[str], held: Sequence[Held | None]) -> bool:
    """Tracks all possible positions in the pattern at once, so it takes at most parts times segments steps."""
    segments = normalize("NFC", pattern).split("/")

    def with_skipped(places: set[int]) -> set[int]:
        """Adds the positions after a `**` that matches no folder; as the last part it matches at least one name."""
        for place, segment in enumerate(segments[:-1]):
            if place in places and segment == EVERYTHING:
                places.add(place + 1)
        return places

    at = with_skipped({0})
    for name, reason in zip(parts, held, strict=True):
        taken = {place for place in at if place < len(segments) and _takes(segments[place], name, reason)}
        stays = {place for place in taken if segments[place] == EVERYTHING}
        at = with_skipped(stays | {place + 1 for place in taken})
    return len(segments) in at


def _takes(segment: str, name: str, held: Held | None) -> bool:
    """Tells whether a part of a pattern matches a name, which a wildcard does not if it is held out."""
    if segment == EVERYTHING:
        return held is None
    if not fnmatchcase(normalize("NFC", name), segment):
        return False
    ending = PurePosixPath(name).suffix
    is_of_type = held is Held.PROGRAM and segment.endswith(ending) and not _WILDCARD.search(ending)
    return held is None or is_of_type or not _WILDCARD.search(segment)
