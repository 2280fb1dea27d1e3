"""The injected question and what it causes: in by bytes, out by bytes, and nothing else touched."""

import json
import re
from itertools import pairwise
from typing import Any

import aiohttp
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.servers.llamacpp import LlamaCpp

from gateway.exchange.sse import EventSplitter
from gateway.exchange.usage import UsageStripper, inject_usage
from gateway.wire import read_envelope

# --- the question ----------------------------------------------------------------------------------------------------

ASKED = '"stream_options":{"include_usage":true}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"model":"m"}', "{" + ASKED + ',"model":"m"}'),
        (' {\n "model" : "m" }\r\n', " {" + ASKED + ',\n "model" : "m" }\r\n'),
        ('{"t":0.70,"n":1E+2,"model":"m"}', "{" + ASKED + ',"t":0.70,"n":1E+2,"model":"m"}'),
        ('{"a":"stream_options","model":"m"}', "{" + ASKED + ',"a":"stream_options","model":"m"}'),
        ('{"a":{"stream_options":5},"model":"m"}', "{" + ASKED + ',"a":{"stream_options":5},"model":"m"}'),
        ('{"a":"\\u005f","model":"m"}', "{" + ASKED + ',"a":"\\u005f","model":"m"}'),
        ('{"stream_options":null,"model":"m"}', "{" + ASKED + ',"model":"m"}'),
        ('{"model":"m","stream_options" :\t null }', '{"model":"m","stream_options" :\t {"include_usage":true} }'),
        ('{"stream_options":{},"model":"m"}', "{" + ASKED + ',"model":"m"}'),
        ('{"stream_options":{ },"model":"m"}', '{"stream_options":{"include_usage":true },"model":"m"}'),
        ('{"stream_options":{"x":1},"model":"m"}', '{"stream_options":{"include_usage":true,"x":1},"model":"m"}'),
        ('{"model":"m","stream_options":{ "x" : {"include_usage":1}}}',
         '{"model":"m","stream_options":{"include_usage":true, "x" : {"include_usage":1}}}'),
        ('{"model":"m","stream_options":{"include_usage": null}}',
         '{"model":"m","stream_options":{"include_usage": true}}'),
        ('{"model":"m","stream\\u005foptions":{"include\\u005fusage":null,"x":0}}',
         '{"model":"m","stream\\u005foptions":{"include\\u005fusage":true,"x":0}}'),
    ],
)  # fmt: skip
def test_the_question_goes_in_and_every_other_byte_stays(before: str, after: str) -> None:
    assert inject_usage(before.encode()).decode() == after


@pytest.mark.parametrize(
    "body",
    [
        '{"model":"m","stream_options":{"include_usage":true}}',
        '{"model":"m","stream_options":{"include_usage":false}}',
        '{"model":"m","stream\\u005foptions":{"\\u0069nclude_usage":false}}',
        '{"model":"m","stream_options":{"include_usage":"null"}}',
        '{"model":"m","stream_options":5}',
        '{"model":"m","stream_options":[]}',
        '{"model":"m","stream_options":"null"}',
        '{"model":"m","stream_options":null,"stream_options":null}',
        '{"model":"m","stream_options":{},"stream\\u005foptions":{"include_usage":false}}',
        '{"model":"m","stream_options":{"include_usage":null,"include_usage":false}}',
        '{"model":"m","stream_options":{"include_usage":null,"include_usage":null}}',
    ],
)
def test_a_request_that_answers_the_question_itself_is_left_alone(body: str) -> None:
    before = body.encode()
    assert inject_usage(before) is before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"stream_options":{"include_usage":true}}', '{"stream_options":{"include_usage":true}}'),
        ('{"stream_options":{"include_usage": false}}', '{"stream_options":{"include_usage": true}}'),
        ('{"stream\\u005foptions":{"\\u0069nclude_usage":0,"x":0}}',
         '{"stream\\u005foptions":{"\\u0069nclude_usage":true,"x":0}}'),
        ('{"stream_options":{"include_usage":true,"include_usage":"no"},"stream_options":null}',
         '{"stream_options":{"include_usage":true,"include_usage":true},"stream_options":{"include_usage":true}}'),
        ('{"model":"m","stream_options":[]}', '{"model":"m","stream_options":[]}'),
        ('{"model":"m"}', "{" + ASKED + ',"model":"m"}'),
    ],
)  # fmt: skip
def test_where_usage_counts_against_a_limit_every_other_value_gives_way(before: str, after: str) -> None:
    assert inject_usage(before.encode(), overrides=True).decode() == after


