"""What becomes of an exchange that has ended: a record, and counts that agree with it."""

from collections import Counter
from pathlib import Path

import pytest
from exchanges import exchange

from auditor.domain.exchange import Exchange, Origin, Outcome
from gateway import record
from gateway.counters import Counters, Key, read_all
from gateway.recorder import Recorder
from gateway.spool import MAGIC, Frame, SpoolWriter, read_frames, segments


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(SpoolWriter(tmp_path / "spool", "w"), Counters(tmp_path / "counters" / "w.counters"))


def written(tmp_path: Path) -> list[Exchange]:
    data = b"".join(path.read_bytes()[len(MAGIC) :] for path in segments(tmp_path / "spool"))
    return [record.decode(part.payload) for part in read_frames(data, finished=True) if isinstance(part, Frame)]


def outcomes(recorder: Recorder, tmp_path: Path) -> dict[str, int]:
    counts = read_all(tmp_path / "counters")
    return {key[1]: count for key, count in counts.items() if key[0] == "tiltmeter_capture"}


def counted(tmp_path: Path, name: str) -> Counter[Key]:
    return Counter({key[1:]: n for key, n in read_all(tmp_path / "counters").items() if key[0] == name})


def test_what_is_kept_is_written_and_counted_once(recorder: Recorder, tmp_path: Path) -> None:
    given = [exchange(), exchange()]
    for one in given:
        recorder.keep(one)
    assert written(tmp_path) == given
    assert outcomes(recorder, tmp_path) == {"stored": 2}


def test_what_is_passed_over_is_counted_with_its_reason(recorder: Recorder, tmp_path: Path) -> None:
    for reason in ("not_sampled", "capture_off", "not_sampled"):
        recorder.pass_over(reason)
    assert written(tmp_path) == []
    assert outcomes(recorder, tmp_path) == {"not_sampled": 2, "capture_off": 1}


def test_a_full_spool_takes_no_more_until_there_is_room(recorder: Recorder, tmp_path: Path) -> None:
    recorder.spool_full = True
    recorder.keep(exchange())
    recorder.spool_full = False
    recorder.keep(exchange())
    assert len(written(tmp_path)) == 1
    assert outcomes(recorder, tmp_path) == {"dropped_spool_full": 1, "stored": 1}


def test_a_spool_that_cannot_be_written_costs_the_copy_and_not_the_answer(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file in the place of the folder")
    recorder.keep(exchange())
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1}
    (tmp_path / "spool").unlink()
    recorder.keep(exchange())
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1, "stored": 1}


@pytest.mark.parametrize(
    "changed",
    [{"tags": {"tenant": "\udcff"}}, {"request_id": "\ud800"}, {"prompt_tokens": 2**64}, {"response_bytes": -(2**70)}],
)
def test_an_exchange_that_cannot_be_written_costs_the_copy_and_not_the_answer(
    recorder: Recorder, tmp_path: Path, changed: dict[str, object]
) -> None:
    recorder.keep(exchange(**changed))
    recorder.keep(exchange())
    assert outcomes(recorder, tmp_path) == {"dropped_unwritable": 1, "stored": 1}
    assert len(written(tmp_path)) == 1


def test_a_record_larger_than_the_spool_takes_is_dropped(recorder: Recorder, tmp_path: Path) -> None:
    recorder.keep(exchange(response=bytes(65 << 20)))
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1}
    assert written(tmp_path) == []


def test_tokens_are_counted_where_they_were_reported(recorder: Recorder, tmp_path: Path) -> None:
    recorder.count(exchange(prompt_tokens=3))
    recorder.count(exchange(prompt_tokens=0, completion_tokens=5, origin=Origin.PROBE))
    recorder.count(exchange())
    assert counted(tmp_path, "tiltmeter_tokens") == {
        ("gpt-eu", "client", "prompt"): 3, ("gpt-eu", "probe", "prompt"): 0, ("gpt-eu", "probe", "completion"): 5
    }  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "error_type", "status", "blamed"),
    [
        (Outcome.COMPLETE, None, 200, False),
        (Outcome.FAILED, "http_4xx", 400, False),
        (Outcome.CLIENT_GONE, "client_gone", 499, False),
        (Outcome.CLIENT_GONE, None, 499, False),
        (Outcome.FAILED, "http_429", 429, True),
        (Outcome.FAILED, "http_5xx", 500, True),
        (Outcome.FAILED, "upstream_connect", 502, True),
        (Outcome.FAILED, "first_token_timeout", 504, True),
        (Outcome.FAILED, "in_band", 200, True),
        (Outcome.CUT, "idle_timeout", 200, True),
    ],
)
def test_the_deployment_is_blamed_for_its_own_failures(
    recorder: Recorder, tmp_path: Path, outcome: Outcome, error_type: str | None, status: int, blamed: bool
) -> None:
    recorder.count(exchange(outcome=outcome, error_type=error_type, status=status))
    assert counted(tmp_path, "tiltmeter_upstream_errors") == ({("gpt-eu", "client", error_type): 1} if blamed else {})
    assert counted(tmp_path, "tiltmeter_requests") == {("chat/completions", "gpt", "gpt-eu", "client", str(status)): 1}


def test_the_first_token_is_timed_for_streams_alone(recorder: Recorder, tmp_path: Path) -> None:
    recorder.count(exchange(stream=False, first_byte_us=5))
    recorder.count(exchange(stream=True, first_byte_us=None))
    assert counted(tmp_path, "tiltmeter_time_to_first_token_seconds") == {}
    recorder.count(exchange(stream=True, first_byte_us=20_000, origin=Origin.PEER))
    times = counted(tmp_path, "tiltmeter_time_to_first_token_seconds")
    assert times[("gpt", "gpt-eu", "peer", "sum_us")] == 20_000


def test_the_overhead_is_what_the_gateway_took(recorder: Recorder, tmp_path: Path) -> None:
    recorder.count(exchange(total_us=1_000_500, upstream_us=1_000_000))
    times = counted(tmp_path, "tiltmeter_overhead_seconds")
    assert times[("client", "sum_us")] == 500
