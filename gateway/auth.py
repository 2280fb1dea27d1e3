"""Authentication by client keys, and the rights to use ``x-biasmeter-*`` request headers.

Keys are looked up in the snapshot that the shipper writes, so known keys work while the database is down.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hmac import compare_digest
from uuid import UUID

import msgspec

from auditor.domain.exchange import Origin
from auditor.domain.keys import Key, Right, hash_secret
from auditor.domain.local_requests import is_local_host, is_same_origin
from gateway.errors import BadRequest, Forbidden, Saturated, Unauthorised
from gateway.snapshot import SnapshotReader

PIN, ORIGIN, REF, PARENT, AUDIT, TAGS = (
    "x-biasmeter-deployment",
    "x-biasmeter-origin",
    "x-biasmeter-ref",
    "x-biasmeter-parent",
    "x-biasmeter-audit",
    "x-biasmeter-tags",
)
_NEEDS = {PIN: Right.PIN, ORIGIN: Right.ORIGIN, REF: Right.ORIGIN, PARENT: Right.ORIGIN, AUDIT: Right.AUDIT_OFF}
_NAMES = (*_NEEDS, TAGS)
#: As x-biasmeter-exchange-id writes it; UUID() would also take underscores and signs for digits.
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_REF = re.compile(r"[\x21-\x7e]{1,64}\Z")
#: Without control characters and without invalid UTF-8, which arrives as lone surrogates.
_TAG = re.compile(r"\s*([A-Za-z0-9_.-]{1,64})=([^,\x00-\x1f\x7f-\x9f\ud800-\udfff]{0,128})\Z")


class Directives(msgspec.Struct, frozen=True):
    """The values of the ``x-biasmeter-*`` request headers."""

    origin: Origin = Origin.CLIENT
    pin: str | None = None
    ref: str | None = None
    parent: UUID | None = None
    audit: bool = True
    tags: dict[str, str] = {}

    def with_tags(self, more: dict[str, str]) -> "Directives":
        """Return the same with more tags; those that are given already stay as they are."""
        return Directives(self.origin, self.pin, self.ref, self.parent, self.audit, more | self.tags)


_NONE = Directives()


class Authenticator:
    """Finds the key of a request, and checks its rights.

    Parameters
    ----------
    snapshot
        The client keys.
    keys_required
        Whether a request needs a key even while no key exists (a gateway that other machines can reach). A gateway for
        which this is false listens on a loopback address, and serves no web page without a key.
    open_to_all
        Whether requests without a key are served even if keys exist (``auth: open``).
    tags
        The tag names that the configuration declares; others are not kept.
    audit_key
        The key of the auditor on this host, which is in no snapshot.
    """

    def __init__(
        self,
        snapshot: SnapshotReader,
        *,
        keys_required: bool,
        open_to_all: bool,
        tags: frozenset[str] = frozenset(),
        audit_key: Key | None = None,
    ) -> None:
        self._snapshot = snapshot
        self._audit_key = audit_key
        self._keys_required = keys_required
        self._open = open_to_all
        self._tags = tags

    def identify(self, headers: Mapping[str, str]) -> Key | None:
        """Return the caller's key, or ``None`` for a caller without a key where that is allowed.

        Raises
        ------
        Forbidden
            The request has no key, and may come from a web page; or its key is for the auditor alone.
        Unauthorised
            The key has expired or was revoked, or a key is needed and it is missing or unknown.
        Saturated
            The key is unknown, and the store has not been reachable recently.
        """
        secret = _secret(headers.get("authorization", ""))
        key = self._known(secret) if secret else None
        if key is None and secret:
            self._snapshot.refresh()  # another worker may have served a key of the newest snapshot already
            key = self._known(secret)
        elif not secret:
            self.refresh_before_keyless()
        if key is not None and key.usable(datetime.now(UTC)):
            if not key.is_for_clients:
                raise Forbidden(
                    "This key opens only the auditor's console and API. Use a key for applications.",
                    code="key_not_for_clients",
                )
            return key
        snapshot = self._snapshot.current
        any_key = snapshot is not None and snapshot.any_client_key
        if key is None and (self._open or (snapshot is not None and not any_key and not self._keys_required)):
            self.refuse_web_pages(headers)
            return None
        nothing_to_check = not secret and (any_key or self._keys_required)
        if key is None and not nothing_to_check and not self._snapshot.fresh():
            raise Saturated(
                "The key store cannot be reached, so this key cannot be checked. Try again.",
                code="key_store_unavailable",
                retry_after=5,
            )
        raise Unauthorised

    def refresh_before_keyless(self) -> None:
        """Read the newest snapshot before a request without a key is served, where a first key would close the gateway.

        So all workers of the host close it at the same moment: when the snapshot with the key is in its place.
        """
        if not self._open and not self._keys_required and self._snapshot.has_changed():
            self._snapshot.refresh()

    def refuse_web_pages(self, headers: Mapping[str, str]) -> None:
        """Refuse a request that may come from a web page, where this gateway listens on a loopback address.

        Raises
        ------
        Forbidden
            The ``Host`` is not a local name, or the ``Origin`` is not this gateway.
        """
        if self._keys_required:
            return
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and not is_local_host(host):  # absent only in HTTP/1.0, which no browser speaks
            raise Forbidden(
                "Without a client key, use a local address for this gateway: 127.0.0.1 or localhost.",
                code="foreign_host",
            )
        if origin is not None and (host is None or not is_same_origin(origin, "http", host)):
            raise Forbidden("Requests from web pages need a client key.", code="foreign_origin")

    def _known(self, secret: str) -> Key | None:
        hashed = hash_secret(secret)
        if self._audit_key is not None and compare_digest(hashed, self._audit_key.hash):
            return self._audit_key
        return self._snapshot.current.keys.get(hashed) if self._snapshot.current is not None else None

    def directives(self, headers: Mapping[str, str], key: Key | None) -> Directives:
        """Read the ``x-biasmeter-*`` headers.

        Raises
        ------
        Forbidden
            The key has no right to one of them. Ignoring the header would count audit traffic as client traffic.
        BadRequest
            One of them is malformed; the message names it.
        """
        if headers.keys().isdisjoint(_NAMES):
            return _NONE
        values = {name: headers[name] for name in _NAMES if name in headers}
        for name in values:
            right = _NEEDS.get(name)
            if right is not None and (key is None or right not in key.rights):
                raise Forbidden(
                    f"The header {name} needs a key with the right '{right}'.", code="header_not_allowed", param=name
                )
        return Directives(
            origin=_origin(values.get(ORIGIN)),
            pin=values.get(PIN),
            ref=_ref(values.get(REF)),
            parent=_parent(values.get(PARENT)),
            audit=_audit(values.get(AUDIT)),
            tags={name: value for name, value in _read_tags(values.get(TAGS)) if name in self._tags},
        )


def _secret(authorization: str) -> str:
    scheme, _, secret = authorization.partition(" ")
    return secret.strip(" ") if scheme.lower() == "bearer" else ""


def _malformed(header: str, expected: str) -> BadRequest:
    return BadRequest(f"The header {header} must be {expected}.", code="invalid_header", param=header)


def _origin(value: str | None) -> Origin:
    try:
        return Origin(value) if value is not None else Origin.CLIENT
    except ValueError:
        raise _malformed(ORIGIN, "one of " + ", ".join(Origin)) from None


def _ref(value: str | None) -> str | None:
    if value is not None and not _REF.match(value):
        raise _malformed(REF, "1 to 64 printable ASCII characters without spaces")
    return value


def _parent(value: str | None) -> UUID | None:
    if value is not None and not _ID.match(value):
        raise _malformed(PARENT, "the id of an exchange")
    return UUID(value) if value is not None else None


def _audit(value: str | None) -> bool:
    if value not in {None, "off"}:
        raise _malformed(AUDIT, "'off'")
    return value is None


def _read_tags(value: str | None) -> list[tuple[str, str]]:
    if not value:
        return []
    tags = [_TAG.match(tag) for tag in value.split(",")]
    if not all(tags):
        raise _malformed(TAGS, "a list like name=value, name=value")
    return [(tag[1], tag[2].strip()) for tag in tags if tag]
