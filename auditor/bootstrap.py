"""What an auditor process is told when another process starts it (``tiltmeter up``)."""

from dataclasses import dataclass
from enum import StrEnum

from auditor.config import Config


class Task(StrEnum):
    """What it is started for."""

    SERVE = "serve"
    MIGRATE = "migrate"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditorBootstrap:
    """What it is told."""

    task: Task
    config: Config
    database_url: str
