"""Records are overwritten in the spool while its writer goes on, and the shipper ships the others."""

from datetime import timedelta
from pathlib import Path

from support.stores.exchanges import NOON, exchange

from auditor.domain.erasure import ErasureSelector, SelectorKind
from gateway.recording import codec, spool
from gateway.recording.spool import Damage, Segment, SpoolWriter
from gateway.recording.spool_search import erase_records, find_records, shipped_past

KEY = ErasureSelector(kind=SelectorKind.KEY, value="key_1")
CANARY = b"the canary sings"


def test_selected_records_are_overwritten_and_the_others_stay(tmp_path: Path) -> None:
    made = [
        exchange(NOON + timedelta(seconds=index), key_id=f"key_{index % 2}", request=CANARY if index % 2 else b"plain")
        for index in range(6)
    ]
    writer = SpoolWriter(tmp_path, "w")
    for one in made[:4]:
        writer.append(codec.encode(one), 1)
    made_from = exchange(NOON, parent=made[1].id, request=CANARY)
    writer.append(codec.encode(made_from), 1)
    (path,) = spool.segments(tmp_path)
    found = find_records(tmp_path, KEY, {made[1].id})
    assert found.ids == {made[1].id, made[3].id, made_from.id}
    size = path.stat().st_size
    erase_records(found)
    assert path.stat().st_size == size
    assert CANARY not in path.read_bytes()
    for one in made[4:]:  # its writer goes on where it was
        writer.append(codec.encode(one._replace(request=b"plain")), 1)
    writer.close()
    with Segment(path) as segment:
        parts = list(spool.read_frames(segment.read_whole(), segment.salt, spool.HEAD_BYTES, finished=True))
    assert not any(isinstance(part, Damage) for part in parts)
    kept = [codec.decode(part.payload).id for part in parts if not part.payload.startswith(spool.ERASED)]
    assert kept == [made[0].id, made[2].id, made[4].id, made[5].id]
    assert find_records(tmp_path, KEY, set()).ids == {made[5].id}
    assert shipped_past(tmp_path, found)  # nobody ships


def test_files_of_the_quarantine_are_searched_too(tmp_path: Path) -> None:
    folder = tmp_path / "quarantine"
    folder.mkdir()
    (folder / "w-1.bin").write_bytes(codec.encode(exchange(NOON, key_id="key_1", request=CANARY)))
    (folder / "w-2.bin").write_bytes(codec.encode(exchange(NOON, key_id="key_2")))
    (folder / "w-3.bin").write_bytes(b"\x01no record")
    found = find_records(tmp_path, KEY, set())
    assert (found.count, found.unreadable) == (1, 1)
    erase_records(found)
    assert sorted(path.name for path in folder.iterdir()) == ["w-2.bin", "w-3.bin"]
