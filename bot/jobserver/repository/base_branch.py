"""The branch that jobs start from and merge into. It may get another name while the server runs."""

import logging
from dataclasses import dataclass

from bot.jobserver.errors import GitError
from bot.jobserver.settings import PREFIX

logger = logging.getLogger(__name__)


@dataclass
class BaseBranch:
    """`is_default`: it is the one that the repository's HEAD names, and is followed; else a setting names it."""

    name: str
    is_default: bool = True

    def follow(self, default: str) -> None:
        """Goes on with the repository's default branch in place of one that is gone.

        Raises:
            GitError: a setting names the one that is gone.
        """
        if not self.is_default:
            raise GitError(
                f"the base branch {self.name} is not in the repository any more; its default branch is {default}: "
                f"set {PREFIX}BASE_BRANCH to that, or to another one that is there"
            )
        logger.warning("the base branch %s is gone: the repository's default one, %s, is used now", self.name, default)
        self.name = default
