"""What is kept of an exchange: a bounded copy of what passed, and the facts that the bytes themselves tell."""

import json
import time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.stores.exchanges import spooled

from auditor.config import Deployment, Route, WeightedDeployment
from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id_text
from auditor.domain.keys import Key, hash_secret
from gateway.auth import Directives
from gateway.exchange.exchange import ActiveExchange
from gateway.recording.counters import Counters, read_all
from gateway.recording.recorder import Recorder
from gateway.recording.redaction import Redactor
from gateway.recording.spool import SpoolWriter, segments
from gateway.recording.telemetry import ExchangeSeries
from gateway.upstreams.answer_heads import read_fields
from gateway.wire import Envelope, read_answer

DEPLOYMENT = Deployment(name="gpt-eu", base_url="http://127.0.0.1:1/v1", model="gpt-4o")
ROUTE = Route(model="gpt", deployments=(WeightedDeployment(name="gpt-eu"),))
PARENT = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
KEY = Key(id="key_1", name="one", hash=hash_secret("sk-bias-one"))


class Chosen:
    """The plan of the deployment that was asked."""

    deployment = DEPLOYMENT
    series = None

    def __init__(self, endpoint: str) -> None:
        self._labels = endpoint, ROUTE.model, DEPLOYMENT.name

    def open_series(self, recorder: Recorder, origin: Origin) -> ExchangeSeries:
        return recorder.series(*self._labels, origin)