TEXT = st.one_of(
    st.sampled_from(["stream_options", "include_usage", '"', "\\", "{", "}", "[", ",", ":", '{"include_usage":null}']),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=8,
)
OPTIONS = st.one_of(
    st.none(),
    st.builds(
        lambda others, asked: others | asked,
        st.dictionaries(TEXT.filter(lambda key: key != "include_usage"), VALUES, max_size=2),
        st.sampled_from([{}, {"include_usage": None}, {"include_usage": True}, {"include_usage": False}]),
    ),
    VALUES,
)


FIELDS = st.builds(
    lambda fields, options: fields | options,
    # A second model, whatever the case of its letters, is refused.
    st.dictionaries(TEXT.filter(lambda key: key.lower() != "model"), VALUES, max_size=4),
    st.one_of(st.just({}), st.fixed_dictionaries({"stream_options": OPTIONS})),
)
STYLES = st.fixed_dictionaries(
    {
        "ensure_ascii": st.booleans(),
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\r\n:")]),
    }
)


@given(FIELDS, STYLES)
def test_what_is_asked_is_the_request_and_the_question(fields: dict[str, Any], style: dict[str, Any]) -> None:
    document = fields | {"model": "m", "stream": True}
    body = json.dumps(document, **style).encode()
    asked = inject_usage(body)
    assert (asked is not body) is read_envelope(body).omits_usage
    if asked is body:
        return
    options = document.get("stream_options") or {}
    assert json.loads(asked) == document | {"stream_options": options | {"include_usage": True}}
    assert not read_envelope(asked).omits_usage
    assert inject_usage(asked) is asked
    assert inject_usage(body, overrides=True) == asked


@given(FIELDS, STYLES)
def test_what_overrides_the_client_says_true_wherever_it_can_be_said(
    fields: dict[str, Any], style: dict[str, Any]
) -> None:
    document = fields | {"model": "m", "stream": True}
    body = json.dumps(document, **style).encode()
    asked = inject_usage(body, overrides=True)
    options = document.get("stream_options")
    if options is None or isinstance(options, dict):
        assert json.loads(asked) == document | {"stream_options": (options or {}) | {"include_usage": True}}
    else:
        assert asked is body
    assert inject_usage(asked, overrides=True) is asked


# --- what it causes --------------------------------------------------------------------------------------------------

USAGE = '{"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}'
DELTA = '{"id":"c","choices":[{"index":0,"delta":{"content":"x"}}]}'


def strip(*pieces: bytes) -> bytes:
    splitter, stripper = EventSplitter(), UsageStripper()
    kept = [stripper.strip(splitter.feed(piece)) for piece in pieces]
    return b"".join(kept) + stripper.rest(splitter.rest())


def event(data: str) -> bytes:
    return f"data: {data}\n\n".encode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"choices":[1],"usage":null}', '{"choices":[1]}'),
        ('{"usage":null,"choices":[1]}', '{"choices":[1]}'),
        ('{"a":1,"usage":null,"choices":[1]}', '{"a":1,"choices":[1]}'),
        ('{"a": 1, "usage": null, "choices": [1]}', '{"a": 1, "choices": [1]}'),
        ('{"usage" : null , "choices": [1]}', '{"choices": [1]}'),
        ('{"choices":[1] , "usage" : null }', '{"choices":[1] }'),
        ('{"usage":null}', "{}"),
        ('{ "usage":null }', "{  }"),
        ('{"a":"}\\"","usage":null,"n":-0.10}', '{"a":"}\\"","n":-0.10}'),
        ('{"a":"\\"usage\\":null","usage":null}', '{"a":"\\"usage\\":null"}'),
        ('{"choices":[{"usage":null}],"usage":null}', '{"choices":[{"usage":null}]}'),
        ('{"choices":[],"prompt_filter_results":[{}],"usage":null}', '{"choices":[],"prompt_filter_results":[{}]}'),
        ('{"error":null,"usage":null,"choices":[]}', '{"error":null,"choices":[]}'),
    ],
)
def test_a_usage_of_null_leaves_with_its_comma(before: str, after: str) -> None:
    assert strip(event(before)) == event(after)


@pytest.mark.parametrize(
    "data",
    [
        USAGE,
        '{"usage":{},"choices":[ ]}',
        '{ "usage" : {"total_tokens":7} , "timings":{"a":1}, "choices" : [\t] }',
    ],
)
def test_a_usage_chunk_leaves_whole(data: str) -> None:
    assert strip(event(DELTA) + event(data) + event("[DONE]")) == event(DELTA) + event("[DONE]")


