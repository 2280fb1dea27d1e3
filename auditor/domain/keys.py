"""Client keys and what they may do. Only the owner has the key itself; everything else has its SHA-256."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from secrets import token_hex, token_urlsafe
from typing import Any

PREFIX = "sk-bias-"


class Right(StrEnum):
    """What a key may ask for beyond ordinary requests (``key create --allow``)."""

    PIN = "pin"  #: choose the deployment (``x-biasmeter-deployment``)
    ORIGIN = "origin"  #: mark audit traffic (``x-biasmeter-origin``, ``-ref``, ``-parent``)
    AUDIT_OFF = "audit-off"  #: keep a request out of the audit (``x-biasmeter-audit: off``)
    AUDIT = "audit"  #: use the auditor's API where it listens beyond this machine: read, and label answers


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """One client key as the store and the gateway know it."""

    id: str
    name: str
    hash: bytes  #: SHA-256 of the key
    models: tuple[str, ...] = ()  #: the models it may ask for; empty: all
    rights: frozenset[Right] = frozenset()
    rpm: int | None = None  #: requests a minute
    tpm: int | None = None  #: tokens a minute
    budget: float | None = None  #: USD
    expires_at: datetime | None = None
    revoked: bool = False

    def usable(self, now: datetime) -> bool:
        """Whether the key opens anything at ``now``."""
        return not self.revoked and (self.expires_at is None or now < self.expires_at)

    @property
    def is_for_clients(self) -> bool:
        """Whether the key is for applications; one whose only right is `Right.AUDIT` is for the auditor's API."""
        return self.rights != {Right.AUDIT}

    def may_ask_for(self, model: str) -> bool:
        """Whether the key's owner may ask for ``model``."""
        return not self.models or model in self.models

    @classmethod
    def of_row(cls, row: Mapping[Any, Any], *, revoked: bool) -> "Key":
        """Read a row of the store's ``client_keys``."""
        return cls(
            id=row["id"],
            name=row["name"],
            hash=row["hash"],
            models=tuple(row["models"]),
            rights=frozenset(Right(right) for right in row["rights"]),
            rpm=row["rpm"],
            tpm=row["tpm"],
            budget=row["budget"],
            expires_at=row["expires_at"],
            revoked=revoked,
        )


def new_secret() -> str:
    """Return a new key of 256 random bits."""
    return PREFIX + token_urlsafe(32)


def new_key_id() -> str:
    """Return a new id by which a key is listed and revoked."""
    return "key_" + token_hex(6)


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 that is stored of a key."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
