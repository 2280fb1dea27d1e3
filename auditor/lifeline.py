"""How a parent process starts a child: what it tells it, and how the child notices that its parent is gone.

Both go over the child's standard input: first a bootstrap, then nothing until the pipe ends. The kernel closes the
pipe however the parent dies, so no child outlives it by accident; secrets touch neither disk nor command line.
"""

import asyncio
import contextlib
import json
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any, Final

_LENGTH = struct.Struct("<I")

#: A child ends with this status when starting it again cannot help: the configuration or the schema is wrong.
HOPELESS: Final = 2


def pack(bootstrap: object) -> bytes:
    """Write a bootstrap for a child's standard input."""
    payload = pickle.dumps(bootstrap)
    return _LENGTH.pack(len(payload)) + payload


def receive() -> Any:
    """Read the bootstrap, in the child. It comes from our own parent through a pipe of its own."""
    (length,) = _LENGTH.unpack(sys.stdin.buffer.read(_LENGTH.size))
    return pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301 -- written by our own parent


def report(**facts: object) -> None:
    """Tell the parent, once, how the start went."""
    # A parent that died meanwhile is noticed elsewhere.
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()


async def watch_parent(on_gone: Callable[[], None]) -> None:
    """Call ``on_gone`` when the parent's end of standard input closes."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    on_gone()
