"""The folders of jobs: for each one the copy that is edited, the home of its programs, and its log."""

from pathlib import Path

from bot.jobserver.errors import JobServerError
from bot.jobserver.repository.removal import remove
from bot.jobserver.sandbox.interface import Workspace


class JobFolders:
    """`directory` holds `jobs/<id>/copy`, `jobs/<id>/home` and `logs/<id>.log`. All methods block."""

    def __init__(self, directory: Path) -> None:
        self._jobs = directory / "jobs"
        self._logs = directory / "logs"
        self._of_older_versions = directory / "copies"

    def prepare(self) -> None:
        """Makes the folders, and removes the copies that a killed server left."""
        remove(self._of_older_versions)
        for folder in (self._jobs, self._logs):
            folder.mkdir(mode=0o700, exist_ok=True)
        for job in self._jobs.iterdir():
            self._remove_all_but_home(job)

    def log(self, job_id: str) -> Path:
        return self._logs / f"{job_id}.log"

    def workspace(self, job_id: str) -> Workspace:
        """Returns the two folders; they are there after `make_empty`."""
        return Workspace(self._jobs / job_id / "copy", self._jobs / job_id / "home")

    def make_empty(self, job_id: str) -> None:
        """Makes the job's folders, and empties the copy.

        Raises:
            JobServerError: the disk does not let it.
        """
        workspace = self.workspace(job_id)
        self._remove_all_but_home(workspace.copy.parent)
        try:
            for folder in (workspace.copy, workspace.home):
                folder.mkdir(mode=0o700, parents=True, exist_ok=folder == workspace.home)
        except OSError as error:
            raise JobServerError(f"the job's folder cannot be made: {error.strerror}") from error

    def clear(self, job_id: str) -> None:
        """Removes what only a running instruction needs; the programs' home stays."""
        self._remove_all_but_home(self._jobs / job_id)

    def delete(self, job_id: str) -> None:
        """Removes all that is left of a job."""
        remove(self._jobs / job_id)
        remove(self.log(job_id))

    def _remove_all_but_home(self, job: Path) -> None:
        if job.is_dir():
            for path in job.iterdir():
                if path.name != "home":
                    remove(path)
