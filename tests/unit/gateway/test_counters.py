"""Counters in shared files: sums over processes, restarts in the same slot, what a crash or a full disk may leave."""

import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.recording import counters as module
from gateway.recording.counters import Counters, read_all

ONE, TWO = ("requests", "a"), ("requests", "b")


def test_a_series_begins_at_nothing_and_adds_up(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "w.counters")
    assert counters.get(ONE) == 0
    counters.add(ONE)
    counters.add(ONE, 41)
    counters.add(TWO, -3)
    counters.set(("gauge",), 7)
    counters.set(("gauge",), 5)
    assert (counters.get(ONE), counters.get(TWO), counters.get(("gauge",))) == (42, -3, 5)
    assert read_all(tmp_path) == {ONE: 42, TWO: -3, ("gauge",): 5}
    counters.close()
    assert read_all(tmp_path) == {ONE: 42, TWO: -3, ("gauge",): 5}


def test_reading_does_not_declare(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "w.counters")
    counters.get(ONE)
    assert read_all(tmp_path) == {}


def test_the_whole_range_of_64_bits(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "w.counters")
    counters.set(ONE, 2**63 - 1)
    counters.set(TWO, -(2**63))
    other = Counters(tmp_path / "v.counters")
    other.set(ONE, 2**63 - 1)
    # The sum of several processes has no bound of its own.
    assert read_all(tmp_path) == {ONE: 2**64 - 2, TWO: -(2**63)}


@given(st.lists(st.tuples(st.lists(st.text(max_size=8), min_size=1, max_size=4).map(tuple), st.integers(-9, 9))))
@settings(deadline=None)
def test_any_text_may_be_a_label(
    tmp_path_factory: pytest.TempPathFactory, added: list[tuple[tuple[str, ...], int]]
) -> None:
    """Line ends, NUL, quotes, lone surrogates: names are of the configuration, which may hold much."""
    folder = tmp_path_factory.mktemp("counters")
    counters = Counters(folder / "w.counters")
    expected: dict[tuple[str, ...], int] = {}
    for key, amount in added:
        counters.add(key, amount)
        expected[key] = expected.get(key, 0) + amount
    assert dict(read_all(folder)) == expected
    counters.close()
    again = Counters(folder / "w.counters")
    assert {key: again.get(key) for key in expected} == expected
    again.close()


def test_a_process_started_again_in_the_same_slot_goes_on_counting(tmp_path: Path) -> None:
    for turn in range(1, 4):
        counters = Counters(tmp_path / "w.counters")
        counters.add(("turn", str(turn)))
        counters.add(ONE, 10)
        assert counters.get(ONE) == 10 * turn
        counters.close()
    assert read_all(tmp_path) == {ONE: 30, ("turn", "1"): 1, ("turn", "2"): 1, ("turn", "3"): 1}


_ADDING = """
    import sys
    from pathlib import Path
    from gateway.recording.counters import Counters
    counters = Counters(Path(sys.argv[1]))
    for _ in range(20_000):
        counters.add(("requests", "a"))
        counters.add(("tokens", "prompt"), 3)
    counters.add(("own", sys.argv[1]))
    print("done", flush=True)
    sys.stdin.readline()
"""


