"""Authorize API requests.

On a loopback address every local request is allowed. On any other address a request needs a key with the right
``audit``.
"""

from datetime import UTC, datetime

from aiohttp import web
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.api.requests import ApiError
from auditor.domain.keys import Right, hash_secret
from auditor.domain.local_requests import is_local_host
from auditor.store.engine import transaction
from auditor.store.keys import list_keys


class ApiAuth:
    """Authorize requests by key, or by host name on a loopback address.

    The ``Host`` must be a local name even on a loopback address. Otherwise a web page could read stored prompts by
    letting its own host name resolve to this machine.
    """

    def __init__(self, engine: AsyncEngine, *, loopback: bool) -> None:
        self._engine = engine
        self._loopback = loopback

    async def authorize(self, request: web.Request) -> None:
        """Return if the request is allowed.

        Raises
        ------
        ApiError
            403 for a host name that is not local, 401 for a missing or wrong key, 403 for a key without the right.
        """
        if self._loopback:
            if not is_local_host(request.host):
                raise ApiError(403, "Use a local address for this API: 127.0.0.1 or localhost.", "foreign_host")
            return
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        hashed = hash_secret(secret.strip(" "))
        async with transaction(self._engine) as connection:
            known = {key.hash: key for key, _ in await list_keys(connection)}
        key = known.get(hashed) if scheme.lower() == "bearer" else None
        if key is None or not key.usable(datetime.now(UTC)):
            raise ApiError(
                401, "This request needs a valid key in the header 'Authorization: Bearer KEY'.", "invalid_api_key"
            )
        if Right.AUDIT not in key.rights:
            raise ApiError(403, "This key lacks the right 'audit'.", "right_missing")
