"""The snapshot file of client keys, of what they have spent on other hosts, of actions on routes and of stopped arms.

The shipper writes it and workers read it; no worker connects to the database. The modification time of a second file is
the time at which the store last confirmed the snapshot. It distinguishes an unknown key from a store that is down.

The file is JSON in one line, its CRC-32 in the next, and spaces. It is replaced as a whole. On a full disk it is
overwritten instead, in the space that it has, because a revocation must reach the workers. A reader that meets a file
half overwritten finds another CRC-32, and tries again.
"""

import json
import logging
import os
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditor.domain.actions import RouteAction
from auditor.domain.keys import Key, Right

log = logging.getLogger(__name__)

#: Seconds after which an unconfirmed snapshot no longer proves that a key does not exist.
FRESH_S = 10.0
#: Bytes. The size of the file is a multiple of it, and at least half of it is free for later changes.
_ROOM = 32 << 10


@dataclass(frozen=True, slots=True)
class KeySnapshot:
    """All client keys, revoked ones included, by the hash of their secret."""

    keys: dict[bytes, Key]
    #: Nano-USD that a key, by its id, has spent outside of this host's ledger. A key that is absent has spent nothing.
    spent_elsewhere: dict[str, int] = field(default_factory=dict)
    #: In the order in which they apply; some may have expired.
    actions: tuple[RouteAction, ...] = ()
    stopped: frozenset[str] = frozenset()  #: arms of trials (`auditor.trials.assignment.stop_key`)

    @property
    def any_client_key(self) -> bool:
        """Whether a key for applications exists, revoked ones included: then every request needs a key."""
        return any(key.is_for_clients for key in self.keys.values())


def write(
    path: Path,
    keys: Iterable[Key],
    spent_elsewhere: Mapping[str, int] | None = None,
    actions: Iterable[RouteAction] = (),
    stopped: Iterable[str] = (),
) -> None:
    """Replace the snapshot. It contains hashes, never keys.

    Raises
    ------
    OSError
        It could neither be replaced nor overwritten.
    """
    document = {
        "keys": [
            {
                "id": key.id,
                "name": key.name,
                "hash": key.hash.hex(),
                "models": key.models,
                "rights": sorted(key.rights),
                "rpm": key.rpm,
                "tpm": key.tpm,
                "budget": key.budget,
                "expires_at": key.expires_at.isoformat() if key.expires_at else None,
                "revoked": key.revoked,
            }
            for key in keys
        ],
        "spent_elsewhere": dict(spent_elsewhere or {}),
        "actions": [{**asdict(action), "expires_at": action.expires_at.isoformat()} for action in actions],
        "stopped_arms": sorted(stopped),
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(document).encode()
    text += b"\n%08x\n" % zlib.crc32(text)
    try:
        _replace(path, text.ljust(-(-(len(text) + _ROOM // 2) // _ROOM) * _ROOM))
    except OSError:
        if not _overwrite(path, text):
            raise


def _replace(path: Path, data: bytes) -> None:
    unnamed = path.with_suffix(".new")
    try:
        with os.fdopen(os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        unnamed.replace(path)
    except OSError:
        unnamed.unlink(missing_ok=True)
        raise


def _overwrite(path: Path, data: bytes) -> bool:
    """Write into the blocks that the file has, and return whether it was possible."""
    try:
        with path.open("rb+", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return len(data) <= size and file.write(data.ljust(size)) == size
    except OSError:
        return False


def confirm(path: Path) -> None:
    """Record that the store has confirmed the snapshot now."""
    confirmation(path).touch(0o600)


def confirmation(path: Path) -> Path:
    """Return the file whose modification time is the last confirmation of the snapshot at ``path``."""
    return path.with_suffix(".confirmed")


def read(path: Path) -> KeySnapshot:
    """Read the snapshot.

    Raises
    ------
    OSError, ValueError
        The file does not exist, or is not a snapshot.
    """
    text, _, checksum = path.read_bytes().partition(b"\n")
    if checksum.strip() != b"%08x" % zlib.crc32(text):
        raise ValueError(f"{path}: not a snapshot: its checksum is not that of its text")
    try:
        document = json.loads(text)
        keys = [_read_key(entry) for entry in document["keys"]]
        spent = {key_id: int(nano_usd) for key_id, nano_usd in document["spent_elsewhere"].items()}
        # A shipper of an earlier release writes no actions, and no stopped arms.
        actions = tuple(_read_action(entry) for entry in document.get("actions", ()))
        stopped = frozenset(document.get("stopped_arms", ()))
    except (KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{path}: not a snapshot: {error!r}") from None
    return KeySnapshot({key.hash: key for key in keys}, spent, actions, stopped)


def _read_key(entry: dict[str, Any]) -> Key:
    return Key(
        id=entry["id"],
        name=entry["name"],
        hash=bytes.fromhex(entry["hash"]),
        models=tuple(entry["models"]),
        rights=frozenset(Right(right) for right in entry["rights"]),
        rpm=entry["rpm"],
        tpm=entry["tpm"],
        budget=entry["budget"],
        expires_at=datetime.fromisoformat(entry["expires_at"]).astimezone(UTC) if entry["expires_at"] else None,
        revoked=entry["revoked"],
    )


def _read_action(entry: dict[str, Any]) -> RouteAction:
    expires_at = datetime.fromisoformat(entry["expires_at"]).astimezone(UTC)
    return RouteAction(**{**entry, "to": tuple(entry["to"]), "expires_at": expires_at})


class SnapshotReader:
    """A worker's copy of the snapshot, which is read again when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)
        self._seen: tuple[int, int, int] | None = None
        self._confirmed = 0.0
        self._logged = ""
        self.current: KeySnapshot | None = None

    def refresh(self) -> None:
        """Read the file if it has changed; otherwise this costs two ``stat`` calls. An invalid file is ignored."""
        try:
            version = self._version()
            if version != self._seen:
                self.current = read(self._path)
                self._seen = version
            self._confirmed = confirmation(self._path).stat().st_mtime
        except FileNotFoundError:  # the shipper has not written it yet
            return
        except (OSError, ValueError) as error:
            if self._logged != str(error):  # once for each cause, because this is tried twice a second
                self._logged = str(error)
                log.warning("%s cannot be read: %s; the keys that were read last stay valid", self._path, error)
            return
        self._logged = ""

    def has_changed(self) -> bool:
        """Return whether the file is another than the one that was read last, by one ``stat`` call."""
        try:
            return self._version() != self._seen
        except OSError:
            return False

    def _version(self) -> tuple[int, int, int]:
        stat = os.stat(self._name)  # noqa: PTH116 -- a request without a key waits for it
        return stat.st_ino, stat.st_size, stat.st_mtime_ns

    def fresh(self) -> bool:
        """Return whether the store has confirmed the snapshot recently."""
        return time.time() - self._confirmed <= FRESH_S
