"""Squeezed streams have the texts of the whole ones."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.recording.redaction.search import Searcher
from gateway.recording.redaction.streams import Stream, searchable_text

pytestmark = pytest.mark.usefixtures("both_searches")

SEARCHER = Searcher(("keys", "email", "phone", "card"))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(['"', "\\", '\\"', "\n\n", "é"])


def chunk(text: str, *, index: int = 0, ascii_only: bool = False, **more: object) -> bytes:
    event = {"id": "level-1", "choices": [{"index": index, "delta": {"content": text}}], **more}
    return b"data: " + json.dumps(event, ensure_ascii=ascii_only).encode() + b"\n\n"


#: As streams end: no template is made of so late an event.
TAIL = chunk("", finish_reason="stop") + b'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n'


def joined(content: bytes) -> list[str]:
    return [text for text in Stream(content).texts().values() if text]


@given(st.lists(st.tuples(TEXTS, st.integers(0, 1), st.sampled_from(["", "x7", "é"])), max_size=12), st.booleans())
@settings(deadline=None)
@example([(text, 0, "") for text in "abcdef"], False)
@example([(text, 0, "x") for text in ("a", "\\", '"', "b", '\\"')], True)
def test_every_joined_text_is_searched(events: list[tuple[str, int, str]], ascii_only: bool) -> None:
    more = [{"obfuscation": padding} if padding else {} for _, _, padding in events]
    content = b"".join(
        chunk(text, index=index, ascii_only=ascii_only, **extra)
        for (text, index, _), extra in zip(events, more, strict=True)
    )
    content += TAIL
    found = searchable_text(content)
    for text in joined(content):
        assert text.encode() in found


@given(st.lists(st.integers(0, 30), max_size=6), st.sampled_from(["mira.canary@example.com", "4111 1111 1111 1111"]))
@settings(deadline=None)
def test_a_secret_in_pieces_is_suspected(places: list[int], secret: str) -> None:
    said = f"so {secret} ok"
    ends = sorted({0, len(said), *(place % len(said) for place in places)})
    pieces = ["", "hello", *(said[begin:end] for begin, end in pairwise(ends))]
    assert SEARCHER.suspects(searchable_text(b"".join(map(chunk, pieces)) + TAIL))


def test_like_events_are_squeezed() -> None:
    content = b"".join(chunk(f"word{number} ") for number in range(100)) + b"data: [DONE]\n\n"
    found = searchable_text(content)
    assert found.count(b"level-1") < 6
    assert "".join(f"word{number} " for number in range(100)).encode() in found


def test_a_quote_that_ends_a_string_is_no_text() -> None:
    forged = chunk("X").replace(b"X", b'x"}}],"note":"mira.canary@example.com","a":[{"b":{"c":"')
    content = chunk("a") + chunk("b") + forged + chunk("c") + TAIL
    assert searchable_text(content) == Stream(content).searchable_text()
