"""What the gateway reads of the wire, against everything a client or a deployment may send instead."""

import contextlib
import json
import resource
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.wire import MOST_TOKENS, read_answer, read_envelope, replace_model

# --- the model of a request is exchanged, and nothing else -----------------------------------------------------------

#: Text that a scanner of JSON trips over.
TRICKY = st.sampled_from(
    ['"model":"inner"', "model", '\\"', "\\", "\\\\", "{", "}", "[", "]", ":", ",", '","model":"x', "é😀", "\x7f", " "]
)
TEXT = st.one_of(TRICKY, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.just("model"), TEXT), inner, max_size=4)
    ),
    max_leaves=12,
)
SPACE = st.text(" \t\r\n", max_size=3)


@st.composite
def escaped(draw: st.DrawFn, text: str) -> str:
    r"""Write a string as JSON, any of its letters as \uXXXX."""
    plain = json.dumps(text, ensure_ascii=draw(st.booleans()))
    if not text.isascii() or not text.isalpha():
        return plain
    chosen = draw(st.sets(st.integers(0, len(text) - 1)))
    return '"' + "".join(f"\\u{ord(c):04x}" if i in chosen else c for i, c in enumerate(text)) + '"'


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, tuple[int, int]]:
    """A request with one model at its top level, and where its value stands in it."""
    fields: list[tuple[str, str | None]] = [
        (draw(escaped(draw(TEXT.filter(lambda key: key.lower() != "model")))), json.dumps(value))
        for value in draw(st.lists(VALUES, max_size=5))
    ]
    fields.insert(draw(st.integers(0, len(fields))), (draw(escaped("model")), None))
    text, span = draw(SPACE) + "{", (0, 0)
    for index, (key, value) in enumerate(fields):
        text += ("," if index else "") + draw(SPACE) + key + draw(SPACE) + ":" + draw(SPACE)
        model = value if value is not None else draw(escaped(draw(TEXT.filter(bool))))
        if value is None:
            span = (len(text), len(text) + len(model))
        text += model + draw(SPACE)
    return text + "}" + draw(SPACE), span


@given(requests(), TEXT.filter(bool))
def test_only_the_top_level_model_is_exchanged(request_: tuple[str, tuple[int, int]], new: str) -> None:
    text, (start, end) = request_
    replaced = replace_model(text.encode(), new)
    before, after = text[:start].encode(), text[end:].encode()
    assert replaced.startswith(before)
    assert replaced.endswith(after)
    assert json.loads(replaced[len(before) : len(replaced) - len(after)]) == new
    assert json.loads(replaced) == json.loads(text) | {"model": new}
    assert read_envelope(replaced).model == new


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model":"a"}', b'{"model":"b/c"}'),
        (b' {\n "model" :\t"a" }\r\n', b' {\n "model" :\t"b/c" }\r\n'),
        (b'{"\\u006dod\\u0065l":"a"}', b'{"\\u006dod\\u0065l":"b/c"}'),
        (b'{"x":"\\"model\\":\\"a\\"","model":"a"}', b'{"x":"\\"model\\":\\"a\\"","model":"b/c"}'),
        (b'{"x":"\\\\","model":"a"}', b'{"x":"\\\\","model":"b/c"}'),
        (b'{"x":{"model":"y"},"model":"a","z":[{"model":1}]}', b'{"x":{"model":"y"},"model":"b/c","z":[{"model":1}]}'),
        (b'{"x":["model","y"],"model":"a"}', b'{"x":["model","y"],"model":"b/c"}'),
        (b'{"x":"model","model":"a","z":"model"}', b'{"x":"model","model":"b/c","z":"model"}'),
        (b'{"model ":"in","model":"a","Models":"in"}', b'{"model ":"in","model":"b/c","Models":"in"}'),
        (b'{"t":0.70,"n":1E+2,"m":-0,"model":"a"}', b'{"t":0.70,"n":1E+2,"m":-0,"model":"b/c"}'),
        (b'{"model":"a\\"b","x":[]}', b'{"model":"b/c","x":[]}'),
        ('{"é":"日本","model":"ü"}'.encode(), '{"é":"日本","model":"b/c"}'.encode()),
    ],
)  # fmt: skip
def test_every_other_byte_stays(before: bytes, after: bytes) -> None:
    assert read_envelope(before)
    assert replace_model(before, "b/c") == after


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "é😀", "a/b:c", "new\nline"])
def test_the_new_name_is_written_as_json(name: str) -> None:
    assert json.loads(replace_model(b'{"model":"a","n":1}', name)) == {"model": name, "n": 1}


