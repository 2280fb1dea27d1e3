"""The pipe between a parent process and its child: configuration goes down, reports come up.

The parent writes a bootstrap to the child's standard input when it starts the child, and another one after each reload.
The child reports in lines of JSON on its standard output. The kernel closes the pipe however the parent dies, so the
child notices it and ends. Secrets appear neither on disk nor on a command line.
"""

import asyncio
import contextlib
import json
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

_LENGTH = struct.Struct("<I")

#: The exit status of a child that a restart cannot help: the configuration or the schema is wrong.
HOPELESS: Final = 2


def pack(bootstrap: object) -> bytes:
    """Write a bootstrap for a child's standard input."""
    payload = pickle.dumps(bootstrap)
    return _LENGTH.pack(len(payload)) + payload


def receive() -> Any:
    """Read the first bootstrap; called in the child.

    SIGHUP is ignored from here on: a closed terminal signals all processes, and only the parent has to react.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    (length,) = _LENGTH.unpack(_read(_LENGTH.size))
    return _unpack(_read(length))


def _read(size: int) -> bytes:
    # Read from the descriptor: a buffered reader would also take the beginning of the next bootstrap.
    data = b""
    while len(data) < size:
        piece = os.read(sys.stdin.fileno(), size - len(data))
        if not piece:
            raise EOFError("the parent process ended before it had sent the bootstrap")
        data += piece
    return data


def _unpack(payload: bytes) -> Any:
    return pickle.loads(payload)  # noqa: S301 -- written by our own parent


def report(**facts: object) -> None:
    """Report facts to the parent, for example that the start has succeeded."""
    # The end of the parent is noticed by watch_parent.
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


async def watch_parent(on_gone: Callable[[], None], on_message: Callable[[Any], None] | None = None) -> None:
    """Call ``on_message`` with each further bootstrap, and ``on_gone`` when the parent closes its end of the pipe."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            message = _unpack(await reader.readexactly(length))
            if on_message is not None:
                on_message(message)
    on_gone()
