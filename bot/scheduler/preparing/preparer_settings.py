"""On what terms requests are prepared."""

from dataclasses import dataclass, field

from bot.domain.permissions import PermissionRules
from bot.domain.poll_pace import Polling
from bot.domain.projects import Projects
from bot.replies import SETTLING
from bot.runtime.secrets.masking import SecretMasker
from bot.scheduler.preparing.parts import FETCH_LIMITS, FetchLimits


@dataclass(frozen=True)
class PreparerSettings:
    """What requests are prepared by: who may, which projects there are, how jobs are polled, and for how many seconds a
    follow-up waits before it is sent; and how secrets are taken out of what goes along.
    """

    rules: PermissionRules
    projects: Projects
    polling: Polling
    settling: float = SETTLING
    limits: FetchLimits = FETCH_LIMITS
    masker: SecretMasker = field(default_factory=SecretMasker)