@pytest.mark.parametrize(
    "filling",
    [b'"' + b"A" * (8 << 20) + b'"', b'"' + b"\\n" * (4 << 20) + b'"', b"[" + b"1," * (2 << 20) + b"1]"],
    ids=["a picture", "escapes", "token ids"],
)
def test_a_large_request_is_scanned_in_little_time_and_memory(filling: bytes) -> None:
    body = b'{"messages":' + filling + b',"model":"a"}'
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    replaced = replace_model(body, "b")
    assert time.process_time() - began < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
    assert replaced == body[:-3] + b'b"}'


# --- what is refused -------------------------------------------------------------------------------------------------

CANARY = b"CANARY"


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"", "invalid_json", None),
        (b"  \r\n", "invalid_json", None),
        (b"CANARY", "invalid_json", None),
        (b"[]", "invalid_json", None),
        (b'[{"model":"CANARY"}]', "invalid_json", None),
        (b'"CANARY"', "invalid_json", None),
        (b"17", "invalid_json", None),
        (b"null", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b'{"model":"CANARY"', "invalid_json", None),
        (b'{"model":"CANARY', "invalid_json", None),
        (b'{"model":"CANARY"}}', "invalid_json", None),
        (b'{"model":"CANARY"}{"model":"b"}', "invalid_json", None),
        (b'{"model":"CANARY"}\x00', "invalid_json", None),
        (b"\x00", "invalid_json", None),
        (b'{"model":"CAN\x00ARY"}', "invalid_json", None),
        (b'{"model":"x","messages":"CANARY\xff"}', "invalid_json", None),
        (b'{"model":"CANARY\xff"}', "invalid_json", None),
        (b'{"CANARY\xc3":1,"model":"x"}', "invalid_json", None),
        (b'{"model":"x","messages":"\xed\xa0\x80CANARY"}', "invalid_json", None),
        (b'{"model":"CANARY\\ud800"}', "invalid_json", None),
        (b'{"model":"x","messages":"CANARY\\ud83d and more text"}', "invalid_json", None),
        (b'{"model":"x","messages":"\\udc00CANARY"}', "invalid_json", None),
        (b'\xef\xbb\xbf{"model":"CANARY"}', "invalid_json", None),
        ('{"model":"CANARY"}'.encode("utf-16"), "invalid_json", None),
        (b'{"model":"x","a":NaN,"b":"CANARY"}', "invalid_json", None),
        (b'{"model":"x","a":Infinity}', "invalid_json", None),
        (b'{"model":"x","a":01}', "invalid_json", None),
        (b'{"model":"x","a":"\\x"}', "invalid_json", None),
        (b'{"model":"x","a":"CANARY\t"}', "invalid_json", None),
        (b"{'model':'CANARY'}", "invalid_json", None),
        (b'{"model":"CANARY",}', "invalid_json", None),
        (b'{"model":"x" /* CANARY */}', "invalid_json", None),
        (b'{"model":"x","a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_json", None),
        (b'{"model":"x","a":' + b'{"a":' * 100_000, "invalid_json", None),
        (b"[" * 100_000, "invalid_json", None),
        (b"{}", "missing_required_parameter", "model"),
        (b'{"messages":"CANARY"}', "missing_required_parameter", "model"),
        (b'{"Model":"CANARY"}', "missing_required_parameter", "model"),
        (b'{"model":""}', "invalid_value", "model"),
        (b'{"model":null}', "invalid_type", "model"),
        (b'{"model":5,"x":"CANARY"}', "invalid_type", "model"),
        (b'{"model":["CANARY"]}', "invalid_type", "model"),
        (b'{"model":{"CANARY":1}}', "invalid_type", "model"),
        (b'{"model":1,"model":"CANARY"}', "invalid_type", "model"),
        (b'{"model":5,"x":' + b"9" * 5000 + b"}", "invalid_type", "model"),
        (b'{"model":5,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "invalid_type", "model"),
        (b'{"model":"x","stream":"CANARY"}', "invalid_type", "stream"),
        (b'{"model":"x","stream":"true"}', "invalid_type", "stream"),
        (b'{"model":"x","stream":1}', "invalid_type", "stream"),
        (b'{"model":"x","stream":{"CANARY":true}}', "invalid_type", "stream"),
    ],
)  # fmt: skip
def test_a_malformed_request_is_told_where_and_never_quoted(body: bytes, code: str, param: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        read_envelope(body)
    error = caught.value
    assert (error.http_status, error.code, error.param) == (400, code, param)
    assert "CANARY" not in str(error)
    assert len(str(error)) < 120
    told = json.loads(error.body())["error"]
    assert told == {"message": str(error), "type": "invalid_request_error", "param": param, "code": code}
    assert error.headers()["x-should-retry"] == "false"


def read_or_refuse(body: bytes) -> None:
    with contextlib.suppress(BadRequest):
        assert read_envelope(body).model


@given(st.binary(max_size=60))
@example(b'{"model":5,"x":}')
@example(b'{"model":5,"x":"\xff"}')
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    read_or_refuse(body)


@given(requests(), st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_a_damaged_request_is_read_or_refused(
    request_: tuple[str, list[tuple[int, int]]], place: int, noise: bytes
) -> None:
    body = request_[0].encode()
    place = min(place, len(body))
    read_or_refuse(body[:place] + noise + body[place + len(noise) :])


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","n":1e999999}',
        b'{"model":"m","n":' + b"9" * 5000 + b"}",
        b'{"model":"m","n":-0.0e-99999}',
        b'{"model":"m","stream":null}',
        b'{"model":"m","stream":false,"stream_options":5,"unknown":{"model":7}}',
        b'{"unknown":[{"model":null}],"model":"m"}',
        b'{"model":"m","a":"\\u0000\\ud83d\\ude00"}',
        b'{"model":"m","a":' + b"[" * 200 + b"]" * 200 + b"}",
        '{"model":"m","a":"日本 😀"}'.encode(),
    ],
)
def test_what_is_valid_is_left_to_the_deployment(body: bytes) -> None:
    """Unknown fields, odd numbers and deep values are the deployment's to judge."""
    envelope = read_envelope(body)
    assert envelope.model == "m"
    assert not envelope.stream


