"""The key snapshot: replaced whole, read when it has changed, and trusted for as long as the store confirms it."""

import json
import os
import threading
import time
import zlib
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from support.stores.small_disks import fill

from auditor.domain.keys import Key, Right, hash_secret
from gateway import snapshot
from gateway.snapshot import FRESH_S, SnapshotReader

KEY = Key(id="key_1", name="app", hash=hash_secret("sk-1"))
FULL = Key(
    id="key_2",
    name='odd "name" é\n',
    hash=hash_secret("sk-2"),
    models=("gpt", "*"),
    rights=frozenset(Right),
    rpm=10,
    tpm=20,
    budget=1.5,
    expires_at=datetime(2026, 3, 1, 12, 30, 0, 123456, tzinfo=UTC),
    revoked=True,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "gateway" / "keys.json"


def confirmed(path: Path, age: float) -> None:
    """Let the store have confirmed the snapshot `age` seconds ago."""
    snapshot.confirm(path)
    then = time.time() - age
    os.utime(snapshot.confirmation(path), (then, then))


def document_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes().partition(b"\n")[0]))


def put(path: Path, text: bytes) -> None:
    """Write a file whose checksum is right, whatever its text."""
    path.write_bytes(text + b"\n%08x\n" % zlib.crc32(text))


def test_what_was_written_is_read(path: Path) -> None:
    snapshot.write(path, [KEY, FULL])
    assert snapshot.read(path).keys == {KEY.hash: KEY, FULL.hash: FULL}


def test_what_was_spent_elsewhere_is_read(path: Path) -> None:
    spent = {"key_1": 0, "key_2": 10**25}
    snapshot.write(path, [KEY, FULL], spent)
    assert snapshot.read(path).spent_elsewhere == spent


def test_a_moment_of_another_zone_stays_the_same_moment(path: Path) -> None:
    moment = datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    snapshot.write(path, [replace(KEY, expires_at=moment)])
    assert snapshot.read(path).keys[KEY.hash].expires_at == moment


def test_it_holds_hashes_and_nobody_else_can_read_it(path: Path) -> None:
    snapshot.write(path, [KEY])
    snapshot.confirm(path)
    assert "sk-1" not in path.read_text()
    assert [one.stat().st_mode & 0o777 for one in (path.parent, path, snapshot.confirmation(path))] == [
        0o700, 0o600, 0o600
    ]  # fmt: skip


def test_whether_a_key_was_ever_made(path: Path) -> None:
    snapshot.write(path, [])
    assert not snapshot.read(path).any_client_key
    snapshot.write(path, [replace(KEY, revoked=True)])
    assert snapshot.read(path).any_client_key


def test_a_change_is_seen_at_the_next_look(path: Path) -> None:
    reader = SnapshotReader(path)
    reader.refresh()
    assert reader.current is None
    for keys in ([], [KEY], [KEY, FULL], [FULL], []):
        snapshot.write(path, keys)
        snapshot.confirm(path)
        reader.refresh()
        assert reader.current is not None
        assert set(reader.current.keys.values()) == set(keys)


def test_a_change_of_the_same_length_at_the_same_moment_is_seen(path: Path) -> None:
    reader = SnapshotReader(path)
    snapshot.write(path, [KEY])
    snapshot.confirm(path)
    stat = path.stat()
    reader.refresh()
    snapshot.write(path, [replace(KEY, name="ppa")])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    reader.refresh()
    assert reader.current is not None
    assert reader.current.keys[KEY.hash].name == "ppa"


def test_what_has_not_changed_is_not_read_again(path: Path) -> None:
    reader = SnapshotReader(path)
    snapshot.write(path, [KEY])
    snapshot.confirm(path)
    reader.refresh()
    seen = reader.current
    snapshot.confirm(path)
    reader.refresh()
    assert reader.current is seen


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"{}", b"null", b"[]", b"17", b'"keys"', b'{"keys":[]}', b'{"keys":null}', b'{"keys":5}',
        b'{"keys":{"a":1}}',
        b'{"keys":[null]}', b'{"keys":[[]]}', b'{"keys":[{}]}', b"\xff\xfe", b"[" * 100_000,
        b'{"keys":[],"spent_elsewhere":null}', b'{"keys":[],"spent_elsewhere":[1]}',
        b'{"keys":[],"spent_elsewhere":{"a":null}}', b'{"keys":[],"spent_elsewhere":{"a":Infinity}}',
        b'{"keys":[],"spent_elsewhere":{"a":"much"}}',
    ],
)  # fmt: skip
def test_a_broken_file_leaves_the_last_good_one_and_ages(path: Path, content: bytes) -> None:
    reader = SnapshotReader(path)
    snapshot.write(path, [KEY])
    confirmed(path, 0)
    reader.refresh()
    put(path, content)
    confirmed(path, -100)  # confirmed, but what was confirmed could not be read
    reader.refresh()
    assert reader.current is not None
    assert set(reader.current.keys) == {KEY.hash}
    assert reader._confirmed <= time.time()
    with pytest.raises(ValueError):
        snapshot.read(path)
    # The next good one is taken up.
    snapshot.write(path, [FULL])
    snapshot.confirm(path)
    reader.refresh()
    assert set(reader.current.keys) == {FULL.hash}


