"""The head of a request, written by hand."""

from dataclasses import dataclass
from functools import lru_cache

from yarl import URL

from gateway.errors import UpstreamFailed
from gateway.upstreams import UpstreamRequest

#: How long the body is, is for the one who writes it to say.
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_BODILESS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a URL says: whom to connect to, and what to ask there."""

    host: str
    port: int
    secure: bool
    path: str  #: with the query
    authority: str  #: the value of ``host``


@lru_cache(maxsize=1024)
def target_of(url: str) -> Target:
    """Take a URL apart.

    >>> target_of("https://models.example:8443/v1/models?api-version=1")
    Target(host='models.example', port=8443, secure=True, path='/v1/models?api-version=1', \
authority='models.example:8443')
    """
    parts = URL(url)
    assert parts.raw_host is not None
    assert parts.port is not None
    assert parts.host_port_subcomponent is not None
    return Target(parts.raw_host, parts.port, parts.scheme == "https", parts.raw_path_qs, parts.host_port_subcomponent)


def write_head(target: Target, request: UpstreamRequest) -> bytes:
    r"""Write the head of a request, down to its empty line.

    Raises
    ------
    UpstreamFailed
        A line break or a NUL stands where it would begin another line.

    >>> write_head(target_of("http://h/v1/models"), UpstreamRequest("", {"accept": "*/*"}, b"", 5, method="GET"))
    b'GET /v1/models HTTP/1.1\r\nhost: h\r\naccept: */*\r\n\r\n'
    """
    lines = [f"{request.method} {target.path} HTTP/1.1"]
    if "host" not in request.headers:
        lines.append(f"host: {target.authority}")
    lines += [f"{name}: {value}" for name, value in request.headers.items() if name not in _FRAMING]
    if request.body or request.method not in _BODILESS:
        lines.append(f"content-length: {len(request.body)}")
    head = "\r\n".join(lines)
    if head.count("\r") >= len(lines) or head.count("\n") >= len(lines) or "\0" in head:
        raise UpstreamFailed("The request to the deployment cannot be written as HTTP.", code="upstream_protocol")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"
