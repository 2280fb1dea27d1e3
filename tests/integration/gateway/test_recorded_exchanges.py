"""What clients and deployments get, byte for byte, is what was recorded: no change of the relay alters it unnoticed.

Each case is one answer, head, frame, kind of request or event of `test_unary_exchange` and `test_stream_exchange`, once
with heads that are remembered and once with parsed ones. The record was made when the gateway had two relays, of which
each case took both. `make expected` renews it, after an intended change.
"""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest
from integration.gateway import test_stream_exchange as streams
from integration.gateway import test_unary_exchange as unary
from support.servers.both_relays import way

RECORD: Final = Path(__file__).with_name("recorded_exchanges.json")
#: Longer bytes are recorded by their hash.
_MOST: Final = 1500

Heard = dict[str, list[str]]


def cases() -> Iterator[tuple[str, Any]]:
    """Give all cases, by name."""
    for answer in unary.ANSWERS:
        yield f"answer {answer}", [unary.Ask(0, 0, "m", answer, (), (), "usual")]
        yield f"answer in pieces {answer}", [unary.Ask(0, 0, "m", answer, (), (11, 70, 160), "usual")]
    for kind in dict.fromkeys(unary.KINDS):
        yield f"request {kind}", [unary.Ask(0, 0, "m", "usual", (9, 120, 300), (), kind)]
    for model in ("n", "alias", "small", "hashed", "off", "none such"):
        yield f"model {model}", [unary.Ask(0, 0, model, answer, (), (), "usual") for answer in ("usual", "too long")]
    for event in unary.EVENTS:
        yield f"event {event}", [unary.USUAL, unary.Event(event), unary.USUAL, unary.USUAL]
    for stream in streams.STREAMS:
        for usage in (None, True):
            yield f"stream {stream}, usage {usage}", [streams.Ask(stream, usage=usage)]
            yield f"stream in pieces {stream}, usage {usage}", [streams.Ask(stream, usage=usage, cuts=(7, 90, 91, 210))]
    for head in streams.HEADS:
        yield f"stream head {head}", [streams.Ask(head=head)]
    for frame in streams.FRAMES:
        yield f"stream frame {frame}", [streams.Ask(frame=frame)]
    for middle in streams.MIDDLES:
        yield f"stream middle {middle}", [streams.Ask(middle=middle, after=3), streams.Ask()]


def hear(name: str, *, remembers: bool) -> Heard:
    """Return what clients and deployments get in a case, without what is different each time."""
    steps = dict(cases())[name]
    is_stream = isinstance(steps[0], streams.Ask)
    told, before = _drive(steps, remembers, is_stream), _warm_up(remembers, is_stream)
    clients = {
        number: data.removeprefix(before["clients"].get(number, b"")) for number, data in told["clients"].items()
    }
    asked = Counter(told["deployments"]) - Counter(before["deployments"])
    return {
        "clients": [_text(data) for data in clients.values() if data],
        "deployments": [_text(data) for data in sorted(asked.elements())],
    }


@cache
def _warm_up(remembers: bool, is_stream: bool) -> dict[str, Any]:
    return _drive([], remembers, is_stream)


def _drive(steps: Sequence[Any], remembers: bool, is_stream: bool) -> dict[str, Any]:
    async def drive(folder: Path) -> dict[str, Any]:
        if is_stream:
            told: dict[str, Any] = (await streams.drive(steps, folder, remembers=remembers))[0]
            return told
        script = unary.Script()
        async with way(unary.SETTINGS, script, folder, remembers=remembers) as made:
            await unary.drive(steps, script, made)
            return made.told()

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(drive(Path(folder)))


def _text(data: bytes) -> str:
    return data.decode("latin-1") if len(data) <= _MOST else f"{len(data)} bytes, SHA-256 {sha256(data).hexdigest()}"


@pytest.mark.parametrize("remembers", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["remembered", "parsed"])
@pytest.mark.parametrize("name", dict(cases()))
def test_bytes_are_those_recorded(name: str, remembers: bool) -> None:
    assert hear(name, remembers=remembers) == json.loads(RECORD.read_bytes())[name]


def test_nothing_is_recorded_without_a_case() -> None:
    assert list(json.loads(RECORD.read_bytes())) == list(dict(cases()))


def renew() -> None:
    """Record all cases. Both ways must give the same."""
    record = {}
    for name in dict(cases()):
        record[name] = hear(name, remembers=False)
        if hear(name, remembers=True) != record[name]:
            raise SystemExit(f"{name}: a request gets something else if its head is remembered")
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    renew()