def adding(path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(_ADDING), str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_that_count_are_read_as_a_sum_while_they_run_and_when_they_were_killed(tmp_path: Path) -> None:
    paths = [tmp_path / "one.counters", tmp_path / "two.counters"]
    expected = {ONE: 40_000, ("tokens", "prompt"): 120_000} | {("own", str(path)): 1 for path in paths}
    with adding(paths[0]) as one, adding(paths[1]) as two:
        # Read as they count: never an error, never backwards.
        seen = 0
        while seen < 40_000 and (one.poll(), two.poll()) == (None, None):
            now = read_all(tmp_path)[ONE]
            assert seen <= now <= 40_000
            seen = now
        for process in (one, two):
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
        assert read_all(tmp_path) == expected
        for process in (one, two):
            process.kill()
    assert read_all(tmp_path) == expected


@pytest.mark.parametrize("torn", [b"[", b'["biasmeter_req', b'["requests","c"]', '["é'.encode()[:-1]])
def test_a_name_torn_by_a_crash_costs_no_other_and_is_written_over(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "w.counters"
    counters = Counters(path)
    counters.add(ONE, 5)
    counters.close()
    with path.open("r+b") as file:
        file.seek(module._VALUES_BYTES + len(json.dumps(ONE)) + 1)
        file.write(torn)
    assert read_all(tmp_path) == {ONE: 5}
    again = Counters(path)
    again.add(("x",), 7)
    again.add(TWO, 9)
    assert read_all(tmp_path) == {ONE: 5, ("x",): 7, TWO: 9}
    again.close()
    assert dict(read_all(tmp_path)) == {ONE: 5, ("x",): 7, TWO: 9}


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * module._VALUES_BYTES, bytes(100)])
def test_a_file_that_is_being_made_or_of_another_layout_is_passed_over_and_replaced(
    tmp_path: Path, content: bytes
) -> None:
    other = Counters(tmp_path / "other.counters")
    other.add(ONE, 2)
    path = tmp_path / "w.counters"
    path.write_bytes(content)
    assert read_all(tmp_path) == {ONE: 2}
    counters = Counters(path)
    counters.add(ONE, 3)
    assert read_all(tmp_path) == {ONE: 5}


def test_what_is_no_counter_file_is_not_read(tmp_path: Path) -> None:
    assert read_all(tmp_path / "nowhere") == {}
    (tmp_path / "notes.txt").write_text("no")
    (tmp_path / "folder.counters").mkdir()
    (tmp_path / "gone.counters").symlink_to(tmp_path / "nowhere")
    assert read_all(tmp_path) == {}


def test_more_series_than_there_is_room_for_are_counted_apart_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counters = Counters(tmp_path / "w.counters")
    for number in range(module.CAPACITY + 100):
        counters.add((str(number),))
    counters.set(("gauge",), 12)
    counters.add(("0",), 4)
    shown = read_all(tmp_path)
    assert len(shown) == module.CAPACITY - 1
    # No series took what belongs to another.
    assert shown.pop(("0",)) == 5
    assert set(shown.values()) == {1}
    assert [line.levelno for line in caplog.records] == [logging.ERROR]


def test_names_longer_than_there_is_room_for_are_not_written_over_anything(tmp_path: Path) -> None:
    counters = Counters(tmp_path / "w.counters")
    long = "x" * 100_000
    for number in range(40):
        counters.add((long, str(number)))
    shown = read_all(tmp_path)
    assert 20 < len(shown) < 40
    assert set(shown.values()) == {1}
    counters.close()
    again = Counters(tmp_path / "w.counters")
    assert again.get((long, "0")) == 1


def test_nobody_else_can_read_the_counters(tmp_path: Path) -> None:
    Counters(tmp_path / "counters" / "w.counters").close()
    assert (tmp_path / "counters").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "counters" / "w.counters").stat().st_mode & 0o777 == 0o600


def test_no_block_of_the_file_is_left_to_be_found_later(tmp_path: Path) -> None:
    """A hole that is touched when the disk is full ends the process with SIGBUS, in the middle of its requests."""
    path = tmp_path / "w.counters"
    Counters(path).close()
    with path.open("rb") as file:
        os.fsync(file)
    assert path.stat().st_blocks * 512 >= path.stat().st_size


_LIMITED = """
    import resource, sys
    from pathlib import Path
    from gateway.recording.counters import Counters, read_all
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    counters = Counters(Path(sys.argv[1]) / "w.counters")
    counters.add(("a",), 5)
    print(counters.get(("a",)), dict(read_all(Path(sys.argv[1]))))
"""


@pytest.mark.parametrize("room", [0, 4096, module._VALUES_BYTES])
def test_without_room_for_its_file_a_process_counts_for_itself(tmp_path: Path, room: int) -> None:
    """A full disk is no reason not to serve."""
    command = [sys.executable, "-c", textwrap.dedent(_LIMITED), str(tmp_path), str(room)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "5 {}\n"
