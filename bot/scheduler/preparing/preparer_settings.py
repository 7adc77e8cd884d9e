"""On what terms requests are prepared."""

from dataclasses import dataclass, field

from bot.domain.jobs.poll_pace import Polling
from bot.domain.people.permissions import PermissionRules
from bot.domain.projects import Projects
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.preparing.parts import FETCH_LIMITS, FetchLimits


@dataclass(frozen=True)
class PreparerSettings:
    """What requests are prepared by: who may, which projects there are, how jobs are polled, within how many seconds
    replies are written that go out as one message; and how secrets are taken out of what goes along.
    """

    rules: PermissionRules
    projects: Projects
    polling: Polling
    merge_seconds: float = 0.0
    limits: FetchLimits = FETCH_LIMITS
    masker: SecretMasker = field(default_factory=SecretMasker)
