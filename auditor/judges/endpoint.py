"""Send requests to a judge's endpoint: one POST to an OpenAI-compatible server, retried if a retry can help.

Only this module uses httpx2 and tenacity, and it translates their exceptions. ``llm`` builds the request and reads
the reply. Embeddings use the same client with another ``path`` and another ``role``.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import httpx2
import tenacity
from typing_extensions import override

from auditor.domain.retry_after import read_retry_after
from auditor.errors import JudgeUnavailable

#: Statuses after which the same request may succeed.
_AGAIN: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
#: Statuses that concern this request only; any other status means that the endpoint is not usable.
_MEANT_FOR_US: Final = frozenset({200, 400, 413, 422})
#: Words of servers' errors about a text that is too long.
_LENGTH_WORDS: Final = (
    "context_length",
    "context length",
    "context window",
    "too long",
    "too many tokens",
    "too large",
)
#: The longest Retry-After that is respected.
_LONGEST_WAIT: Final = 120.0

#: Requests in flight to one judge, where its deployment sets no limit.
DEFAULT_CONCURRENCY: Final = 8


#: The stored exchange that a judge is asked to read. The gateway stores it as the parent of the judge's own exchange,
#: so that whoever erases the one erases the other.
EXCHANGE_READ: Final[ContextVar[UUID | None]] = ContextVar("exchange_read", default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeEndpoint:
    """The address of a judge, with its limits and timeouts.

    ``headers`` are sent with every request; through the gateway that is ``x-biasmeter-origin: judge``. ``extra`` is
    added to every body (``reasoning_effort``, ``seed`` and similar). Times are in seconds.
    """

    name: str
    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)
    concurrency: int = DEFAULT_CONCURRENCY
    attempts: int = 6
    timeout: float = 60.0
    first_backoff: float = 0.5
    longest_backoff: float = 30.0
    max_tokens: int = 1024
    path: str = "chat/completions"
    role: str = "judge"

    @override
    def __str__(self) -> str:
        """Return the prefix of an error message."""
        return f"{self.role} {self.name!r} at {self.base_url}"


@dataclass(frozen=True, kw_only=True, slots=True)
class EndpointReply:
    """A server's reply: its status, and its JSON body (or the text of a body that is not JSON)."""

    status: int
    body: Any
    text: str

    @property
    def complaint(self) -> str:
        """Return the server's error message in lower case, without a repetition of the request."""
        body = self.body if isinstance(self.body, dict) else {}
        error, detail = body.get("error"), body.get("detail")
        if isinstance(error, dict):
            parts = [error.get(member) for member in ("code", "param", "type", "message")]
        elif isinstance(detail, list):
            entries = [entry for entry in detail if isinstance(entry, dict)]
            parts = [part for entry in entries for part in (entry.get("loc"), entry.get("msg"))]
        else:
            parts = [error, detail, body.get("message"), body.get("code")]
        words = " ".join(str(part) for part in parts if part) or self.text[:300]
        return " ".join(words.split()).lower()

    @property
    def is_too_long(self) -> bool:
        """Return whether the request was rejected for its length."""
        return self.status == 413 or any(word in self.complaint for word in _LENGTH_WORDS)


class _SendAgain(Exception):  # noqa: N818 -- a signal to tenacity, never shown to users
    """A signal to send the same request again, after ``wait`` seconds if the server gave a time."""

    def __init__(self, why: str, wait: float | None) -> None:
        super().__init__(why)
        self.wait = wait


def open_client(connections: int = DEFAULT_CONCURRENCY) -> httpx2.AsyncClient:
    """Open the connection pool that a panel shares; the caller must close it."""
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx2.AsyncClient(limits=limits, follow_redirects=False)


