"""Client keys, what they may do, and roles. Only the owner has the key itself; everything else has its SHA-256."""

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
    AUDIT = "audit"  #: the auditor's API and console: read, label answers, and act on findings
    VIEWER = "viewer"  #: the auditor's API and console: read
    ADMIN = "admin"  #: the auditor's API and console: everything, also keys and audits


class KeyRole(StrEnum):
    """What a person may do in the console and a program in the auditor's API; each role includes those before it."""

    VIEWER = "viewer"
    REVIEWER = "reviewer"
    ADMIN = "admin"

    @property
    def right(self) -> Right:
        """The right of a key by which its owner has this role."""
        return _RIGHTS[self]

    def includes(self, other: "KeyRole") -> bool:
        """Whether this role may do everything that ``other`` may do."""
        order = list(KeyRole)
        return order.index(self) >= order.index(other)


_RIGHTS = {KeyRole.VIEWER: Right.VIEWER, KeyRole.REVIEWER: Right.AUDIT, KeyRole.ADMIN: Right.ADMIN}


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
    def counts_tokens(self) -> bool:
        """Whether tokens count against a limit of the key."""
        return self.tpm is not None or self.budget is not None

    @property
    def is_for_clients(self) -> bool:
        """Whether the key is for applications; one that has a role and no other right is for the auditor alone."""
        return not self.rights or not self.rights <= set(_RIGHTS.values())

    @property
    def role(self) -> KeyRole | None:
        """The highest role that the key's rights give, or None for a key that does not open the auditor."""
        return next((role for role in reversed(KeyRole) if role.right in self.rights), None)

    def allows_model(self, model: str) -> bool:
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
