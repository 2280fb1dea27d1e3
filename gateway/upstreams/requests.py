"""Requests to deployments: where they go, with which TLS context, and their heads."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from yarl import URL

from gateway.errors import UpstreamFailed
from gateway.upstreams.connection import ConnectionKey

#: Framing fields, which `write_head` writes itself.
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The parts of a URL that a request needs."""

    host: str
    port: int
    secure: bool
    path: str  #: with the query
    authority: str  #: the value of ``host``


@lru_cache(maxsize=1024)
def parse_url(url: str) -> RequestTarget:
    """Parse a URL.

    >>> parse_url("https://models.example:8443/v1/models?api-version=1")
    RequestTarget(host='models.example', port=8443, secure=True, path='/v1/models?api-version=1', \
authority='models.example:8443')
    """
    parts = URL(url)
    assert parts.raw_host is not None
    assert parts.port is not None
    assert parts.host_port_subcomponent is not None
    return RequestTarget(
        parts.raw_host, parts.port, parts.scheme == "https", parts.raw_path_qs, parts.host_port_subcomponent
    )


def connection_key(target: RequestTarget, ca_file: Path | None) -> ConnectionKey:
    """Return where a connection goes to; ``ca_file`` has the certificates of the accepted authorities.

    Raises
    ------
    UpstreamFailed
        The file cannot be read.
    """
    return target.host, target.port, tls_context(ca_file) if target.secure else None


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return a TLS context that accepts only certificates signed by those of the file; without a file, the system's.

    There is one for each version of the file, because connections are pooled by context.

    Raises
    ------
    UpstreamFailed
        The file cannot be read.
    """
    return _tls_context(ca_file, 0 if ca_file is None else _changed_at(ca_file))


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _tls_context(ca_file: Path | None, _changed_ns: int) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError:  # it was readable at the start
        raise UpstreamFailed("The file with the deployment's CA cannot be read.", code="upstream_tls") from None
    context.set_alpn_protocols(["http/1.1"])
    return context


def write_head(method: str, target: RequestTarget, headers: Mapping[str, str], length: int | None) -> bytes:
    r"""Return the head of a request, including its empty line.

    Parameters
    ----------
    headers
        Names in lower case; fields about the length of the body are left out.
    length
        Bytes of the body; None: it has none.

    Raises
    ------
    UpstreamFailed
        A field contains a line break or a NUL.

    >>> write_head("GET", parse_url("http://h/v1/models"), {"accept": "*/*"}, None)
    b'GET /v1/models HTTP/1.1\r\nhost: h\r\naccept: */*\r\n\r\n'
    """
    lines = [f"{method} {target.path} HTTP/1.1"]
    if "host" not in headers:
        lines.append(f"host: {target.authority}")
    lines += [f"{name}: {value}" for name, value in headers.items() if name not in _FRAMING]
    if length is not None:
        lines.append(f"content-length: {length}")
    head = "\r\n".join(lines)
    if head.count("\r") >= len(lines) or head.count("\n") >= len(lines) or "\0" in head:
        raise UpstreamFailed("The request to the deployment cannot be written as HTTP.", code="upstream_protocol")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"
