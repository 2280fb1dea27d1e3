"""The bootstraps of the gateway's child processes, and the files that the processes share."""

from dataclasses import dataclass, field
from pathlib import Path

from auditor.config import Config
from auditor.domain.keys import Key


@dataclass(frozen=True, kw_only=True, slots=True)
class Folders:
    """The shared files of the processes of one gateway, below ``data_dir/gateway``."""

    root: Path

    @property
    def spool(self) -> Path:
        """Segments of captured exchanges."""
        return self.root / "spool"

    @property
    def counters(self) -> Path:
        """Counter files."""
        return self.root / "counters"

    @property
    def slots(self) -> Path:
        """Slots and circuit breakers of the deployments. Like the counters, it is removed when the parent starts."""
        return self.counters / "deployments.board"

    @property
    def snapshot(self) -> Path:
        """The client keys as last read from the store."""
        return self.root / "keys.json"

    @property
    def limits(self) -> Path:
        """What client keys have used of their limits, and all that they have spent. It is never removed."""
        return self.root / "limits.table"


def folders(config: Config) -> Folders:
    """Return the paths of the gateway that ``config`` describes."""
    return Folders(root=config.data_dir / "gateway")


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerBootstrap:
    """What a worker receives at its start and after each reload."""

    config: Config
    generation: int  #: the number of reloads so far; the worker reports which one it serves
    number: int
    listen_fd: int
    audit_key: Key  #: the auditor's, on this host


@dataclass(frozen=True, kw_only=True, slots=True)
class ShipperBootstrap:
    """What the shipper receives at its start."""

    config: Config
    database_url: str = field(repr=False)
