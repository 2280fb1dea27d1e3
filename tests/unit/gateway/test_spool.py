"""The spool: what has been written is read again, whatever happens to the file, the writer or the disk."""

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.stores.small_disks import fill

from gateway.primitives import FRAME, SALT_BYTES, frame_head
from gateway.recording import spool
from gateway.recording.spool import (
    HEAD_BYTES,
    MAGIC,
    MAX_PAYLOAD,
    Damage,
    Frame,
    Segment,
    SpoolWriter,
    backlog,
    read_frames,
    segments,
)

SALT = b"\xf5\x54\x58\xfa\x00\xff\x0a7"
HEAD = FRAME.size


def segment_of(records: list[tuple[bytes, int]], salt: bytes = SALT) -> bytes:
    """The bytes of a segment after its head, as the writer would write them."""
    return b"".join(frame_head(salt, payload, unix_ms) + payload for payload, unix_ms in records)


INNER = segment_of([(b"a forged record", 7)])
PAYLOADS = st.one_of(st.binary(max_size=60), st.sampled_from([b"", SALT, SALT * 3, SALT[:2], INNER[:-1], b"\0" * 40]))
RECORDS = st.lists(st.tuples(PAYLOADS, st.integers(0, 2**63)), max_size=8)


def frames(data: bytes, *, finished: bool) -> list[Frame]:
    return [part for part in read_frames(data, SALT, finished=finished) if isinstance(part, Frame)]


def read(path: Path) -> list[Frame | Damage]:
    """All of a finished segment."""
    with Segment(path) as segment:
        return list(read_frames(segment.read(1 << 20), segment.salt, finished=True))


def payloads(path: Path) -> list[bytes]:
    return [part.payload for part in read(path) if isinstance(part, Frame)]


def damage(data: bytes, *, finished: bool) -> list[Damage]:
    return [part for part in read_frames(data, SALT, finished=finished) if isinstance(part, Damage)]


@given(RECORDS, st.booleans())
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[bytes, int]], finished: bool
) -> None:
    folder = tmp_path_factory.mktemp("spool")
    writer = SpoolWriter(folder, "w")
    sizes = [writer.append(payload, unix_ms) for payload, unix_ms in records]
    if finished:
        writer.close()
    found = []
    for path in segments(folder):
        with Segment(path) as segment:
            assert segment.is_segment
            assert segment.finished() is finished
            found += list(read_frames(segment.read(1 << 20), segment.salt, finished=finished))
    assert [(frame.payload, frame.unix_ms) for frame in found if isinstance(frame, Frame)] == records
    assert len(found) == len(records)
    assert backlog(folder).bytes == sum(sizes)
    writer.close()


def test_a_segment_cut_anywhere_loses_nothing_that_is_whole() -> None:
    records = [(b"first", 1), (b"", 2), (SALT + b"\x03\0\0\0", 3), (b"x" * 50, 4), (INNER[:-1], 5)]
    whole = segment_of(records)
    ends = [0, *(frame.end for frame in frames(whole, finished=True))]
    for cut in range(len(whole) + 1):
        data = whole[:cut]
        kept = sum(0 < end <= cut for end in ends)
        # While it may grow: what is whole, and no judgement about the rest.
        assert [(f.payload, f.unix_ms) for f in frames(data, finished=False)] == records[:kept]
        assert damage(data, finished=False) == []
        # Nothing more will come: the rest is damage, told once.
        assert [(f.payload, f.unix_ms) for f in frames(data, finished=True)] == records[:kept]
        assert damage(data, finished=True) == ([] if cut == ends[kept] else [Damage(ends[kept], cut)])


def test_the_walk_can_begin_again_where_it_stopped() -> None:
    records = [(b"a" * n, n) for n in range(6)]
    whole = segment_of(records)
    for cut in range(len(whole) + 1):
        first = frames(whole[:cut], finished=False)
        reached = first[-1].end if first else 0
        second = list(read_frames(whole, SALT, reached, finished=True))
        assert [f.payload for f in [*first, *second] if isinstance(f, Frame)] == [payload for payload, _ in records]