# --- what else is read of a request ----------------------------------------------------------------------------------


def request(*json_spans: str) -> bytes:
    return ('{"model":"m"' + "".join(f",{member}" for member in json_spans) + "}").encode()


STREAM = '"stream":true'


@pytest.mark.parametrize(
    ("body", "omits"),
    [
        (request(STREAM), True),
        (request(STREAM, '"stream_options":null'), True),
        (request(STREAM, '"stream_options":{}'), True),
        (request(STREAM, '"stream_options":{"include_obfuscation":false}'), True),
        (request(STREAM, '"stream_options":{"include_usage":null}'), True),
        (request(STREAM, '"stream_options":{"include_usage":false}'), False),
        (request(STREAM, '"stream_options":{"include_usage":true}'), False),
        (request(STREAM, '"stream\\u005foptions":{"include\\u005fusage":true}'), False),
        (request(STREAM, '"messages":[{"stream_options":{"include_usage":true}}]'), True),
        # another type than the wire's is the deployment's to refuse
        (request(STREAM, '"stream_options":true'), False),
        (request(STREAM, '"stream_options":[]'), False),
        (request(STREAM, '"stream_options":{"include_usage":"no"}'), False),
        (request(), False),
        (request('"stream":false'), False),
        (request('"stream":null', '"stream_options":null'), False),
    ],
)
def test_a_stream_that_says_nothing_of_usage_is_told_from_one_that_does(body: bytes, omits: bool) -> None:
    assert read_envelope(body).omits_usage is omits


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        (request(), None),
        (request('"n":3'), None),
        (request('"max_tokens":null'), None),
        (request('"max_tokens":100'), 100),
        (request('"max_completion_tokens":100'), 100),
        (request('"max_output_tokens":100'), 100),
        (request('"max_tokens":5', '"max_completion_tokens":100'), 100),
        (request('"max_tokens":100', '"n":3'), 300),
        (request('"max_tokens":100', '"n":null'), 100),
        (request('"max_tokens":100', '"n":0'), 100),
        (request('"max_tokens":100', '"n":"3"'), 100),
        (request('"max_tokens":0', '"n":2'), 0),
        (request('"max_tokens":100', '"options":{"n":7,"max_tokens":900}'), 100),
        (request(f'"max_tokens":{MOST_TOKENS}', f'"n":{MOST_TOKENS}'), MOST_TOKENS),
        # what is no count says nothing
        (request('"max_tokens":-1'), None),
        (request('"max_tokens":"100"'), None),
        (request('"max_tokens":2.5'), None),
        (request('"max_tokens":true'), None),
        (request('"max_tokens":[100]'), None),
        (request('"max_tokens":{"a":100}', '"max_completion_tokens":7'), 7),
        (request(f'"max_tokens":{MOST_TOKENS + 1}'), None),
        (request(f'"max_tokens":{"9" * 5000}'), None),
        (request('"max_tokens":1e999999'), None),
        (request('"max_tokens":"\\ud83d\\ude00"'), None),
    ],
)
def test_the_tokens_a_request_asks_for_are_read(body: bytes, asked: int | None) -> None:
    assert read_envelope(body).token_limit == asked


