"""Make client keys from what people write: the options of ``biasmeter key create``, or the form in the console."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncConnection

from auditor.config import Config, parse_duration
from auditor.config.routes import ANY_MODEL
from auditor.documents.service import ClientKeyEntry
from auditor.domain.keys import Key, KeyRole, Right, hash_secret, new_key_id, new_secret
from auditor.errors import UsageError
from auditor.store.keys import list_keys

#: The largest limit; the store holds 32 bits.
MOST: Final = (1 << 31) - 1
#: Rights of applications; the others are those of roles.
CLIENT_RIGHTS: Final = (Right.PIN, Right.ORIGIN, Right.AUDIT_OFF)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyRequest:
    """A key that somebody asks for, as written; lists are separated by commas."""

    name: str
    models: str = ""
    allow: str = ""
    role: KeyRole | None = None
    rpm: int | None = None
    tpm: int | None = None
    budget: float | None = None
    expires: str | None = None  #: a lifetime such as 30d


def make_key(config: Config, request: KeyRequest, now: datetime) -> tuple[Key, str]:
    """Return the key and its secret, which is stored nowhere.

    Raises
    ------
    UsageError
        A field has a value that it cannot have; the message begins with the name of the field.
    """
    secret = new_secret()
    models = _names(request.models)
    _check_models(models, [route.model for route in config.routes])
    key = Key(
        id=new_key_id(),
        name=_checked_name(request.name),
        hash=hash_secret(secret),
        models=models,
        rights=_rights(request.allow) | ({request.role.right} if request.role is not None else set()),
        rpm=_checked_limit("rpm", request.rpm),
        tpm=_checked_limit("tpm", request.tpm),
        budget=_checked_limit("budget", request.budget),
        expires_at=now + _lifetime(request.expires) if request.expires else None,
    )
    return key, secret


async def closes_gateway(connection: AsyncConnection, config: Config, key: Key) -> str | None:
    """Return a warning if a new key is the first for applications, and so makes the gateway ask for keys; or None."""
    gateway = config.gateway
    if not key.is_for_clients or gateway.auth != "keys" or not gateway.listen.is_loopback:
        return None
    if any(other.is_for_clients for other, _ in await list_keys(connection)):
        return None
    return (
        f"this is the first client key: from now on the gateway on {gateway.listen} refuses requests without a key, "
        "and revoking this key does not change that"
    )


def key_entry(key: Key, created: datetime, spent: int | None) -> ClientKeyEntry:
    """Return a key as the API shows it. Spending (given in nano-USD) is counted only for keys with a budget."""
    if spent is None and key.budget is not None:
        spent = 0
    return ClientKeyEntry(
        id=key.id,
        name=key.name,
        models=key.models,
        rights=sorted(key.rights),
        role=key.role,
        rpm=key.rpm,
        tpm=key.tpm,
        budget=key.budget,
        spent_usd=None if spent is None else spent / 1e9,
        created_at=created.isoformat(),
        expires_at=key.expires_at.isoformat() if key.expires_at else None,
        revoked=key.revoked,
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _check_models(models: tuple[str, ...], routed: list[str]) -> None:
    if ANY_MODEL in routed:
        return
    for model in models:
        if model not in routed:
            raise UsageError(f"models: no route has the model {model!r}; known: {', '.join(routed)}")


def _rights(text: str) -> frozenset[Right]:
    try:
        return frozenset(Right(name) for name in _names(text))
    except ValueError as error:
        raise UsageError(f"allow: {error}; the rights are: {', '.join(Right)}") from None


def _checked_limit(name: str, value: Any) -> Any:
    if value is not None and not 0.01 <= value <= MOST:
        raise UsageError(f"{name}: must be more than 0 and at most {MOST}")
    return value


def _lifetime(text: str) -> timedelta:
    try:
        lifetime = timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError):
        raise UsageError(f"expires: {text!r} is not a duration such as 30d or 12h") from None
    if lifetime <= timedelta(0):
        raise UsageError("expires: must be more than 0")
    return lifetime


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > 200 or not name.isprintable():
        raise UsageError("name: must be 1 to 200 printable characters")
    return name.strip()
