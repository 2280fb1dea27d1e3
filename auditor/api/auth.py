"""Find out who sends a request: a person with a session, a program with a key, or anybody on this machine.

On a loopback address without ``auditor.public_url`` every local request is allowed, in the role admin. Everywhere else
a request needs a session of the console, or a key with a role (``Authorization: Bearer KEY``).
"""

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api.requests import ApiError
from auditor.domain.keys import Key, KeyRole, hash_secret
from auditor.domain.local_requests import is_local_host, is_same_origin
from auditor.store.engine import transaction
from auditor.store.keys import find_key
from auditor.store.sessions import find_session

SESSION_COOKIE = "biasmeter_session"


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleUser:
    """Who sends a request."""

    name: str  #: the name of the key, or ``local``
    role: KeyRole
    key_id: str | None  #: None for a local request without a key
    csrf: str  #: the token that the forms of this user's pages carry
    signed_in: bool = False  #: by a session of the console


class ApiAuth:
    """Identify who sends a request.

    Parameters
    ----------
    loopback
        Whether only this machine can reach the address. The ``Host`` must then be a local name. Otherwise a web page
        could read stored prompts by letting its own host name resolve to this machine.
    public_url
        ``auditor.public_url``: scheme and host of the TLS proxy in front, if there is one.
    """

    def __init__(self, engine: AsyncEngine, *, loopback: bool, public_url: str | None = None) -> None:
        self._engine = engine
        self._loopback = loopback
        self._public_url = public_url
        self._csrf_secret = secrets.token_bytes(32)

    @property
    def behind_proxy(self) -> bool:
        """Whether a proxy in front terminates TLS."""
        return self._public_url is not None

    def check_origin(self, request: web.Request) -> None:
        """Refuse a host name by which a web page of another site reaches this machine, and what such a page sends.

        Raises
        ------
        ApiError
            403.
        """
        if self._loopback and self._public_url is None and not is_local_host(request.host):
            raise ApiError(403, "Use a local address for this API: 127.0.0.1 or localhost.", "foreign_host")
        if request.method in {"GET", "HEAD"}:
            return
        origin = request.headers.get("origin")
        if origin is None or origin == self._public_url:
            return
        # Behind a TLS proxy the scheme here is http; a page of the public host over http is not the console's.
        is_direct = self._public_url is None or is_local_host(request.host)
        if is_direct and is_same_origin(origin, request.scheme, request.host):
            return
        raise ApiError(403, "Requests from web pages of other sites are refused.", "foreign_origin")

    def may_sign_in(self, request: web.Request) -> bool:
        """Return whether a key can be sent safely: over TLS, through the TLS proxy, or without leaving this machine."""
        if request.secure or is_local_host(request.host):
            return True
        proxied = request.headers.get("x-forwarded-proto") == "https" or (
            request.headers.get("origin") == self._public_url
        )
        return self._public_url is not None and proxied

    def address(self, request: web.Request) -> str:
        """Return the client's address, behind a proxy as the proxy tells it."""
        forwarded = request.headers.get("x-forwarded-for", "") if self.behind_proxy else ""
        return forwarded.rpartition(",")[2].strip() or request.remote or ""

    def is_encrypted(self, request: web.Request) -> bool:
        """Return whether the client's side of the connection is TLS."""
        return request.secure or (self.behind_proxy and not is_local_host(request.host))

    async def identify(self, request: web.Request, now: datetime) -> ConsoleUser | None:
        """Return who sends a request, or None if it has neither a session nor a valid key where one is needed.

        Raises
        ------
        ApiError
            403 for a key without a role.
        """
        token = request.cookies.get(SESSION_COOKIE)
        if token:
            async with transaction(self._engine) as connection:
                key = await find_session(connection, hash_secret(token), now)
            if key is not None and key.usable(now) and key.role is not None:
                return self._user(key, key.role, session=token)
        if self._loopback and self._public_url is None:
            return ConsoleUser(name="local", role=KeyRole.ADMIN, key_id=None, csrf=self._csrf("local"))
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        async with transaction(self._engine) as connection:
            key = await find_key(connection, hash_secret(secret.strip(" ")))
        if key is None or not key.usable(now):
            return None
        if key.role is None:
            raise ApiError(403, "This key lacks the right 'audit'.", "right_missing")
        return self._user(key, key.role)

    def _user(self, key: Key, role: KeyRole, session: str | None = None) -> ConsoleUser:
        csrf = self._csrf(key.id) if session is None else _keyed(session.encode(), "csrf")
        return ConsoleUser(name=key.name, role=role, key_id=key.id, csrf=csrf, signed_in=session is not None)

    def _csrf(self, name: str) -> str:
        return _keyed(self._csrf_secret, name)


def _keyed(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode(), sha256).hexdigest()
