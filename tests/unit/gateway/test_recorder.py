"""What becomes of an exchange that has ended: a record, and counts that agree with it."""

from collections import Counter
from pathlib import Path

import pytest
from support.stores.exchanges import count, exchange, spooled

from auditor.domain.exchange import Exchange, Origin
from gateway.recording.counters import Counters, Key, read_all
from gateway.recording.recorder import IN_FLIGHT, LARGE_COPY, Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(SpoolWriter(tmp_path / "spool", "w"), Counters(tmp_path / "counters" / "w.counters"), Redactor(()))


def written(tmp_path: Path) -> list[Exchange]:
    return spooled(tmp_path / "spool")


def outcomes(recorder: Recorder, tmp_path: Path) -> dict[str, int]:
    counts = read_all(tmp_path / "counters")
    return {key[1]: count for key, count in counts.items() if key[0] == "biasmeter_capture"}


def counted(tmp_path: Path, name: str) -> Counter[Key]:
    return Counter({key[1:]: n for key, n in read_all(tmp_path / "counters").items() if key[0] == name})


def test_what_is_kept_is_written_together_and_counted_once(recorder: Recorder, tmp_path: Path) -> None:
    given = [exchange(), exchange(), exchange()]
    for one in given:
        recorder.keep(one)
    assert written(tmp_path) == []
    recorder.write_held()
    recorder.write_held()
    assert written(tmp_path) == given
    assert outcomes(recorder, tmp_path) == {"stored": 3}


def test_those_that_have_ended_are_no_longer_in_flight_with_the_next_write(recorder: Recorder, tmp_path: Path) -> None:
    recorder.counters.add(IN_FLIGHT, 3)
    recorder.ended += 2
    recorder.write_held()
    recorder.write_held()
    assert counted(tmp_path, "biasmeter_in_flight") == {("client",): 1}


def test_what_cannot_be_written_costs_nothing_that_is_held_with_it(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.recording.spool.MAX_PAYLOAD", 1000)
    given = [exchange(), exchange(request=bytes(2000)), exchange(model="\ud800"), exchange()]
    for one in given:
        recorder.keep(one)
    recorder.write_held()
    assert written(tmp_path) == [given[0], given[3]]
    assert outcomes(recorder, tmp_path) == {"stored": 2, "dropped_spool_error": 1, "dropped_unwritable": 1}


def test_what_is_passed_over_is_counted_with_its_reason(recorder: Recorder, tmp_path: Path) -> None:
    for reason in ("not_sampled", "capture_off", "not_sampled"):
        recorder.count_skipped(reason)
    assert written(tmp_path) == []
    assert outcomes(recorder, tmp_path) == {"not_sampled": 2, "capture_off": 1}


def test_a_full_spool_takes_no_more_until_there_is_room(recorder: Recorder, tmp_path: Path) -> None:
    recorder.spool_full = True
    recorder.keep(exchange())
    recorder.spool_full = False
    recorder.keep(exchange())
    recorder.write_held()
    assert len(written(tmp_path)) == 1
    assert outcomes(recorder, tmp_path) == {"dropped_spool_full": 1, "stored": 1}


def test_a_spool_that_cannot_be_written_costs_the_copy_and_not_the_answer(recorder: Recorder, tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file in the place of the folder")
    recorder.keep(exchange())
    recorder.write_held()
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1}
    (tmp_path / "spool").unlink()
    recorder.keep(exchange())
    recorder.write_held()
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1, "stored": 1}


def test_a_spool_that_cannot_be_written_is_logged_once_in_a_while(
    recorder: Recorder, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spool").write_text("a file in the place of the folder")
    for _ in range(500):
        recorder.keep(exchange())
        recorder.write_held()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "the spool cannot be written" in line
    recorder.spool_full = True
    recorder.keep(exchange())
    assert "max_bytes" in caplog.records[-1].getMessage()
    assert len(caplog.records) == 2
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 500, "dropped_spool_full": 1}


