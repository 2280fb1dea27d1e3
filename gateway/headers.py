"""Header fields that cross the gateway, in each direction. Others are dropped."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from secrets import token_hex

from auditor.config import Deployment

#: From the client to the deployment. The client's own Authorization never is.
_FORWARDED = ("content-type", "accept", "openai-beta", "idempotency-key")
#: Never forwarded, whatever the configuration names: keys, and what belongs to one connection or is ours to say.
_NEVER_FORWARDED = frozenset(
    {
        "authorization", "proxy-authorization", "api-key", "x-api-key",
        "cookie", "host", "connection", "keep-alive", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade", "expect", "content-length", "content-encoding", "accept-encoding",
        "traceparent", "tracestate", "x-request-id",
    }
)  # fmt: skip
#: From the deployment to the client. Framing, cookies and the server's name are the gateway's own business.
_RETURNED = frozenset(
    {"content-type", "content-encoding", "retry-after", "retry-after-ms", "x-should-retry", "cache-control"}
)
_RETURNED_PREFIXES = ("x-ratelimit-", "openai-", "anthropic-", "x-ms-")
#: They name the operator's account with the provider, which clients must not see.
_WITHHELD = frozenset({"openai-organization", "openai-project", "anthropic-organization-id"})
_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,200}\Z")
#: Of ASCII, except the tab, which HTTP allows.
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
#: W3C Trace Context; a later version may say more at the end. Zeros and version ff are no trace.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


def upstream_headers(
    client: Mapping[str, str], deployment: Deployment, request_id: str, extra: Iterable[str] = ()
) -> dict[str, str]:
    """Build the header fields of a request to a deployment.

    Compression is turned off, because the gateway reads the answer.
    """
    headers = {name: value for name in _FORWARDED if (value := client.get(name)) is not None}
    for name in extra:
        if name in client and name not in _NEVER_FORWARDED:
            headers[name] = client[name]
    headers["accept-encoding"] = "identity"
    headers["user-agent"] = "biasmeter"
    headers["x-request-id"] = request_id
    if (trace := continued_trace(client.get("traceparent", ""))) is not None:
        headers["traceparent"] = trace
        if "tracestate" in client:
            headers["tracestate"] = client["tracestate"]
    headers.update(deployment.fixed_headers())
    return headers


def is_trace(traceparent: str) -> bool:
    """Return whether a caller's trace is valid."""
    return _TRACEPARENT.fullmatch(traceparent) is not None


def continued_trace(traceparent: str) -> str | None:
    """Return the field that continues the caller's trace, with a new parent id; None if it is not valid."""
    trace = _TRACEPARENT.fullmatch(traceparent)
    return None if trace is None else f"00-{trace[1]}-{token_hex(8)}-{trace[3]}"


def trace_tags(client: Mapping[str, str]) -> dict[str, str]:
    """Return the tags ``trace_id`` and ``parent_span_id`` of the caller's trace; empty if it is not valid."""
    trace = _TRACEPARENT.fullmatch(client["traceparent"])
    return {} if trace is None else {"trace_id": trace[1], "parent_span_id": trace[2]}


def returned_lines(upstream: Sequence[tuple[str, str]]) -> bytes:
    r"""Return the fields of a deployment's answer that clients get, as lines of a head with a line break before each.

    Control characters in the values are removed.

    >>> returned_lines([("content-type", "text/plain"), ("set-cookie", "a=b"), ("retry-after", "1")])
    b'\r\ncontent-type: text/plain\r\nretry-after: 1'
    """
    returned = {name: value for name, value in upstream if is_returned(name)}
    lines = [
        f"\r\n{name}: {value if value.isprintable() else _CONTROL.sub('', value)}" for name, value in returned.items()
    ]
    return "".join(lines).encode("utf-8", "surrogateescape")


@lru_cache(maxsize=1000)  # the names that deployments use are few
def is_returned(name: str) -> bool:
    """Return whether clients get a deployment's field of this name, in lower case."""
    return name in _RETURNED or (name.startswith(_RETURNED_PREFIXES) and name not in _WITHHELD)


def exchange_headers(exchange_id: str, request_id: str, deployment: str | None, attempts: int) -> dict[str, str]:
    """Return the headers that name the exchange, the deployment and the number of attempts."""
    headers = {
        "x-request-id": request_id,
        "x-biasmeter-exchange-id": exchange_id,
        "x-biasmeter-attempts": str(attempts),
    }
    if deployment is not None:
        headers["x-biasmeter-deployment"] = deployment
    return headers


def naming_lines(exchange_id: str, request_id: str, deployment: str, attempts: int) -> bytes:
    """Return the lines of `exchange_headers`, each with a line break before it."""
    return (
        f"\r\nx-request-id: {request_id}\r\nx-biasmeter-exchange-id: {exchange_id}"
        f"\r\nx-biasmeter-attempts: {attempts}\r\nx-biasmeter-deployment: {deployment}"
    ).encode()


def is_request_id(value: str) -> bool:
    """Return whether a client's ``x-request-id`` is valid."""
    return _REQUEST_ID.match(value) is not None


def request_id(client: Mapping[str, str], exchange_id: str) -> str:
    """Return the client's ``x-request-id`` if it is valid, otherwise a new one."""
    value = client.get("x-request-id")
    return value if value is not None and is_request_id(value) else derived_request_id(exchange_id)


def derived_request_id(exchange_id: str) -> str:
    """Return the request id that the gateway gives to an exchange."""
    return f"req_{exchange_id.replace('-', '')}"
