"""TLS contexts: one for each version of a CA file. Connections are pooled by context."""

import ssl
from functools import cache
from pathlib import Path

from gateway.errors import UpstreamFailed


def context(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that accepts only certificates signed by those of the file; without a file, the system's.

    Raises
    ------
    UpstreamFailed
        The file cannot be read.
    """
    return _context(ca_file, 0 if ca_file is None else _changed_at(ca_file))


def _changed_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@cache
def _context(ca_file: Path | None, _changed_at: int) -> ssl.SSLContext:
    try:
        made = ssl.create_default_context(cafile=ca_file)
    except OSError:  # it was readable at the start
        raise UpstreamFailed("The file with the deployment's CA cannot be read.", code="upstream_tls") from None
    made.set_alpn_protocols(["http/1.1"])
    return made