@pytest.mark.parametrize(
    "changed",
    [{"tags": {"tenant": "\udcff"}}, {"request_id": "\ud800"}, {"prompt_tokens": 2**64}, {"response_bytes": -(2**70)}],
)
def test_an_exchange_that_cannot_be_written_costs_the_copy_and_not_the_answer(
    recorder: Recorder, tmp_path: Path, changed: dict[str, object]
) -> None:
    recorder.keep(exchange(**changed))
    recorder.keep(exchange())
    recorder.write_held()
    assert outcomes(recorder, tmp_path) == {"dropped_unwritable": 1, "stored": 1}
    assert len(written(tmp_path)) == 1


async def test_a_record_larger_than_the_spool_takes_is_dropped(recorder: Recorder, tmp_path: Path) -> None:
    writing = recorder.keep(exchange(response=bytes(65 << 20)))
    assert writing is not None
    await writing
    assert outcomes(recorder, tmp_path) == {"dropped_spool_error": 1}
    assert written(tmp_path) == []


def test_tokens_are_counted_where_they_were_reported(recorder: Recorder, tmp_path: Path) -> None:
    count(recorder, exchange(prompt_tokens=3))
    count(recorder, exchange(prompt_tokens=0, completion_tokens=5, origin=Origin.PROBE))
    count(recorder, exchange())
    assert counted(tmp_path, "biasmeter_tokens") == {
        ("gpt-eu", "client", "prompt"): 3, ("gpt-eu", "probe", "prompt"): 0, ("gpt-eu", "probe", "completion"): 5
    }  # fmt: skip


def test_requests_are_counted_by_what_the_client_got(recorder: Recorder, tmp_path: Path) -> None:
    for status in (200, 200, 499, 502):
        count(recorder, exchange(status=status))
    assert counted(tmp_path, "biasmeter_requests") == {
        ("chat/completions", "gpt", "gpt-eu", "client", "200"): 2,
        ("chat/completions", "gpt", "gpt-eu", "client", "499"): 1,
        ("chat/completions", "gpt", "gpt-eu", "client", "502"): 1,
    }


def test_a_deployment_s_failures_are_counted_by_attempt(recorder: Recorder, tmp_path: Path) -> None:
    recorder.count_failure("gpt-eu", Origin.CLIENT, "http_5xx")
    recorder.count_failure("gpt-eu", Origin.CLIENT, "http_5xx")
    recorder.count_failure("gpt-us", Origin.PROBE, "upstream_connect")
    assert counted(tmp_path, "biasmeter_upstream_errors") == {
        ("gpt-eu", "client", "http_5xx"): 2, ("gpt-us", "probe", "upstream_connect"): 1
    }  # fmt: skip


def test_the_first_token_is_timed_where_there_is_one(recorder: Recorder, tmp_path: Path) -> None:
    count(recorder, exchange(stream=True, first_byte_us=None))
    assert counted(tmp_path, "biasmeter_time_to_first_token_seconds") == {}
    count(recorder, exchange(stream=True, first_byte_us=20_000, origin=Origin.PEER))
    times = counted(tmp_path, "biasmeter_time_to_first_token_seconds")
    assert times[("gpt", "gpt-eu", "peer", "sum_us")] == 20_000


def test_the_overhead_is_what_the_gateway_took(recorder: Recorder, tmp_path: Path) -> None:
    count(recorder, exchange(total_us=1_000_500, upstream_us=1_000_000))
    times = counted(tmp_path, "biasmeter_overhead_seconds")
    assert times[("client", "sum_us")] == 500


async def test_a_large_copy_is_written_also_if_nobody_waits_for_it(recorder: Recorder, tmp_path: Path) -> None:
    large, small = exchange(response=bytes(LARGE_COPY + 1)), exchange()
    assert recorder.keep(large) is not None
    assert recorder.keep(small) is None
    recorder.write_held()
    await recorder.finish()
    assert written(tmp_path) == [small, large]
    assert outcomes(recorder, tmp_path) == {"stored": 2}