@pytest.mark.parametrize("cut", [1, HEAD - 1, HEAD, HEAD + 5, HEAD + 10 + len(INNER)])
def test_a_record_inside_an_answer_is_never_taken_for_one_of_ours(cut: int) -> None:
    """A deployment that knows this format could write a record into its answer; a reader may see half of the outer."""
    outer = segment_of([(b"0123456789" + INNER + b"0123456789", 1)])
    assert list(read_frames(outer[:cut], SALT, finished=False)) == []
    (frame,) = read_frames(outer, SALT, finished=False)
    assert isinstance(frame, Frame)
    assert INNER in frame.payload


def test_a_record_of_another_segment_inside_a_torn_one_is_not_read(tmp_path: Path) -> None:
    """An answer may hold a whole record or segment. When the record around it is torn, it must not be taken for one."""
    writer = SpoolWriter(tmp_path, "known", segment_bytes=1)
    writer.append(b"a forged record", 7)
    (known,) = segments(tmp_path)
    forged = known.read_bytes()
    assert payloads(known) == [b"a forged record"]
    writer.append(b"before " + forged + forged[HEAD_BYTES:] + b" after", 8)
    torn = segments(tmp_path)[1]
    assert forged[HEAD_BYTES:] in torn.read_bytes()
    whole = torn.read_bytes()
    for cut in range(HEAD_BYTES + 1, len(whole)):
        torn.write_bytes(whole[:cut])
        assert payloads(torn) == []
    for place in range(HEAD):
        damaged = bytearray(whole)
        damaged[HEAD_BYTES + place] ^= 1
        torn.write_bytes(damaged)
        assert read(torn) == [Damage(0, len(whole) - HEAD_BYTES)]


