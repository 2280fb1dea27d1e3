"""The reference for the gateway's own client: `aiohttp.ClientSession`, configured to pass bytes through unchanged."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Final

import aiohttp
from support.upstreams.upstream_requests import Answer, Upstream, UpstreamRequest
from typing_extensions import override

from gateway.headers import returned_lines
from gateway.upstreams import UpstreamFailureCode, upstream_failed
from gateway.upstreams.requests import tls_context

#: An upstream head may be this large (some put long policy headers on every answer).
_MAX_HEAD = 64 << 10
#: Closed idle connections that are tried before a request fails; the request itself may be what closes them.
_KEPT_TRIES = 3

#: Reasons for a failed connection; the first match counts.
_UNCONNECTED: Final[tuple[tuple[type[Exception], UpstreamFailureCode], ...]] = (
    (TimeoutError, "upstream_connect_timeout"),
    (aiohttp.ClientSSLError, "upstream_tls"),
    (aiohttp.ClientConnectorDNSError, "upstream_dns"),
    (aiohttp.ClientConnectorError, "upstream_connect"),
)


class _HungUp(Exception):  # noqa: N818 -- never leaves this file
    """The connection ended before any byte of an answer."""


@dataclass(slots=True)
class _Connection:
    """The state of the connection that a request was sent on."""

    kept: bool = False  #: it was reused


async def _note_reuse(
    _: aiohttp.ClientSession, context: SimpleNamespace, __: aiohttp.TraceConnectionReuseconnParams
) -> None:
    context.trace_request_ctx.kept = True


class ReferenceUpstream(Upstream):
    """Sends requests through aiohttp's client. Created inside a running event loop."""

    def __init__(self) -> None:
        tracing = aiohttp.TraceConfig()
        tracing.on_connection_reuseconn.append(_note_reuse)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=30, keepalive_timeout=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            max_line_size=_MAX_HEAD,
            max_field_size=_MAX_HEAD,
            trace_configs=[tracing],
        )

    @override
    async def send(self, request: UpstreamRequest) -> Answer:
        for _ in range(_KEPT_TRIES):
            connection = _Connection()
            try:
                return await self._ask(request, connection)
            except _HungUp:
                # A server may close an idle connection at the moment of its reuse: retry on a new connection.
                if not connection.kept:
                    break
        raise upstream_failed("upstream_reset")

    async def _ask(self, request: UpstreamRequest, connection: "_Connection") -> Answer:
        timeout = aiohttp.ClientTimeout(
            total=None, connect=request.connect_timeout, sock_connect=request.connect_timeout
        )
        trusted = tls_context(request.ca_file) if request.ca_file else True
        try:
            response = await self._session.request(
                request.method,
                request.url,
                data=request.body or None,
                headers=request.headers,
                timeout=timeout,
                ssl=trusted,
                allow_redirects=False,
                trace_request_ctx=connection,
            )
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _failure(error) from None
        return _Answer(response)

    @override
    async def close(self) -> None:
        await self._session.close()


def _failure(error: Exception) -> Exception:
    """Return the error for a request without an answer."""
    _let_go(error)
    for kind, code in _UNCONNECTED:
        if isinstance(error, kind):
            return upstream_failed(code)
    if isinstance(error, aiohttp.ServerDisconnectedError | OSError):
        return _HungUp()
    return upstream_failed("upstream_protocol")


def _let_go(error: BaseException | None) -> None:
    """Drop the traceback of an error: aiohttp keeps the error with the connection, and its frames keep the request.

    Only a garbage collection would free such cycles, and a worker runs it rarely.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__context__


class _Answer(Answer):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.fields = returned_lines([(name.lower(), value) for name, value in response.headers.items()])

    @override
    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            _let_go(error)
            raise upstream_failed("upstream_cut") from None

    @override
    def close(self) -> None:
        self._response.close() if not self._response.content.at_eof() else self._response.release()
