"""Run a command of Biasmeter that ends when the process that started it is gone, however that one ended.

``python -m auditor.demo.guarded COMMAND ...``. The starting process holds the other end of standard input; the kernel
closes it when that process dies, also after SIGKILL. The command then gets SIGINT, and a little later its whole
process group is killed.
"""

import contextlib
import os
import runpy
import signal
import sys
import threading
import time

#: Seconds between SIGINT and SIGKILL.
GRACE = 5.0


def _end_with_parent() -> None:
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


def main() -> None:
    """Run the command named on the command line."""
    # A shell that starts a process in the background makes it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    sys.argv[0] = "biasmeter"
    runpy.run_module("biasmeter", run_name="__main__")


if __name__ == "__main__":
    main()
