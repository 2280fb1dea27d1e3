"""Rows that processes share: made elsewhere, grown elsewhere, torn, locked by one that is killed, without a disk."""

import logging
import os
import textwrap
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from support.servers.scripted_processes import Companion, companion

from gateway import shared as module
from gateway.shared import SharedTable


def listed(table: SharedTable) -> dict[str, list[int]]:
    return {name: row.tolist() for name, row in table.rows()}


_PRELUDE = """
import os, sys
from pathlib import Path
from gateway.shared import SharedTable
path = Path(sys.argv[1])
"""


def child(source: str, *arguments: object) -> AbstractContextManager[Companion]:
    """Run Python that knows the table at ``path``."""
    return companion(_PRELUDE + textwrap.dedent(source), *arguments)


def test_a_row_begins_as_zeros_and_is_the_same_row_ever_after(tmp_path: Path) -> None:
    with closing(SharedTable(tmp_path / "t", 3)) as table:
        row = table.row("a")
        assert row.tolist() == [0, 0, 0]
        row[0], row[1], row[2] = 2**63 - 1, -(2**63), 7
        table.row("b")[1] = 5
        with table.locked("a") as same:
            assert same.tolist() == row.tolist()
        assert listed(table) == {"a": [2**63 - 1, -(2**63), 7], "b": [0, 5, 0]}


def test_the_rows_and_their_id_outlive_the_process(tmp_path: Path) -> None:
    with closing(SharedTable(tmp_path / "t", 2)) as table:
        table.row("a")[1] = 7
        first = table.id
    with closing(SharedTable(tmp_path / "t", 2)) as table:
        assert (listed(table), table.id) == ({"a": [0, 7]}, first)
    (tmp_path / "t").unlink()
    with closing(SharedTable(tmp_path / "t", 2)) as table:
        assert listed(table) == {}
        assert table.id != first


@pytest.mark.parametrize("width", [1, 4, 130, 1030])
def test_two_processes_find_each_others_rows_also_when_the_file_has_grown(tmp_path: Path, width: int) -> None:
    source = """
        table = SharedTable(path, int(sys.argv[2]))
        for number in range(300):
            table.row(f"theirs {number}")[0] = number
        print("made", flush=True)
        sys.stdin.readline()
        print(sum(table.row(f"ours {number}")[0] for number in range(300)), flush=True)
        sys.stdin.readline()
    """
    with closing(SharedTable(tmp_path / "t", width)) as table, child(source, tmp_path / "t", width) as other:
        early = table.row("theirs 7")
        assert other.hear() == "made"
        assert early[0] == 7
        assert [table.row(f"theirs {number}")[0] for number in range(300)] == list(range(300))
        for number in range(300):
            table.row(f"ours {number}")[0] = 1
        other.tell()
        assert other.hear() == "300"
        assert len(listed(table)) == 600
        assert early[0] == 7


_ADDING = """
    table = SharedTable(path, 2)
    print("ready", flush=True)
    sys.stdin.readline()
    for step in range(20_000):
        with table.locked(f"row {step % 5}") as row:
            row[0] += 1
            row[1] -= 1
    print("done", flush=True)
    sys.stdin.readline()
"""


def test_what_is_done_under_the_lock_is_done_by_one_at_a_time(tmp_path: Path) -> None:
    with child(_ADDING, tmp_path / "t") as one, child(_ADDING, tmp_path / "t") as two:
        assert [one.hear(), two.hear()] == ["ready"] * 2
        one.tell()
        two.tell()
        assert [one.hear(), two.hear()] == ["done"] * 2
    with closing(SharedTable(tmp_path / "t", 2)) as table:
        assert listed(table) == {f"row {number}": [8_000, -8_000] for number in range(5)}


@pytest.mark.parametrize("held", ["table.locked('a')", "table._header()"])
def test_a_process_that_is_killed_lets_go_of_what_it_held(tmp_path: Path, held: str) -> None:
    source = f"""
        table = SharedTable(path, 1)
        table.row("a")[0] = 1
        with {held}:
            print("held", flush=True)
            sys.stdin.readline()
    """
    waiting = """
        table = SharedTable(path, 1)
        with table.locked("a") as row:
            print(row[0], flush=True)
        sys.stdin.readline()
    """
    with child(source, tmp_path / "t") as holder:
        assert holder.hear() == "held"
        with child(waiting, tmp_path / "t") as waiter:
            holder.kill()
            assert waiter.hear() == "1"


def test_a_lock_holds_up_its_own_row_alone(tmp_path: Path) -> None:
    source = """
        table = SharedTable(path, 1)
        with table.locked("a"):
            print("held", flush=True)
            sys.stdin.readline()
    """
    with closing(SharedTable(tmp_path / "t", 1)) as table, child(source, tmp_path / "t") as holder:
        assert holder.hear() == "held"
        with table.locked("b") as row:
            row[0] = 1
        assert listed(table) == {"a": [0], "b": [1]}


