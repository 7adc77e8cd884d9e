"""Checks that not everybody on the machine may read the files with settings and secrets."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bot.app.settings.config import Config
from bot.domain.findings import Finding
from bot.runtime.private_files import everybody_may_read

FILES = "files"


def file_findings(environ: Mapping[str, str], config: Config | None, env_files: Iterable[Path]) -> Iterator[Finding]:
    """Looks at the files that variables name, the projects' key files, and `env_files`, which variables came from."""
    files = dict.fromkeys([*env_files, *_named_by_variables(environ), *_key_files(config)])
    exposed = [file for file in files if everybody_may_read(file)]
    if files:
        private = len(files) - len(exposed)
        yield Finding.ok(FILES, f"{private} of {len(files)} files with settings and secrets are private.")
    else:
        yield Finding.ok(FILES, "No settings or secrets come from files.")
    for file in exposed:
        yield Finding.warning(
            f"{FILES}.{file}",
            f"Everybody on this machine may read {file}.",
            why="Whoever reads a token or a key in it can act as Pagehand.",
            fix=f"Run `chmod o-r {file}`. If others use this machine, replace the secrets as well: they may be known.",
        )


def _named_by_variables(environ: Mapping[str, str]) -> Iterator[Path]:
    names = {str(field.alias) for field in Config.model_fields.values()}
    for variable, file in environ.items():
        name = variable.removesuffix("_FILE")
        if file and name != variable and (name in names or name.startswith("PAGEHAND_")):
            yield Path(file)


def _key_files(config: Config | None) -> Iterator[Path]:
    for secret in config.rotating_secrets if config is not None else ():
        if secret.file is not None:
            yield secret.file.path
