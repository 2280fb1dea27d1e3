"""Whose certificates are accepted: one context for each version of a file, and connections are pooled by it."""

import ssl
from functools import cache
from pathlib import Path

from gateway.errors import UpstreamFailed


def context(ca_file: Path | None) -> ssl.SSLContext:
    """Accept the certificates that the file's have signed and no others; without a file, whom the system trusts.

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
    except OSError:  # it could be read at the start
        raise UpstreamFailed("The file with the deployment's CA cannot be read.", code="upstream_tls") from None
    made.set_alpn_protocols(["http/1.1"])
    return made
