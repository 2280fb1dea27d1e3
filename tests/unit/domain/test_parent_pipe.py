"""A child gets its bootstraps through its standard input, and notices there that its parent is gone."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

from auditor import parent_pipe

CHILD = textwrap.dedent(
    """
    import asyncio, sys
    from auditor import parent_pipe

    async def main():
        told = parent_pipe.receive()
        parent_pipe.report(told=told)
        gone = asyncio.Event()
        watching = asyncio.create_task(parent_pipe.watch_parent(gone.set, lambda more: parent_pipe.report(more=more)))
        await asyncio.wait_for(gone.wait(), 20)
        await watching
        print("gone", flush=True)

    asyncio.run(main())
    """
)


def child(**options: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)


@pytest.mark.parametrize(
    "told", [{}, {"a": [1, None, "é\ud800"]}, "x" * 1_000_000, None], ids=lambda told: str(told)[:8]
)
def test_what_is_told_arrives(told: object) -> None:
    with child() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(parent_pipe.pack(told))
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"told": told}
        process.stdin.close()
        assert process.stdout.readline() == b"gone\n"
        assert process.wait(10) == 0


def test_what_is_told_later_arrives_too_even_behind_the_first_in_one_piece() -> None:
    with child() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(parent_pipe.pack("first") + parent_pipe.pack("x" * 300_000) + parent_pipe.pack(3))
        process.stdin.flush()
        heard = [json.loads(process.stdout.readline()) for _ in range(3)]
        assert heard == [{"told": "first"}, {"more": "x" * 300_000}, {"more": 3}]
        process.stdin.write(parent_pipe.pack([]) + parent_pipe.pack("half of it")[:9])
        process.stdin.close()
        assert process.stdout.read() == b'{"more": []}\ngone\n'
        assert process.wait(10) == 0


def test_a_child_notices_that_its_parent_was_killed() -> None:
    """The kernel closes the pipe, whatever the parent had no time for."""
    between = textwrap.dedent(
        """
        import subprocess, sys, time
        from auditor import parent_pipe
        process = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
        process.stdin.write(parent_pipe.pack({"from": "the parent"}))
        process.stdin.flush()
        time.sleep(60)
        """
    )
    with subprocess.Popen([sys.executable, "-c", between, CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert json.loads(parent.stdout.readline()) == {"told": {"from": "the parent"}}
        parent.kill()
        killed = time.monotonic()
        # The grandchild holds the other end of the parent's standard output: it is read to its end.
        assert parent.stdout.read() == b"gone\n"
        assert time.monotonic() - killed < 60


def test_a_report_to_a_parent_that_is_gone_is_no_error() -> None:
    reporting = "import sys, time; from auditor import parent_pipe; sys.stdin.read(); parent_pipe.report(ready=True)"
    reader, writer = os.pipe()
    with subprocess.Popen([sys.executable, "-c", reporting], stdin=subprocess.PIPE, stdout=writer) as process:
        os.close(writer)
        os.close(reader)
        assert process.stdin is not None
        process.stdin.close()
        # At its end Python flushes standard output once more, and says with status 120 that it could not.
        assert process.wait(10) in {0, 120}


def test_a_child_that_was_told_nothing_whole_ends() -> None:
    with child(stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(parent_pipe.pack("x" * 100)[:50])
        process.stdin.close()
        assert process.wait(10) not in {0, parent_pipe.HOPELESS, -signal.SIGKILL}