@pytest.mark.parametrize(
    ("field", "value"),
    [("hash", "zz"), ("hash", None), ("rights", ["root"]), ("rights", None), ("models", None), ("expires_at", "soon"),
     ("expires_at", 5)],
)  # fmt: skip
def test_a_key_that_cannot_be_read_breaks_the_file(path: Path, field: str, value: object) -> None:
    """A key without its restriction must not become a key without any."""
    snapshot.write(path, [KEY])
    document = document_of(path)
    document["keys"][0][field] = value
    put(path, json.dumps(document).encode())
    with pytest.raises(ValueError):
        snapshot.read(path)


@pytest.mark.parametrize("field", [one.name for one in fields(Key)])
def test_a_key_of_which_a_part_is_missing_breaks_the_file(path: Path, field: str) -> None:
    snapshot.write(path, [KEY])
    document = document_of(path)
    del document["keys"][0][field]
    put(path, json.dumps(document).encode())
    with pytest.raises(ValueError):
        snapshot.read(path)


def test_a_snapshot_that_vanishes_is_kept(path: Path) -> None:
    reader = SnapshotReader(path)
    snapshot.write(path, [KEY])
    snapshot.confirm(path)
    reader.refresh()
    path.unlink()
    reader.refresh()
    assert reader.current is not None
    assert set(reader.current.keys) == {KEY.hash}


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (FRESH_S - 1, True), (FRESH_S + 1, False), (86_400, False)])
def test_it_is_fresh_for_ten_seconds(path: Path, age: float, fresh: bool) -> None:
    reader = SnapshotReader(path)
    assert not reader.fresh()
    snapshot.write(path, [KEY])
    reader.refresh()
    assert not reader.fresh()
    confirmed(path, age)
    reader.refresh()
    assert reader.fresh() is fresh


def test_a_reader_never_sees_half_of_it(path: Path) -> None:
    """Replaced a thousand times under a reader that looks all the while."""
    few, many = [KEY], [replace(KEY, id=f"key_{n}", hash=hash_secret(str(n))) for n in range(50)]
    snapshot.write(path, few)
    snapshot.confirm(path)
    done = threading.Event()

    def write() -> None:
        for turn in range(500):
            snapshot.write(path, many if turn % 2 else few)
        done.set()

    writing = threading.Thread(target=write)
    writing.start()
    sizes = set()
    while not done.is_set():
        sizes.add(len(snapshot.read(path).keys))
    writing.join()
    assert sizes <= {1, 50}
    assert [one.name for one in path.parent.iterdir() if one.suffix == ".new"] == []


# --- a full disk -----------------------------------------------------------------------------------------------------


@pytest.fixture
def full(small_disk: Path) -> Path:
    """The snapshot of one key, on a disk without any space left."""
    path = small_disk / "keys.json"
    snapshot.write(path, [KEY])
    fill(small_disk)
    return path


def test_a_revocation_and_new_keys_reach_the_reader_on_a_full_disk(full: Path) -> None:
    reader = SnapshotReader(full)
    snapshot.confirm(full)
    reader.refresh()
    for keys in ([replace(KEY, revoked=True)], [KEY, FULL], [replace(KEY, id=f"key_{n}") for n in range(40)], []):
        snapshot.write(full, keys, {"key_1": 10**18})
        reader.refresh()
        assert reader.current is not None
        assert reader.current.keys == {key.hash: key for key in keys}
    assert [one.name for one in full.parent.iterdir() if one.suffix == ".new"] == []


def test_what_does_not_fit_on_a_full_disk_is_an_error_and_leaves_the_file(full: Path) -> None:
    many = [replace(KEY, id=f"key_{n}", hash=hash_secret(str(n))) for n in range(500)]
    with pytest.raises(OSError, match="No space left"):
        snapshot.write(full, many)
    assert snapshot.read(full).keys == {KEY.hash: KEY}


def test_a_file_that_is_half_overwritten_is_not_believed(path: Path) -> None:
    """Whatever parts of the old and the new text a reader finds beside each other."""
    snapshot.write(path, [KEY, FULL])
    old = path.read_bytes()
    snapshot.write(path, [replace(KEY, name="changed"), replace(FULL, name="changed too")])
    new = path.read_bytes()
    assert len(old) == len(new)
    reader = SnapshotReader(path)
    for cut in range(len(old.rstrip())):
        path.write_bytes(new[:cut] + old[cut:])
        if path.read_bytes() not in {old, new}:
            with pytest.raises(ValueError, match="checksum"):
                snapshot.read(path)
    path.write_bytes(new)
    reader.refresh()
    assert reader.current is not None
    assert {key.name for key in reader.current.keys.values()} == {"changed", "changed too"}