READ = ("stream_options", "max_tokens", "max_completion_tokens", "max_output_tokens", "n")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(READ, VALUES)))
def test_no_value_of_another_type_fails_a_request(fields: dict[str, Any]) -> None:
    envelope = read_envelope(json.dumps(fields | {"model": "m", "stream": True}, ensure_ascii=False).encode())
    assert envelope.omits_usage in {True, False}
    assert envelope.token_limit is None or 0 <= envelope.token_limit <= MOST_TOKENS


# --- answers ---------------------------------------------------------------------------------------------------------


def read(document: Any) -> tuple[int | None, int | None, str | None, bool] | None:
    answer = read_answer(json.dumps(document).encode())
    if answer is None:
        return None
    answer = answer.response or answer
    usage = answer.usage
    return (
        usage.prompt if usage else None,
        usage.completion if usage else None,
        answer.finish_reason,
        bool(answer.error),
    )


STOP = [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"choices": STOP, "usage": {"prompt_tokens": 3, "completion_tokens": 4}}, (3, 4, "stop", False)),
        ({"usage": {"input_tokens": 3, "output_tokens": 4}}, (3, 4, None, False)),
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, (0, 0, None, False)),
        ({"usage": None, "choices": None}, (None, None, None, False)),
        ({"usage": {}, "choices": []}, (None, None, None, False)),
        ({"usage": {"prompt_tokens": None, "completion_tokens": 4}}, (None, 4, None, False)),
        ({"usage": "12", "choices": STOP}, (None, None, "stop", False)),
        ({"usage": [1], "choices": STOP}, (None, None, "stop", False)),
        ({"usage": {"prompt_tokens": "3", "completion_tokens": 4}, "choices": STOP}, (None, 4, "stop", False)),
        ({"usage": {"prompt_tokens": -3, "completion_tokens": 4}, "choices": STOP}, (None, 4, "stop", False)),
        ({"usage": {"prompt_tokens": 2.5, "completion_tokens": 4}}, (None, 4, None, False)),
        ({"usage": {"prompt_tokens": True, "completion_tokens": 4}}, (None, 4, None, False)),
        ({"usage": {"prompt_tokens": 2**63, "completion_tokens": 2**200}}, (None, None, None, False)),
        ({"usage": {"prompt_tokens": MOST_TOKENS}, "choices": STOP}, (MOST_TOKENS, None, "stop", False)),
        ({"usage": {"prompt_tokens": MOST_TOKENS + 1}, "choices": STOP}, (None, None, "stop", False)),
        ({"usage": {"prompt_tokens": 3}, "choices": {"0": 1}}, (3, None, None, False)),
        ({"usage": {"prompt_tokens": 3}, "choices": [None, 5, *STOP]}, (3, None, "stop", False)),
        ({"usage": {"prompt_tokens": 3}, "choices": [{"finish_reason": 5}, *STOP]}, (3, None, "stop", False)),
        ({"choices": [{"finish_reason": None}, {"finish_reason": "length"}]}, (None, None, "length", False)),
        ({"choices": [{"finish_reason": "x" * 5000}]}, (None, None, "x" * 200, False)),
        ({"error": {"message": "no"}}, (None, None, None, True)),
        ({"error": "no", "usage": "x"}, (None, None, None, True)),
        ({"error": None, "usage": "x"}, (None, None, None, False)),
        ({"error": None}, (None, None, None, False)),
        ({"error": {}}, (None, None, None, False)),
        ({"error": "no", "code": 500}, (None, None, None, True)),
        ({"type": "error", "code": "server_error", "message": "no", "param": None}, (None, None, None, True)),
        ({"type": "error", "error": {"message": "no"}}, (None, None, None, True)),
        ({"type": "error", "usage": "x"}, (None, None, None, True)),
        ({"type": "response.created", "error": None}, (None, None, None, False)),
        ({"type": 5, "usage": {"prompt_tokens": 3}}, (3, None, None, False)),
        ({"choices": [{"delta": {"type": "error"}}]}, (None, None, None, False)),
        # /v1/responses: the answer, and the events that carry it
        ({"status": "completed", "usage": {"input_tokens": 3}, "error": None}, (3, None, "completed", False)),
        ({"status": "in_progress"}, (None, None, None, False)),
        ({"status": 5, "usage": {"input_tokens": 3}}, (3, None, None, False)),
        ({"response": {"status": "incomplete", "usage": {"output_tokens": 4}}}, (None, 4, "incomplete", False)),
        ({"response": {"status": "failed", "error": {"code": "x"}}}, (None, None, "failed", True)),
        ({"response": {"status": "completed", "usage": "12"}}, (None, None, "completed", False)),
        ({"response": {"status": "completed", "usage": {"input_tokens": -1, "output_tokens": 4}}},
         (None, 4, "completed", False)),
        ({"response": None, "usage": {"input_tokens": 3}}, (3, None, None, False)),
        # other servers' answers may hold something else of that name
        ({"response": "text", "choices": STOP, "usage": {"prompt_tokens": 3}}, (3, None, "stop", False)),
        ({"response": [1], "status": None, "choices": STOP}, (None, None, "stop", False)),
        ([], None),
        ("text", None),
        (5, None),
        (None, None),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_read_is_absent_and_spoils_no_other(document: Any, expected: Any) -> None:
    assert read(document) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[DONE]",
        b"\xff\xfe",
        b'{"usage":',
        b'{"usage":{"prompt_tokens":1}} and more',
        b"<html>",
        b'{"errors":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"text":"{"error":"no"}"}',
        b"[" * 100_000,
        b'{"response":' * 100_000 + b"{}" + b"}" * 100_000,
        b'{"usage":5,"response":' * 100_000 + b"{}" + b"}" * 100_000,
    ],
)
def test_what_is_no_answer_is_none(body: bytes) -> None:
    assert read_answer(body) is None


