"""Serve ``/login`` and ``/logout``: a key with a role opens a session, whose token is in a cookie."""

import ipaddress
import re
from collections import OrderedDict
from datetime import datetime, timedelta
from secrets import token_urlsafe
from typing import Final

from aiohttp import web

from auditor.api.auth import SESSION_COOKIE
from auditor.api.context import AUTH, CLOCK, ENGINE
from auditor.api.pages import render_page
from auditor.api.requests import ApiError, known_filters, wants_page
from auditor.api.session import CSRF, read_fields
from auditor.domain.keys import hash_secret
from auditor.store.engine import transaction
from auditor.store.keys import find_key
from auditor.store.sessions import add_session, end_session

#: How long a session lasts.
_LIFETIME: Final = timedelta(hours=12)
#: Failed attempts of one address in a window, and the number of addresses that are remembered.
_ATTEMPTS: Final = 10
_WINDOW: Final = timedelta(minutes=5)
_ADDRESSES: Final = 10_000
#: A path on this host. Browsers read ``//`` and ``/\`` as another host, and drop tabs and line breaks.
_LOCAL_PATH: Final = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f-\uffff]*")
_PLAIN_HTTP: Final = (
    "Nobody can sign in here, because this connection is not encrypted. Use TLS: set auditor.public_url to the https "
    "address of the proxy in front, and open that address."
)


class FailedAttempts:
    """Count failed attempts to sign in by address, for at most 10,000 addresses."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[datetime, int]] = OrderedDict()  # since when, how many

    def __len__(self) -> int:
        """Return the number of addresses that are remembered."""
        return len(self._failures)

    def blocked(self, address: str, now: datetime) -> timedelta | None:
        """Return how long an address must wait, or None."""
        since, count = self._failures.get(_network(address), (now, 0))
        left = since + _WINDOW - now
        return left if count >= _ATTEMPTS and left > timedelta(0) else None

    def add(self, address: str, now: datetime) -> None:
        """Count a failure. The address that failed least recently is forgotten when there are too many."""
        network = _network(address)
        since, count = self._failures.pop(network, (now, 0))
        self._failures[network] = (since, count + 1) if now < since + _WINDOW else (now, 1)
        if len(self._failures) > _ADDRESSES:
            self._failures.popitem(last=False)

    def withdraw(self, address: str) -> None:
        """Take back the last failure that was counted for an address, because the attempt has succeeded.

        Earlier failures stay: whoever has a key of their own may be guessing another.
        """
        network = _network(address)
        since, count = self._failures.get(network, (None, 0))
        if since is not None and count > 1:
            self._failures[network] = (since, count - 1)
        else:
            self._failures.pop(network, None)


def _network(address: str) -> str:
    """Return the address, or the /64 network of an IPv6 address, because one client may have all of it."""
    try:
        read = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    return str(ipaddress.ip_network((read, 64), strict=False)) if read.version == 6 else str(read)


def routes() -> list[web.RouteDef]:
    """List the routes."""
    failures = FailedAttempts()

    async def login(request: web.Request) -> web.Response:
        return await _login(request, failures)

    return [web.get("/login", _page), web.post("/login", login), web.post("/logout", _logout)]


async def _page(request: web.Request) -> web.Response:
    _need_encryption(request)
    return _form(request, _local(known_filters(request, ("next",)).get("next", "/")))


async def _login(request: web.Request, failures: FailedAttempts) -> web.Response:
    _need_encryption(request)
    now = request.app[CLOCK]()
    address = request.app[AUTH].address(request)
    fields = await read_fields(request, ("key", "next"))
    following = _local(fields.get("next", "/"))
    wait = failures.blocked(address, now)
    if wait is not None:
        minutes = max(1, round(wait.total_seconds() / 60))
        message = f"Too many failed attempts from this address. Try again in {minutes} minute{'s'[: minutes > 1]}."
        headers = {"retry-after": str(round(wait.total_seconds()) + 1)}
        return _refused(request, following, ApiError(429, message, "too_many_attempts", headers=headers))
    # It counts as a failure until it has succeeded: of many attempts at once no more than the limit reach the store.
    failures.add(address, now)
    async with transaction(request.app[ENGINE]) as connection:
        key = await find_key(connection, hash_secret(fields.get("key", "").strip()))
        if key is None or not key.usable(now):
            error = ApiError(401, "This key is not valid.", "invalid_api_key", "key")
        elif key.role is None:
            error = ApiError(403, "This key has no role in the console. Ask for a key with a role.", "right_missing")
        else:
            token = token_urlsafe(32)
            await add_session(connection, hash_secret(token), key.id, now=now, expires_at=now + _LIFETIME)
            failures.withdraw(address)
            return _signed_in(request, following, token)
    return _refused(request, following, error)


def _signed_in(request: web.Request, following: str, token: str) -> web.Response:
    answer = web.Response(status=303, headers={"location": following})
    answer.set_cookie(
        SESSION_COOKIE,
        token,
        max_age=round(_LIFETIME.total_seconds()),
        httponly=True,
        samesite="Strict",
        secure=request.app[AUTH].is_encrypted(request),
    )
    return answer


async def _logout(request: web.Request) -> web.Response:
    """End the session. Its cookie is not sent from other sites, so no token is needed."""
    await read_fields(request, (CSRF,))
    token = request.cookies.get(SESSION_COOKIE)
    if token:
        async with transaction(request.app[ENGINE]) as connection:
            await end_session(connection, hash_secret(token))
    answer = web.Response(status=303, headers={"location": "/login"})
    answer.del_cookie(SESSION_COOKIE, httponly=True, samesite="Strict")
    return answer


def _need_encryption(request: web.Request) -> None:
    if not request.app[AUTH].may_sign_in(request):
        raise ApiError(403, _PLAIN_HTTP, "encryption_required")


def _local(address: str) -> str:
    return address if _LOCAL_PATH.fullmatch(address) else "/"


def _refused(request: web.Request, following: str, error: ApiError) -> web.Response:
    if not wants_page(request):
        raise error
    answer = _form(request, following, error)
    answer.headers.update(error.headers)
    return answer


def _form(request: web.Request, following: str, error: ApiError | None = None) -> web.Response:
    status = 200 if error is None else error.status
    return render_page(request, "login.html.j2", status, next=following, message="" if error is None else str(error))