@pytest.mark.parametrize(
    "stream",
    [
        event('{"choices":[{"text":"x"}],"usage":{"prompt_tokens":3}}'),  # sent unasked
        event('{"usage":{"prompt_tokens":3}}'),
        event('{"choices":null,"usage":{"prompt_tokens":3}}'),
        event('{"choices":{},"usage":{"prompt_tokens":3}}'),
        event('{"choices":[],"usage":5}'),
        event('{"choices":[],"usage":[null]}'),
        event('{"choices":[{"usage":null}]}'),
        event('{"choices":[{"delta":{"content":"\\"usage\\":null"}}]}'),
        event('{"choices":[{"delta":{"content":"usage"}}],"a":["usage",null]}'),
        event('{"usage":null,"choices":[],"usage":null}'),
        event('{"choices":[],"usage":null'),
        event('[{"choices":[],"usage":null}]'),
        event('"usage"'),
        event('the "usage":null of text'),
        event('{"error":{"message":"no"},"usage":null}'),
        event('{"error":{"message":"no"},"choices":[],"usage":{}}'),
        event('{"error":"no","choices":[],"usage":{}}'),
        b": " + USAGE.encode() + b"\n\n",
        b"event: " + USAGE.encode() + b"\n\n",
        b'data: "usage"\xff\n\n',
        event('{"usage":' + "[" * 100_000 + "]" * 100_000 + "}"),
        b"data: [DONE]\n\n",
        b": ping\r\n\r\nid: 7\r\rretry: 5\n\n",
        b"\n\n\r\n\n\n",
    ],
)
def test_what_the_question_did_not_cause_stays(stream: bytes) -> None:
    assert strip(stream) == stream
    assert strip(*[bytes([byte]) for byte in stream[:2000]], stream[2000:]) == stream


def test_data_of_several_lines_is_read_as_one() -> None:
    data = [b'{"choices":[1],', b' "usage":', b"  null,", b' "z":2', b"}"]
    lines = b"id: 1\n" + b"\n: between\n".join(b"data: " + line for line in data) + b"\nevent: e\n\n"
    kept = strip(lines)
    assert kept == lines.replace(b',\n: between\ndata:  "usage":\n: between\ndata:   null', b"")
    usage = b"id: 1\ndata:" + USAGE.replace(",", ",\ndata:").encode() + b"\n\n"
    assert strip(event(DELTA) + usage + event("[DONE]")) == event(DELTA) + event("[DONE]")