class Wall:
    """A recorder of its own, and what it has written."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.recorder = Recorder(
            SpoolWriter(root / "spool", "w"), Counters(root / "counters" / "w.counters"), Redactor(())
        )

    def exchange(self, limit: int = 1000, **changed: Any) -> ActiveExchange:
        """An exchange like most, with what a test cares about changed."""
        usual: dict[str, Any] = {
            "id": new_id_text(1_700_000_000_000), "at_us": 1_700_000_000_000_000, "endpoint": "chat/completions",
            "model": "gpt", "stream": True, "directives": Directives(), "body": b'{"model":"gpt"}',
            "capture": Capture.FULL, "inclusion": 1.0, "skip_reason": "",
        } | changed  # fmt: skip
        head = SimpleNamespace(endpoint_name=usual["endpoint"], key=KEY)
        route = SimpleNamespace(
            route=ROUTE, model=usual["model"][:200], capture_limit=limit, config_hash="0123456789abcdef"
        )
        self.recorder.counters.add(("biasmeter_in_flight", usual["directives"].origin))
        return ActiveExchange(
            SimpleNamespace(recorder=self.recorder), None, head, route, {},  # type: ignore[arg-type]
            Envelope(usual["model"], usual["stream"]), usual["body"], usual["id"], "req_1", usual["at_us"],
            time.perf_counter(), 0.0, usual["directives"], (usual["capture"], usual["inclusion"], usual["skip_reason"]),
            usual["body"], Chosen(usual["endpoint"]),  # type: ignore[arg-type]
        )  # fmt: skip

    def exchanges(self) -> list[Exchange]:
        """What has been written."""
        self.recorder.write_held()
        return spooled(self.root / "spool")

    def counted(self, name: str) -> dict[tuple[str, ...], int]:
        """The counts of one series."""
        self.recorder.write_held()
        return {key[1:]: n for key, n in read_all(self.root / "counters").items() if key[0] == name}


@pytest.fixture
def wall(tmp_path: Path) -> Wall:
    return Wall(tmp_path)


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def passed(exchange: ActiveExchange, events: bytes) -> None:
    exchange.read_events(events, events)


def answered(exchange: ActiveExchange, body: bytes) -> None:
    exchange.body_passed(body)
    exchange._note(read_answer(body))


DELTA = event(choices=[{"index": 0, "delta": {"content": "x"}, "finish_reason": None}])
LAST = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
USAGE = event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 4})


def test_an_exchange_has_the_facts_of_its_request(wall: Wall) -> None:
    directives = Directives(origin=Origin.PROBE, ref="r1", parent=PARENT, tags={"tenant": "a"})
    exchange = wall.exchange(directives=directives, inclusion=0.25, model="gpt" * 100)
    exchange.attempts = 2
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (str(one.id), one.at_us) == (exchange.id, exchange.at_us)
    assert (one.origin, one.ref, one.parent, one.tags) == (Origin.PROBE, "r1", PARENT, {"tenant": "a"})
    assert (one.route, one.deployment, one.endpoint) == ("gpt", "gpt-eu", "chat/completions")
    assert (one.key_id, one.request_id, one.config_hash) == ("key_1", "req_1", "0123456789abcdef")
    assert (one.attempts, one.inclusion, one.stream, one.status) == (2, 0.25, True, 200)
    assert len(one.model) == 200


def test_every_fact_is_in_its_field(wall: Wall) -> None:
    """The record is made by position: each field has a value here that no other field could have."""
    directives = Directives(origin=Origin.PEER, ref="r1", parent=PARENT, tags={"tenant": "a"})
    exchange = wall.exchange(
        directives=directives, inclusion=0.25, capture=Capture.HASHED, endpoint="completions", model="gpt-asked"
    )
    exchange.attempts, exchange.upstream_s = 2, 0.0
    exchange.answer_head = read_fields(200, [("content-encoding", "gzip\xff")])
    answered(exchange, b'{"usage":{"prompt_tokens":3,"completion_tokens":4},"choices":[{"finish_reason":"length"}]}')
    exchange.end(Outcome.CUT, 206, "upstream_cut")
    (one,) = wall.exchanges()
    times = {name: getattr(one, name) for name in ("total_us", "first_byte_us")}
    assert 0 <= times["first_byte_us"] <= times["total_us"]
    assert one._asdict() == times | {
        "id": UUID(exchange.id), "at_us": 1_700_000_000_000_000, "origin": Origin.PEER,
        "endpoint": "completions", "route": "gpt", "deployment": "gpt-eu", "model": "gpt-asked", "status": 206,
        "outcome": Outcome.CUT, "stream": True, "attempts": 2, "capture": Capture.HASHED, "inclusion": 0.25,
        "config_hash": "0123456789abcdef", "request_id": "req_1", "tags": {"tenant": "a"}, "key_id": "key_1",
        "ref": "r1", "parent": PARENT, "error_type": "upstream_cut", "finish_reason": "length", "prompt_tokens": 3,
        "completion_tokens": 4, "upstream_us": 0, "request_bytes": 15, "response_bytes": 90, "truncated": False,
        "redacted": False, "content_encoding": r"gzip\xff", "request_hash": sha256(exchange.body).digest(),
        "response_hash": one.response_hash, "request": None, "response": None,
    }  # fmt: skip
    assert one.response_hash not in {None, one.request_hash}


def test_what_events_tell_is_noted(wall: Wall) -> None:
    exchange = wall.exchange()
    for piece in (DELTA, DELTA + LAST, USAGE, b"data: [DONE]\n\n"):
        passed(exchange, piece)
    assert exchange.finished
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.outcome, one.finish_reason) == (Outcome.COMPLETE, "stop")
    assert (one.prompt_tokens, one.completion_tokens) == (3, 4)
    assert one.response == DELTA + DELTA + LAST + USAGE + b"data: [DONE]\n\n"
    assert (one.response_bytes, one.truncated) == (len(one.response or b""), False)


def test_an_answer_without_usage_has_no_counts(wall: Wall) -> None:
    exchange = wall.exchange()
    passed(exchange, DELTA + LAST)
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.prompt_tokens, one.completion_tokens) == (None, None)
    assert wall.counted("biasmeter_tokens") == {}


def test_usage_in_every_event_counts_once_and_the_last_one_holds(wall: Wall) -> None:
    exchange = wall.exchange()
    for n in range(1, 5):
        passed(exchange, event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": n}))
    passed(exchange, event(choices=[], usage=None))
    exchange.end(Outcome.COMPLETE, 200)
    assert wall.exchanges()[0].completion_tokens == 4
    assert wall.counted("biasmeter_tokens") == {
        ("gpt-eu", "client", "prompt"): 3,
        ("gpt-eu", "client", "completion"): 4,
    }


def test_words_inside_a_text_tell_nothing(wall: Wall) -> None:
    exchange = wall.exchange()
    passed(
        exchange,
        event(choices=[{"delta": {"content": '"usage":{"prompt_tokens":9},"finish_reason":"stop","error":1'}}]),
    )
    assert not exchange.finished
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.outcome, one.prompt_tokens, one.finish_reason) == (Outcome.COMPLETE, None, None)


def test_an_event_of_several_data_lines_is_read_as_one(wall: Wall) -> None:
    exchange = wall.exchange()
    passed(exchange, b'data: {"choices":[{"finish_reason":"stop"}],\r\ndata:  "usage":{"prompt_tokens":3}}\r\n\r\n')
    assert exchange.finished
    exchange.end(Outcome.COMPLETE, 200)
    assert wall.exchanges()[0].prompt_tokens == 3


@pytest.mark.parametrize("error", [{"message": "no"}, "no", 1])
def test_an_error_inside_the_stream_is_a_failure_of_the_deployment(wall: Wall, error: object) -> None:
    exchange = wall.exchange()
    passed(exchange, DELTA + event(error=error))
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.outcome, one.error_type, one.status) == (Outcome.FAILED, "in_band", 200)
    assert (exchange.outcome, exchange.error_type) == (Outcome.FAILED, "in_band")


def test_a_status_says_more_than_the_body_of_an_error(wall: Wall) -> None:
    exchange = wall.exchange(stream=False)
    answered(exchange, b'{"error":{"message":"no"}}')
    exchange.end(Outcome.FAILED, 429, "http_429")
    assert wall.exchanges()[0].error_type == "http_429"


def test_only_the_first_end_counts(wall: Wall) -> None:
    exchange = wall.exchange()
    exchange.end(Outcome.COMPLETE, 200)
    exchange.end(Outcome.CLIENT_GONE, 499, "client_gone")
    (one,) = wall.exchanges()
    assert one.outcome is Outcome.COMPLETE
    assert wall.counted("biasmeter_capture") == {("stored",): 1}
    assert wall.counted("biasmeter_in_flight") == {("client",): 0}


def test_it_is_in_flight_until_it_ends(wall: Wall) -> None:
    exchange = wall.exchange()
    assert wall.counted("biasmeter_in_flight") == {("client",): 1}
    other = wall.exchange(directives=Directives(origin=Origin.JUDGE))
    exchange.end(Outcome.CLIENT_GONE, 499)
    assert wall.counted("biasmeter_in_flight") == {("client",): 0, ("judge",): 1}
    other.end(Outcome.FAILED, 502)
    assert wall.counted("biasmeter_in_flight") == {("client",): 0, ("judge",): 0}


@given(st.lists(st.binary(max_size=40), max_size=8), st.binary(max_size=60), st.integers(0, 100))
def test_the_copy_is_the_beginning_of_what_passed_and_no_longer_than_the_limit(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], body: bytes, limit: int
) -> None:
    wall = Wall(tmp_path_factory.mktemp("wall"))
    exchange = wall.exchange(limit=limit, body=body)
    for piece in pieces:
        exchange.body_passed(piece)
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    whole = b"".join(pieces)
    assert (one.request, one.response) == (body[:limit], whole[:limit])
    assert (one.request_bytes, one.response_bytes) == (len(body), len(whole))
    assert one.truncated is (max(len(body), len(whole)) > limit)
    assert (one.request_hash, one.response_hash) == (None, None)


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(0, 20))
def test_a_hashed_exchange_holds_hashes_of_all_that_passed_and_no_content(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], limit: int
) -> None:
    wall = Wall(tmp_path_factory.mktemp("wall"))
    exchange = wall.exchange(limit=limit, capture=Capture.HASHED, body=b"canary")
    for piece in pieces:
        exchange.body_passed(piece)
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.request, one.response, one.truncated) == (None, None, False)
    assert one.request_hash == sha256(b"canary").digest()
    assert one.response_hash == sha256(b"".join(pieces)).digest()
    assert b"canary" not in b"".join(path.read_bytes() for path in segments(wall.root / "spool"))


def test_what_is_passed_over_is_counted_and_not_copied(wall: Wall) -> None:
    exchange = wall.exchange(inclusion=0.0, skip_reason="not_sampled")
    passed(exchange, LAST + USAGE)
    exchange.end(Outcome.COMPLETE, 200)
    assert wall.exchanges() == []
    assert exchange.copy == []
    assert wall.counted("biasmeter_capture") == {("not_sampled",): 1}
    # It still is a request, with its tokens.
    assert sum(wall.counted("biasmeter_requests").values()) == 1
    assert len(wall.counted("biasmeter_tokens")) == 2


def test_the_memory_of_a_long_stream_is_bounded(wall: Wall) -> None:
    exchange = wall.exchange(limit=10_000)
    for _ in range(1000):
        passed(exchange, DELTA)
    assert 10_000 <= sum(map(len, exchange.copy)) < 10_000 + len(DELTA)
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert (one.response_bytes, one.truncated) == (1000 * len(DELTA), True)


@pytest.mark.parametrize("encoding", [None, "gzip", "\udcff\udcfe", "é\0", "x" * 5000])
def test_whatever_an_upstream_calls_its_encoding_can_be_stored(wall: Wall, encoding: str | None) -> None:
    exchange = wall.exchange()
    exchange.answer_head = read_fields(200, [] if encoding is None else [("content-encoding", encoding)])
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    stored = one.content_encoding
    assert stored == encoding or (stored is not None and stored.isascii() and len(stored) <= 100)
    assert wall.counted("biasmeter_capture") == {("stored",): 1}


def test_times_add_up(wall: Wall) -> None:
    exchange = wall.exchange()
    exchange.upstream_s = 0.0
    passed(exchange, DELTA)
    exchange.end(Outcome.COMPLETE, 200)
    (one,) = wall.exchanges()
    assert one.first_byte_us is not None
    assert 0 <= one.first_byte_us <= one.total_us
    silent = wall.exchange()
    silent.end(Outcome.FAILED, 504, "first_token_timeout")
    assert wall.exchanges()[1].first_byte_us is None


def test_the_first_token_is_timed_for_streams_alone(wall: Wall) -> None:
    for stream in (False, True):
        exchange = wall.exchange(stream=stream)
        answered(exchange, b"{}")
        exchange.end(Outcome.COMPLETE, 200)
        assert bool(wall.counted("biasmeter_time_to_first_token_seconds")) == stream