class EndpointClient:
    """A client of one endpoint that sends at most ``concurrency`` requests at a time.

    A Retry-After delays all requests to the endpoint, not only the one that received it, because the others would be
    rejected too.
    """

    def __init__(self, endpoint: JudgeEndpoint, client: httpx2.AsyncClient) -> None:
        self.endpoint = endpoint
        self._client = client
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._resume_at = 0.0

    async def aclose(self) -> None:
        """Close the shared pool; a second call has no effect."""
        await self._client.aclose()

    async def post(self, body: Mapping[str, Any]) -> EndpointReply:
        """Send one request.

        Raises
        ------
        JudgeUnavailable
            When all attempts failed, or the server denies access (401, 403, 404).
        """
        endpoint = self.endpoint
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_SendAgain),
            stop=tenacity.stop_after_attempt(endpoint.attempts),
            wait=self._wait,
            reraise=True,
        )
        try:
            return await retrying(self._once, body)
        except _SendAgain as error:
            raise JudgeUnavailable(f"{endpoint}: {error} (after {endpoint.attempts} attempts)") from error

    def _wait(self, state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, _SendAgain) and error.wait is not None:
            return error.wait + tenacity.wait_random(0, self.endpoint.first_backoff)(state)
        backoff = tenacity.wait_random_exponential(
            multiplier=self.endpoint.first_backoff, max=self.endpoint.longest_backoff
        )
        return backoff(state)

    async def _once(self, body: Mapping[str, Any]) -> EndpointReply:
        async with self._slot():
            try:
                async with asyncio.timeout(self.endpoint.timeout):
                    response = await self._client.post(
                        f"{self.endpoint.base_url.rstrip('/')}/{self.endpoint.path}",
                        json=dict(body),
                        headers=self._headers(),
                        timeout=self.endpoint.timeout,
                    )
            except TimeoutError as error:
                raise _SendAgain(f"no answer within {self.endpoint.timeout:g} s", None) from error
            except httpx2.TransportError as error:
                raise _SendAgain(f"{type(error).__name__}: {error}".rstrip(": "), None) from error
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise self._unavailable(f"{type(error).__name__}: {error}") from error
        return self._read_status(response)

    def _read_status(self, response: httpx2.Response) -> EndpointReply:
        status = response.status_code
        try:
            body = response.json()
        except (ValueError, RecursionError):
            body = None
        code = _inner_code(body) if status == 200 else status
        if code in _AGAIN or code >= 500:
            wait = read_retry_after(response.headers)
            if wait is not None:
                wait = min(wait, _LONGEST_WAIT)
                self._resume_at = max(self._resume_at, time.monotonic() + wait)
            raise _SendAgain(f"HTTP {code}", wait)
        if code not in _MEANT_FOR_US:
            raise self._unavailable(f"HTTP {code}: {response.text[:200]}")
        if status == 200 and body is None:
            raise _SendAgain("the answer is not JSON", None)
        return EndpointReply(status=code, body=body, text=response.text)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        async with self._slots:
            while (held := self._resume_at - time.monotonic()) > 0:  # noqa: ASYNC110 -- the time may change
                await asyncio.sleep(held)
            yield

    def _headers(self) -> dict[str, str]:
        key = {"authorization": f"Bearer {self.endpoint.api_key}"} if self.endpoint.api_key else {}
        read = EXCHANGE_READ.get()
        through_gateway = "x-biasmeter-origin" in self.endpoint.headers
        parent = {"x-biasmeter-parent": str(read)} if read is not None and through_gateway else {}
        return {**key, **self.endpoint.headers, **parent}

    def _unavailable(self, why: str) -> JudgeUnavailable:
        line = " ".join(why.split())
        return JudgeUnavailable(f"{self.endpoint}: {line}")


def _inner_code(body: object) -> int:
    """Return the status of an error object that some routers send with status 200 instead of the choices."""
    error = body.get("error") if isinstance(body, dict) and not body.get("choices") else None
    if not isinstance(error, dict):
        return 200
    code = str(error.get("code"))
    return int(code) if len(code) == 3 and code.isdecimal() else 400
