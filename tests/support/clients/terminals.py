"""Commands as a person runs them: on a terminal of their own, which shows what they say and is typed on."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from support.servers.product import Product

CTRL_C = b"\x03"
_COLUMNS = 100
#: Seconds after which a person looks again, though nothing has moved.
_LOOK = 0.1
#: Colours, cursor movements, and the like.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """How a command ended, and all that its terminal showed."""

    status: int
    text: str

    @property
    def lines(self) -> list[str]:
        """What was shown, one after the other, where it was drawn over too."""
        return [line.strip() for line in re.split(r"[\r\n]+", self.text) if line.strip()]


def on_terminal(
    product: Product,
    *arguments: str,
    type_in: Callable[[str], bytes | None] = lambda _: None,
    into: Path | None = None,
) -> Shown:
    """Run a command to its end; what `type_in` makes of what is shown is typed, and `into` takes its output.

    `type_in` is asked whenever something new is shown, and every so often without.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, _COLUMNS, 0, 0))
    output = theirs if into is None else os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    process = subprocess.Popen(
        # Whoever runs the tests in the background has them ignore Ctrl-C, and so would all that they start.
        ["env", "--default-signal=INT", "setsid", "--ctty", sys.executable, "-m", "biasmeter", *arguments],
        stdin=theirs,
        stdout=output,
        stderr=theirs,
        env=product._environ() | {"TERM": "xterm"},
        cwd=product.folder,
    )
    for descriptor in {theirs, output}:
        os.close(descriptor)
    try:
        text = _read(ours, type_in)
        return Shown(status=process.wait(30), text=text)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _read(terminal: int, type_in: Callable[[str], bytes | None]) -> str:
    shown = b""
    while True:
        if select.select([terminal], [], [], _LOOK)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # nobody holds its other end any more
                return _plain(shown)
        typed = type_in(_plain(shown))
        if typed is not None:
            os.write(terminal, typed)


def _plain(shown: bytes) -> str:
    return _CONTROLS.sub("", shown.decode(errors="replace"))