def test_processes_that_make_the_same_rows_at_the_same_time_make_each_once(tmp_path: Path) -> None:
    source = """
        sys.stdin.readline()
        table = SharedTable(path, 40)
        for number in range(500):
            with table.locked(f"{number}") as row:
                row[0] += 1
        print(table.id, flush=True)
        sys.stdin.readline()
    """
    with child(source, tmp_path / "t") as one, child(source, tmp_path / "t") as two:
        one.tell()
        two.tell()
        ids = {one.hear(), two.hear()}
        with closing(SharedTable(tmp_path / "t", 40)) as table:
            assert ids == {str(table.id)}
            assert {name: row[0] for name, row in listed(table).items()} == {f"{number}": 2 for number in range(500)}


@pytest.mark.parametrize(
    "content",
    [b"", b"short", bytes(module._EXTENT), b"\xff" * 3 * module._EXTENT, module._MAGIC, b"x" * (module._EXTENT + 9)],
)
def test_a_file_torn_while_it_was_made_or_of_another_layout_is_made_again(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t"
    path.write_bytes(content)
    with closing(SharedTable(path, 2)) as table:
        for number in range(3_000):
            table.row(str(number))[1] = number
    with closing(SharedTable(path, 2)) as table:
        assert listed(table) == {str(number): [0, number] for number in range(3_000)}


def test_a_file_of_another_width_is_made_again_under_another_id(tmp_path: Path) -> None:
    with closing(SharedTable(tmp_path / "t", 2)) as table:
        table.row("a")[0] = 1
        first = table.id
    with closing(SharedTable(tmp_path / "t", 3)) as table:
        assert listed(table) == {}
        assert table.id != first


def test_a_row_torn_while_it_was_made_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with closing(SharedTable(path, 2)) as table:
        table.row("a")[0] = 1
    with path.open("r+b") as file:  # what stands there when the length was not written any more
        file.seek(2 * table._stride + 8)
        file.write(b"a longer name")
    with closing(SharedTable(path, 2)) as table:
        assert listed(table) == {"a": [1, 0]}
        table.row("b")[1] = 2
        assert listed(table) == {"a": [1, 0], "b": [0, 2]}


def test_an_extent_torn_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with closing(SharedTable(path, 500)) as table:
        for number in range(15):  # an extent holds sixteen slots, of which the first is the header
            table.row(str(number))[0] = number
    assert path.stat().st_size == module._EXTENT
    with path.open("ab") as file:
        file.write(bytes(100))
    with closing(SharedTable(path, 500)) as table:
        table.row("15")[0] = 15
        assert {name: row[0] for name, row in listed(table).items()} == {str(number): number for number in range(16)}
    assert path.stat().st_size == 2 * module._EXTENT


@pytest.mark.parametrize("name", ["", "x" * 65, "é" * 33])
def test_a_name_has_1_to_64_bytes(tmp_path: Path, name: str) -> None:
    with closing(SharedTable(tmp_path / "t", 1)) as table:
        with pytest.raises(ValueError, match="1 to 64 bytes"):
            table.row(name)
        table.row("é" * 32)[0] = 1
        assert listed(table) == {"é" * 32: [1]}


@pytest.mark.parametrize("width", [0, -1, module._EXTENT])
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, width: int) -> None:
    with pytest.raises(ValueError, match="a row has 1 to"):
        SharedTable(tmp_path / "t", width)


def test_nobody_else_can_read_the_rows(tmp_path: Path) -> None:
    SharedTable(tmp_path / "folder" / "t", 1).close()
    assert (tmp_path / "folder").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "folder" / "t").stat().st_mode & 0o777 == 0o600


def test_no_block_of_the_file_is_left_to_be_found_later(tmp_path: Path) -> None:
    """A hole that is touched when the disk is full ends the process with SIGBUS, in the middle of its requests."""
    path = tmp_path / "t"
    with closing(SharedTable(path, 100)) as table:
        for number in range(1_000):
            table.row(str(number))
    with path.open("rb") as file:
        os.fsync(file)
    assert path.stat().st_blocks * 512 >= path.stat().st_size > 10 * module._EXTENT


_LIMITED = """
    import logging, resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s")
    table = SharedTable(path, 500)
    for number in range(40):
        with table.locked(str(number)) as row:
            row[0] += number
    print(sum(table.row(str(number))[0] for number in range(40)), len(list(table.rows())), table.id.version, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("room", [0, 4096, module._EXTENT, module._EXTENT + 4096])
def test_without_room_on_disk_a_process_has_its_rows_for_itself_and_says_so_once(tmp_path: Path, room: int) -> None:
    with child(_LIMITED, tmp_path / "t", room) as process:
        assert [process.hear(), process.hear()] == ["ERROR", "780 40 4"]
    # What another process makes of it when there is room again:
    with closing(SharedTable(tmp_path / "t", 500)) as table:
        assert len(listed(table)) == (15 if room >= module._EXTENT else 0)
        table.row("new")[0] = 1


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    table = SharedTable(tmp_path / "file" / "t", 1)
    table.row("a")[0] = 1
    table.row("b")[0] = 2
    assert listed(table) == {"a": [1], "b": [2]}
    assert [(line.levelno, "\n" in line.getMessage()) for line in caplog.records] == [(logging.ERROR, False)]
