"""Exchanges for tests: one that is like most, with what a test cares about changed."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id
from gateway.recording import codec
from gateway.recording.recorder import Recorder
from gateway.recording.spool import Frame, Segment, read_frames, segments
from gateway.storing.copy_rows import ExchangeRow, row_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def exchange(moment: datetime = NOON, **changed: Any) -> Exchange:
    """Make an exchange that began at ``moment``."""
    at_us = round(moment.timestamp() * 1_000_000)
    usual: dict[str, Any] = {
        "id": new_id(at_us // 1000),
        "at_us": at_us,
        "origin": Origin.CLIENT,
        "endpoint": "chat/completions",
        "route": "gpt",
        "deployment": "gpt-eu",
        "model": "gpt",
        "status": 200,
        "outcome": Outcome.COMPLETE,
        "stream": False,
        "attempts": 1,
        "capture": Capture.FULL,
        "inclusion": 1.0,
        "config_hash": "0123456789abcdef",
        "request_id": "req_1",
        "tags": {},
        "request": b'{"model":"gpt"}',
        "response": b'{"choices":[]}',
    }
    return Exchange(**(usual | changed))


def count(recorder: Recorder, one: Exchange) -> None:
    """Count an exchange as the gateway does when it ends."""
    recorder.series(one.endpoint, one.route, one.deployment, one.origin).count(
        one.status, one.prompt_tokens, one.completion_tokens, one.total_us, one.upstream_us, one.first_byte_us
    )


def rows_of(exchanges: Iterable[Exchange]) -> list[ExchangeRow]:
    """Make the rows that the shipper writes of exchanges."""
    return [row_of(codec.encode(one)) for one in exchanges]


def full_exchange() -> Exchange:
    """Make an exchange with every field set to something that is not its default."""
    return exchange(
        origin=Origin.PROBE,
        outcome=Outcome.CUT,
        status=499,
        stream=True,
        attempts=3,
        inclusion=0.25,
        key_id="key_1",
        ref="plan-1/7",
        parent=UUID("01890a5d-ac96-774b-bcce-b302099a8057"),
        tags={"tenant": "é", "empty": ""},
        error_type="upstream_cut",
        finish_reason="length",
        prompt_tokens=0,
        completion_tokens=2**32,
        total_us=2**40,
        upstream_us=5,
        first_byte_us=0,
        request_bytes=2**33,
        response_bytes=1,
        truncated=True,
        redacted=True,
        content_encoding="gzip",
        request_hash=bytes(32),
        response_hash=b"\xff" * 32,
        request=b"\x00\xff",
        response=b"",
    )


def spooled(folder: Path) -> list[Exchange]:
    """Read all exchanges in the segments of a spool folder."""
    found = []
    for path in segments(folder):
        with Segment(path) as segment:
            parts = read_frames(segment.read(segment.size()), segment.salt, finished=True)
            found += [codec.decode(part.payload) for part in parts if isinstance(part, Frame)]
    return found
