"""Files with secrets, replaced as by an orchestrator, and a clock that makes the next check due."""

from dataclasses import dataclass, field
from pathlib import Path

from bot.runtime.rotating_secrets import LOOK_EVERY, FileText, RotatingSecret, SecretFile

SETTING = "A_SECRET_FILE"


@dataclass
class SecretFileWorld:
    """A file that is replaced as Kubernetes does it: by a symbolic link to a new directory."""

    directory: Path
    at: float = 1000.0
    _number: int = field(default=0, init=False)

    @property
    def path(self) -> Path:
        return self.directory / "now" / "secret"

    def monotonic(self) -> float:
        return self.at

    def put(self, content: str | bytes) -> None:
        """Replaces the file, and lets enough time pass for the next check."""
        self._number += 1
        made = self.directory / f"version-{self._number}"
        made.mkdir(parents=True)
        (made / "secret").write_bytes(content if isinstance(content, bytes) else content.encode())
        (self.directory / "next").symlink_to(made.name)
        (self.directory / "next").replace(self.directory / "now")
        self.at += LOOK_EVERY

    def remove(self) -> None:
        self.path.unlink()
        self.at += LOOK_EVERY

    def text(self) -> FileText:
        """Returns the setting's text."""
        return FileText(self.path.read_text().strip(), SecretFile(self.path, SETTING))

    def secret(self) -> RotatingSecret:
        """Returns a secret of one or two words."""
        return RotatingSecret(self.text(), words, monotonic=self.monotonic)


def words(text: str) -> tuple[str, ...]:
    """Returns one or two words of at least eight characters."""
    found = tuple(text.split())
    if len(found) > 2 or any(len(word) < 8 for word in found):
        raise ValueError("must be one or two words of at least 8 characters")
    return found