def test_each_segment_has_a_salt_of_its_own(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w", segment_bytes=1)
    for number in range(64):
        writer.append(b"x", number)
    heads = [path.read_bytes()[: len(MAGIC) + SALT_BYTES] for path in segments(tmp_path)]
    assert {head[: len(MAGIC)] for head in heads} == {MAGIC}
    assert len({head[len(MAGIC) :] for head in heads}) == 64


def test_a_disk_that_does_not_even_shorten_a_file_costs_one_record(tmp_path: Path) -> None:
    """The part of a record that cannot be cut off ends its segment, and the next record begins another."""
    writing = """
        import os, resource, sys
        from pathlib import Path
        from gateway.recording import spool
        writer = spool.SpoolWriter(Path(sys.argv[1]), "w")
        writer.append(b"first", 1)
        size = os.fstat(writer._fd).st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 30, resource.RLIM_INFINITY))
        def refuse(fd, size):
            raise OSError(30, "Read-only file system")
        shorten, os.ftruncate = os.ftruncate, refuse
        try:
            writer.append(b"x" * 100, 2)
        except OSError:
            print("refused", flush=True)
        os.ftruncate = shorten
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.append(b"third", 3)
    """
    with child(writing, str(tmp_path)) as process:
        assert say(process) == "refused"
    assert process.returncode == 0
    first, second = segments(tmp_path)
    assert read(first) == [Frame(b"first", 1, HEAD + 5), Damage(HEAD + 5, HEAD + 5 + 30)]
    assert payloads(second) == [b"third"]


@given(RECORDS.filter(bool), st.data())
def test_a_damaged_byte_costs_one_record_and_is_told_once(
    records: list[tuple[bytes, int]], data: st.DataObject
) -> None:
    records = [(payload.replace(SALT, b"...."), unix_ms) for payload, unix_ms in records]
    whole = bytearray(segment_of(records))
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    ends = [0]
    for payload, _ in records:
        ends.append(ends[-1] + HEAD + len(payload))
    hit = sum(end <= place for end in ends) - 1
    parts = list(read_frames(bytes(whole), SALT, finished=True))
    assert [(p.payload, p.unix_ms) for p in parts if isinstance(p, Frame)] == records[:hit] + records[hit + 1 :]
    assert [p for p in parts if isinstance(p, Damage)] == [Damage(ends[hit], ends[hit + 1])]


@given(RECORDS, st.lists(st.binary(max_size=30), min_size=9, max_size=9), st.booleans())
@example([(b"a", 1)], [b"", SALT, *[b""] * 7], True)
def test_garbage_between_records_costs_none(
    records: list[tuple[bytes, int]], garbage: list[bytes], finished: bool
) -> None:
    garbage = [noise.replace(SALT, b"") for noise in garbage]
    data = b"".join(noise + segment_of([record]) for noise, record in zip(garbage, records, strict=False))
    # The start of a marker at the end could be the start of a record, and is waited for while the segment may grow.
    found = [(f.payload, f.unix_ms) for f in frames(data, finished=finished)]
    assert found == records
    assert len(damage(data, finished=finished)) == sum(bool(noise) for noise in garbage[: len(records)])


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_can_be_walked(data: bytes, finished: bool) -> None:
    reached = 0
    for part in read_frames(data, SALT, finished=finished):
        assert reached < part.end <= len(data)
        reached = part.end
    assert reached == len(data) or not finished


def test_zeros_that_a_power_cut_leaves_are_no_records() -> None:
    data = segment_of([(b"a", 1)]) + b"\0" * 4096
    assert [f.payload for f in frames(data, finished=True)] == [b"a"]
    assert damage(data, finished=True) == [Damage(len(data) - 4096, len(data))]


@pytest.mark.parametrize("length", [MAX_PAYLOAD + 1, 2**32 - 1])
def test_an_impossible_length_is_damage_and_is_not_waited_for(length: int) -> None:
    torn = FRAME.pack(SALT, length, 0, 0)
    data = torn + segment_of([(b"next", 1)])
    assert list(read_frames(data, SALT, finished=False)) == [Damage(0, len(torn)), Frame(b"next", 1, len(data))]


def test_a_record_that_could_not_be_read_again_is_refused(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    with pytest.raises(OSError, match="is the most"):
        writer.append(bytes(MAX_PAYLOAD + 1), 1)
    writer.append(b"next", 2)
    writer.close()
    (path,) = segments(tmp_path)
    assert read(path) == [Frame(b"next", 2, HEAD + 4)]


def test_records_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    given = [(b"a", 1), (b"", 2), (b"c" * 5000, 3)]
    size = writer.append_all(given)
    with pytest.raises(OSError, match="is the most"):
        writer.append_all([(b"before", 4), (bytes(MAX_PAYLOAD + 1), 5)])
    (path,) = segments(tmp_path)
    assert [frame[:2] for frame in read(path)] == given
    assert path.stat().st_size == HEAD_BYTES + size
    writer.close()


def test_more_records_are_written_together_than_the_system_takes_pieces(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    given = [(b"%d" % number, number) for number in range(os.sysconf("SC_IOV_MAX"))]
    size = writer.append_all(given)
    writer.close()
    (path,) = segments(tmp_path)
    assert [frame[:2] for frame in read(path)] == given
    assert path.stat().st_size == HEAD_BYTES + size


# --- segments --------------------------------------------------------------------------------------------------------


def test_a_segment_that_has_grown_is_finished_and_the_next_one_sorts_behind_it(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w", segment_bytes=100)
    for number in range(36):
        writer.append(bytes([number]) * 30, number)
    paths = segments(tmp_path)
    assert len(paths) == 18
    found = [part.unix_ms for path in paths for part in read(path) if isinstance(part, Frame)]
    assert found == list(range(36))
    writer.append(b"x", 36)
    with Segment(segments(tmp_path)[-1]) as last, Segment(paths[-1]) as before:
        assert not last.finished()
        assert before.finished()
    writer.close()


def test_no_file_is_left_by_a_writer_that_wrote_nothing(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "spool", "w")
    writer.finish_segment()
    writer.close()
    assert not (tmp_path / "spool").exists()
    assert segments(tmp_path / "spool") == []
    assert backlog(tmp_path / "spool") == spool.Backlog(0, None)


def test_nobody_else_can_read_the_spool(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path / "spool", "w")
    writer.append(b"secret", 1)
    writer.close()
    assert (tmp_path / "spool").stat().st_mode & 0o777 == 0o700
    assert segments(tmp_path / "spool")[0].stat().st_mode & 0o777 == 0o600


def test_the_mark_outlives_its_reader(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    first = writer.append(b"a", 1000)
    second = writer.append(b"b", 2000)
    (path,) = segments(tmp_path)
    with Segment(path) as segment:
        segment.mark(segment.shipped + first)
        assert segment.read(1 << 20) == segment_of([(b"b", 2000)], segment.salt)
    with Segment(path) as segment:
        assert segment.read(1 << 20) == segment_of([(b"b", 2000)], segment.salt)
    assert backlog(tmp_path) == spool.Backlog(second, 2000)
    writer.close()


@pytest.mark.parametrize("mark", [0, 7, HEAD_BYTES - 1, HEAD_BYTES + 1000, 2**64 - 1])
def test_a_broken_mark_ships_the_segment_again_rather_than_lose_it(tmp_path: Path, mark: int) -> None:
    writer = SpoolWriter(tmp_path, "w")
    writer.append(b"a", 1)
    writer.close()
    (path,) = segments(tmp_path)
    with Segment(path) as segment:
        segment.mark(mark)
    assert payloads(path) == [b"a"]


def test_a_removed_segment_leaves_nothing(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    writer.append(b"a", 1)
    writer.close()
    (path,) = segments(tmp_path)
    with Segment(path) as segment:
        segment.mark(segment.size())
        segment.remove()
        segment.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_backlog_adds_up_segments_and_knows_the_oldest(tmp_path: Path) -> None:
    late, early = SpoolWriter(tmp_path, "a"), SpoolWriter(tmp_path, "b")
    written = late.append(b"x", 5000) + early.append(b"y" * 100, 3000) + early.append(b"z", 4000)
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "kept.bin").write_bytes(b"not counted")
    (tmp_path / "other.txt").write_bytes(b"not counted")
    assert backlog(tmp_path) == spool.Backlog(written, 3000)
    late.close()
    early.close()
    assert backlog(tmp_path) == spool.Backlog(written, 3000)


def test_what_is_no_file_is_no_segment(tmp_path: Path) -> None:
    (tmp_path / "folder.segment").mkdir()
    os.mkfifo(tmp_path / "pipe.segment")
    (tmp_path / "gone.segment").symlink_to(tmp_path / "nowhere")
    assert segments(tmp_path) == []
    assert backlog(tmp_path) == spool.Backlog(0, None)


# --- other processes, and full disks ---------------------------------------------------------------------------------


def child(code: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_segment_is_finished_when_its_writer_dies_and_not_before(tmp_path: Path) -> None:
    writing = """
        import sys
        from pathlib import Path
        from gateway.recording.spool import SpoolWriter
        writer = SpoolWriter(Path(sys.argv[1]), "w")
        writer.append(b"last words", 1)
        print("written", flush=True)
        sys.stdin.readline()
    """
    with child(writing, str(tmp_path)) as process:
        assert say(process) == "written"
        (path,) = segments(tmp_path)
        with Segment(path) as segment:
            assert not segment.finished()
            # Looking does not hold it: the writer can be asked about again and again, from anywhere.
            assert not segment.finished()
            process.kill()
            process.wait()
            assert segment.finished()
            assert payloads(path) == [b"last words"]


def test_a_reader_that_looks_does_not_hinder_the_writer(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path, "w")
    writer.append(b"a", 1)
    with Segment(segments(tmp_path)[0]) as segment:
        segment.finished()
        writer.append(b"b", 2)
        writer.finish_segment()
        assert segment.finished()
        writer.append(b"c", 3)
    writer.close()
    assert len(segments(tmp_path)) == 2


_LIMITED = """
    import resource, sys
    from pathlib import Path
    from gateway.recording.spool import SpoolWriter
    limit = int(sys.argv[2])
    writer = SpoolWriter(Path(sys.argv[1]), "w")
    kept = []
    for step, size in enumerate([0, 10, 30, 5, 200, 1, 1000, 0]):
        if step == 2:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        if step == 6:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        try:
            writer.append(bytes([step]) * size, step)
            kept.append(step)
        except OSError:
            pass
    print(kept, flush=True)
"""


def some(values: Iterable[int], *kept: int) -> list[Any]:
    """Give all values; slow are those that are not among a few: each costs a process."""
    return [pytest.param(value, marks=[] if value in kept else [pytest.mark.slow]) for value in values]


@pytest.mark.parametrize("room", some([0, 1, 5, 19, 20, 21, 49, 50, 60, 75, 100, 300], 0, 20, 60))
def test_a_write_cut_short_leaves_the_segment_as_it_was(tmp_path: Path, room: int) -> None:
    """The kernel takes a part of a record and then no more: RLIMIT_FSIZE does what a full disk does."""
    already = HEAD_BYTES + 2 * HEAD + 10
    with child(_LIMITED, str(tmp_path), str(already + room)) as process:
        kept = say(process)
    assert process.returncode == 0
    found = [part for path in segments(tmp_path) for part in read(path)]
    assert all(isinstance(part, Frame) for part in found)
    assert str([part.unix_ms for part in found if isinstance(part, Frame)]) == kept
    # The first two and, once there is room again, the last two always get in; what fits between does too.
    assert {0, 1, 6, 7} <= {part.unix_ms for part in found if isinstance(part, Frame)}


@pytest.mark.parametrize("limit", some(range(HEAD_BYTES), 0, 1, HEAD_BYTES - 1))
def test_a_segment_whose_head_does_not_fit_is_not_begun(tmp_path: Path, limit: int) -> None:
    trying = """
        import resource, sys
        from pathlib import Path
        from gateway.recording.spool import SpoolWriter
        writer = SpoolWriter(Path(sys.argv[1]), "w")
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
        try:
            writer.append(b"x", 1)
        except OSError as error:
            print("refused", flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        writer.append(b"y", 2)
    """
    with child(trying, str(tmp_path), str(limit)) as process:
        assert say(process) == "refused"
    assert process.returncode == 0
    (path,) = tmp_path.iterdir()
    assert read(path) == [Frame(b"y", 2, HEAD + 1)]


def test_a_full_disk_takes_the_mark(small_disk: Path) -> None:
    writer = SpoolWriter(small_disk, "w")
    written = writer.append(b"a", 1)
    fill(small_disk)
    (path,) = segments(small_disk)
    with Segment(path) as segment:
        segment.mark(HEAD_BYTES + written)
    assert backlog(small_disk) == spool.Backlog(0, None)
    writer.close()


def test_a_full_disk_refuses_records_and_loses_none_that_it_took(small_disk: Path) -> None:
    writer = SpoolWriter(small_disk, "w")
    kept, refused = [], 0
    for number in range(40):
        payload = bytes([number]) * (1000 + 97 * number)
        try:
            writer.append(payload, number)
            kept.append(payload)
        except OSError:
            refused += 1
    assert refused
    (path,) = segments(small_disk)
    assert payloads(path) == kept
    writer.close()
    path.unlink()
    writer.append(b"room again", 1)
    writer.close()
    (path,) = segments(small_disk)
    assert payloads(path) == [b"room again"]


def test_many_records_keep_no_more_than_one_file_open(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(one.name) for one in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 50, hard))
    try:
        writer = SpoolWriter(tmp_path, "w", segment_bytes=1)
        for number in range(400):
            writer.append(b"x", number)
        writer.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert backlog(tmp_path).bytes == 400 * (HEAD + 1)
