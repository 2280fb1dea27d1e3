"""Define the message that starts an auditor process as a child of ``biasmeter up``."""

from dataclasses import dataclass, field
from enum import StrEnum

from auditor.config import Config


class AuditorTask(StrEnum):
    """The task of the process."""

    SERVE = "serve"
    MIGRATE = "migrate"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditorBootstrap:
    """Task, configuration and database of the process."""

    task: AuditorTask
    config: Config
    database_url: str = field(repr=False)
