"""The head of an answer, written by hand."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

#: Answers that end with their head.
BODILESS = frozenset({204, 304})
_SERVER = "server: tiltmeter"


def write_head(status: int, headers: Mapping[str, str], framing: list[str]) -> bytes:
    r"""Write the head of an answer, down to its empty line.

    Parameters
    ----------
    headers
        All fields but those of the framing and the connection, the date, and who serves; names in lower case.
    framing
        Lines that say where the answer and the connection end.

    Raises
    ------
    ValueError
        A line break or a NUL stands where it would begin another line.
    """
    lines = [_status_line(status), *[f"{name}: {value}" for name, value in headers.items()]]
    lines += (_SERVER, _date_line(int(time.time())), *framing)
    head = "\r\n".join(lines)
    if head.count("\n") >= len(lines) or head.count("\r") >= len(lines) or "\0" in head:
        raise ValueError("A header field would end its line.")
    return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


@lru_cache(maxsize=100)
def _status_line(status: int) -> str:
    reason = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
    return f"HTTP/1.1 {status} {reason}"


@lru_cache(maxsize=1)
def _date_line(second: int) -> str:
    return f"date: {formatdate(second, usegmt=True)}"