@pytest.mark.parametrize(
    "body",
    [
        b'{"error": "no such "thing""}',
        b'{"error": "two\nlines"}',
        b' { "error" : cut short',
        b'{"error":"\xff"}',
        b'{"error":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_an_error_that_is_no_json_is_an_error(body: bytes) -> None:
    answer = read_answer(body)
    assert answer is not None
    assert answer.error
    assert (answer.usage, answer.finish_reason) == (None, None)


def test_a_number_of_thousands_of_digits_is_no_count() -> None:
    answer = read_answer(b'{"usage":{"prompt_tokens":' + b"9" * 5000 + b',"completion_tokens":7}}')
    assert answer is not None
    assert answer.usage is not None
    assert (answer.usage.prompt, answer.usage.completion) == (None, 7)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=5,
)
NAMES = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
USAGE = st.one_of(JSON, st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, JSON)))
CHOICES = st.one_of(JSON, st.lists(st.fixed_dictionaries({"finish_reason": JSON})))


@given(st.fixed_dictionaries({}, optional={"usage": USAGE, "choices": CHOICES, "error": JSON}))
def test_whatever_a_deployment_sends_its_counts_fit_the_store(document: dict[str, Any]) -> None:
    answer = read_answer(json.dumps(document).encode())
    if answer is None or answer.usage is None:
        return
    usage = document["usage"]
    for count, names in ((answer.usage.prompt, NAMES[::2]), (answer.usage.completion, NAMES[1::2])):
        if count is not None:
            assert 0 <= count < 2**63
            assert count in [usage.get(name) for name in names]


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"cheap","model":"dear"}',
        b'{"model": "cheap", "messages": [], "Model" : "dear"}',
        b'{"MODEL":"dear","model":"cheap"}',
        b'{"model":"cheap","\\u006dodel":"dear"}',
        b'{"model":"cheap","\\u004d\\u004F\\u0044\\u0045\\u004c":"dear"}',
        b'{"model":"cheap","messages":[{"content":"\\"model\\":1"}],"mOdEl":null}',
    ],
)
def test_a_second_model_is_refused_in_whatever_case(body: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        read_envelope(body)
    assert (refused.value.code, refused.value.param, refused.value.http_status) == ("invalid_value", "model", 400)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"cheap","metadata":{"model":"x","Model":"y"}}',
        b'{"tools":[{"properties":{"model":{"type":"string"}}}],"model":"cheap"}',
        b'{"model":"cheap","messages":[{"content":"{\\"model\\":\\"dear\\",\\"Model\\":1}"}],"x":"model"}',
        b'{"model":"cheap","models":[],"model_":1,"supermodel":2}',
    ],
)
def test_a_model_elsewhere_is_no_second_one(body: bytes) -> None:
    assert read_envelope(body).model == "cheap"


@given(st.lists(st.tuples(st.text("modelMODEL", min_size=5, max_size=5), st.booleans()), max_size=4))
def test_a_second_model_is_found_among_all_keys(others: list[tuple[str, bool]]) -> None:
    keys = ["".join(f"\\u{ord(letter):04x}" for letter in key) if escaped else key for key, escaped in others]
    body = ("{" + ",".join(f'"{key}":"x"' for key in ["model", *keys]) + "}").encode()
    if any(key.lower() == "model" for key, _ in others):
        with pytest.raises(BadRequest):
            read_envelope(body)
    else:
        assert read_envelope(body).model == "x"