def test_a_string_over_two_lines_is_no_json_and_stays() -> None:
    stream = b'data: {"a":"x\ndata: y","usage":null}\n\n'
    assert strip(stream) == stream


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_long_event_in_pieces_passes_untouched(end: bytes) -> None:
    """Its pieces may look like events of their own: nothing of it can be judged before its end."""
    line = end[: len(end) // 2]
    usage = b"data: " + USAGE.encode()
    long = usage + b" " * 100 + line + usage + line + usage + end
    splitter, stripper = EventSplitter(hold_limit=40), UsageStripper()
    pieces = [long[start : start + 10] for start in range(0, len(long), 10)]
    kept = b"".join(stripper.strip(splitter.feed(piece)) for piece in pieces)
    assert kept + stripper.rest(splitter.rest()) == long
    assert stripper.strip(event(USAGE)) == b""


def test_half_an_event_at_the_end_is_read_like_a_whole_one() -> None:
    assert strip(event(DELTA) + b"data: " + USAGE.encode()) == event(DELTA)
    assert strip(b'data: {"choices":[1],"usage":null}\n') == b'data: {"choices":[1]}\n'
    assert strip(b'data: {"choices":[1],"usage":null') == b'data: {"choices":[1],"usage":null'
    splitter, stripper = EventSplitter(hold_limit=10), UsageStripper()
    long = b"data: x" + b" " * 40 + b"\ndata: " + USAGE.encode()
    assert stripper.strip(splitter.feed(long[:50])) + stripper.rest(splitter.rest() + long[50:]) == long


# --- property: with, stripped, is without ----------------------------------------------------------------------------

LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
CHUNKS = st.one_of(
    st.dictionaries(TEXT.filter(lambda key: key != "usage"), VALUES, max_size=3),
    st.just({"choices": [{"delta": {"content": '"usage":null'}}]}),
    st.just({"choices": [{"text": "x", "usage": None}]}),
)


@st.composite
def streams(draw: st.DrawFn, *, caused: bool) -> tuple[bytes, bytes]:
    """A stream as a deployment sends it when asked for usage, and the same as it would be without the question."""
    asked, unasked = "", ""
    for _ in range(draw(st.integers(0, 6))):
        end = draw(LINE_ENDS)
        kind = draw(st.sampled_from(["chunk", "comment", "usage", "done", "blank"]))
        with_, without = draw(DRAWN[kind])
        if kind == "usage" and not caused:
            continue
        pads = "".join(draw(st.lists(st.sampled_from([": ping", "id: 1", "event: e"]), max_size=2).map(
            lambda lines, end=end: [line + end for line in lines])))  # fmt: skip
        if kind == "usage":
            asked += pads + with_ + end + end
        elif kind == "blank":
            end = "\r" if asked.endswith("\r") else end  # an LF behind a CR would be no blank line of its own
            asked, unasked = asked + end, unasked + end
        else:
            asked += pads + (with_ if caused else without) + end + end
            unasked += pads + without + end + end
    return asked.encode(), unasked.encode()


@st.composite
def chunks(draw: st.DrawFn) -> tuple[str, str]:
    document = draw(CHUNKS)
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    json_spans = list(document.items())
    place = draw(st.integers(0, len(json_spans)))
    told = dict([*json_spans[:place], ("usage", None), *json_spans[place:]])
    null = draw(st.booleans()) and not document.get("error")

    def written(fields: dict[str, Any]) -> str:
        return "data: " + json.dumps(fields, separators=separators, ensure_ascii=False)

    return written(told if null else document), written(document)


DRAWN = {
    "chunk": chunks(),
    "comment": st.just((": ping", ": ping")),
    "usage": st.sampled_from([(f"data: {USAGE}", ""), ('data:{"usage": {}, "choices": []}', "")]),
    "done": st.just(("data: [DONE]", "data: [DONE]")),
    "blank": st.just(("", "")),
}


@st.composite
def cut(draw: st.DrawFn, *, caused: bool) -> tuple[list[bytes], bytes]:
    stream, expected = draw(streams(caused=caused))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [stream[low:high] for low, high in pairwise([0, *cuts, len(stream)])], expected


@given(cut(caused=True))
@example(([b"data: " + USAGE.encode() + b"\r\n\r", b"\n"], b""))
@example(([b"data: 1\r\n\r", b"\n", event(USAGE)], b"data: 1\r\n\r\n"))
@example(([b"data: 1\r\n\r", b"\n\ndata: " + USAGE.encode() + b"\n\n"], b"data: 1\r\n\r\n\n"))
def test_a_stripped_stream_is_the_stream_without_the_question(pieces_and_expected: tuple[list[bytes], bytes]) -> None:
    pieces, expected = pieces_and_expected
    assert strip(*pieces) == expected


@given(cut(caused=False))
def test_a_stream_that_tells_no_usage_stays_as_it_is(pieces_and_expected: tuple[list[bytes], bytes]) -> None:
    pieces, _ = pieces_and_expected
    assert strip(*pieces) == b"".join(pieces)


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(8, 40))
def test_bytes_that_are_no_events_pass(pieces: list[bytes], limit: int) -> None:
    splitter, stripper = EventSplitter(hold_limit=limit), UsageStripper()
    kept = b"".join(stripper.strip(splitter.feed(piece)) for piece in pieces)
    assert kept + stripper.rest(splitter.rest()) == b"".join(pieces)


# --- against a server that nobody here wrote -------------------------------------------------------------------------


def without_what_varies(stream: bytes) -> bytes:
    """Without ids and times; llama.cpp moves its timings to the usage chunk where there is one."""
    return re.sub(rb'"(id|created)":("[^"]*"|\d+)|,"timings":\{[^}]*\}', b"", stream)


@pytest.mark.parametrize(
    ("path", "said", "chunks"), [("chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, 1),
                                 ("completions", {"prompt": "hi"}, 0)],
)  # fmt: skip
async def test_the_stream_of_llamacpp_is_as_if_nobody_had_asked(
    llamacpp: LlamaCpp, path: str, said: dict[str, Any], chunks: int
) -> None:
    body = json.dumps({"model": llamacpp.model, "stream": True, "max_tokens": 4, **said}).encode()
    streams = []
    # llama.cpp promises to keep a connection alive, and closes it behind a stream.
    async with aiohttp.ClientSession(headers={"content-type": "application/json", "connection": "close"}) as client:
        for sent in (body, inject_usage(body)):
            async with client.post(f"{llamacpp.url}/{path}", data=sent) as answer:
                streams.append(await answer.read())
    unasked, asked = streams
    assert asked.count(b'"choices":[],') == chunks
    assert without_what_varies(strip(asked)) == without_what_varies(unasked)
