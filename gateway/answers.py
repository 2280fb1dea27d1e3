"""Answers to clients of which head and body leave in one write, made by hand: what aiohttp takes to do it is saved."""

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter
from typing_extensions import override


class WholeAnswer(web.StreamResponse):
    """An answer to a ``POST`` whose body is known.

    Parameters
    ----------
    status
        One that has a body.
    headers
        All but those of the framing and the connection, and the date.
    body
        The whole body.
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(status=status, headers=headers)
        self.headers.setdefault("content-type", "application/octet-stream")
        self._whole = body
        self._stays = True  # the connection

    @property
    @override
    def keep_alive(self) -> bool:
        return self._stays

    @override
    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self._stays = request.keep_alive and super().keep_alive is not False
        head = self._head(request)
        await request.writer.write(head + self._whole)
        await request.writer.drain()
        return None

    @override
    async def write_eof(self, data: bytes = b"") -> None:
        """Everything has been written."""

    def _head(self, request: web.BaseRequest) -> bytes:
        version = request.version
        lines = [
            f"HTTP/{version.major}.{version.minor} {self.status} {self.reason}",
            *[f"{name}: {value}" for name, value in self.headers.items()],
            f"date: {_date(int(time.time()))}",
            f"content-length: {len(self._whole)}",
        ]
        if self._stays != (version >= HttpVersion11):
            lines.append("connection: keep-alive" if self._stays else "connection: close")
        head = "\r\n".join(lines)
        if head.count("\n") >= len(lines) or head.count("\r") >= len(lines) or "\0" in head:
            raise ValueError("A header field would end its line.")
        return head.encode("utf-8", "surrogateescape") + b"\r\n\r\n"


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)
