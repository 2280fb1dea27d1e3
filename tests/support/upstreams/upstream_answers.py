"""Ready-made answers of the scripted upstream: the ordinary ones, and the ways servers go wrong.

An answer is a function of the request that gives steps (`upstream_wire`). `ANSWERS` names them: a request for
the model `NAME` or `NAME:ARGUMENT` gets that answer, any other model the ordinary one.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from support.upstreams import upstream_payloads as payloads
from support.upstreams.upstream_wire import CLOSE, FLUSH, HANG, RESET, Request, Sleep, Step, Steps

Answer = Callable[[Request], Steps]
Headers = Sequence[tuple[str, str]]

DONE = b"data: [DONE]\n\n"
_REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 429: "Too Many Requests"}


# -- on the wire -------------------------------------------------------------------------------------------------


def head(status: int, headers: Headers) -> bytes:
    """Write a response's status line and headers."""
    reason = _REASONS.get(status, "Server Error" if status >= 500 else "Other")
    lines = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def dumps(payload: Any) -> bytes:
    """Write JSON as OpenAI does: without spaces, in UTF-8 and not escaped."""
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


def json_answer(payload: Any, status: int = 200, headers: Headers = ()) -> list[Step]:
    """Answer with a JSON body and its length."""
    body = payload if isinstance(payload, bytes) else dumps(payload)
    fixed = [("content-type", "application/json"), ("content-length", str(len(body)))]
    return [head(status, [*fixed, *headers]) + body]


def event(payload: Any, newline: bytes = b"\n") -> bytes:
    """Write one server-sent event; one with a dotted `type` is named by it, as in /v1/responses."""
    kind = payload.get("type", "") if isinstance(payload, dict) else ""
    name = b"event: " + kind.encode() + newline if "." in kind else b""
    return name + b"data: " + dumps(payload) + newline + newline


def http_chunk(data: bytes) -> bytes:
    """Frame bytes as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def sse(
    parts: Iterable[bytes | Sleep],
    *,
    headers: Headers = (),
    framing: Literal["chunked", "close"] = "chunked",
    end: bool = True,
    packets: bool = True,
) -> list[Step]:
    """Answer with a stream: each part leaves as a packet of its own, unless `packets` is False.

    Parts need not be whole events. With `end` False the connection closes where the last-chunk should stand.
    """
    framed = framing == "chunked"
    frame = ("transfer-encoding", "chunked") if framed else ("connection", "close")
    steps: list[Step] = [head(200, [("content-type", "text/event-stream"), frame, *headers])]
    for part in parts:
        if isinstance(part, bytes):
            steps += [http_chunk(part) if framed else part, *([FLUSH] if packets else [])]
        else:
            steps.append(part)
    if end and framed:
        steps.append(b"0\r\n\r\n")
    else:
        steps.append(CLOSE)
    return steps


def split(data: bytes, size: int) -> list[bytes]:
    """Cut bytes into pieces of `size`, with no regard for events or characters."""
    return [data[at : at + size] for at in range(0, len(data), size)]


# -- whole answers -----------------------------------------------------------------------------------------------


def events_of(request: Request, pieces: Sequence[str] = payloads.PIECES, newline: bytes = b"\n") -> list[bytes]:
    """Give the events of an ordinary stream of this request's endpoint, terminator included."""
    if request.path.endswith("/responses"):
        return [event(payload, newline) for payload in payloads.response_events(request, pieces)]
    done = b"data: [DONE]" + newline + newline
    return [event(payload, newline) for payload in payloads.chunks(request, pieces)] + [done]


def unary(request: Request, headers: Headers = ()) -> list[Step]:
    """Answer in one piece."""
    identity = [("x-request-id", f"up-{request.id}"), *headers]
    if request.path.endswith("/embeddings"):
        return json_answer(payloads.embeddings(request), headers=identity)
    if request.path.endswith("/responses"):
        return json_answer(payloads.response(request), headers=identity)
    return json_answer(payloads.completion(request), headers=identity)


def ordinary(request: Request) -> list[Step]:
    """Answer as asked: in one piece or as a stream."""
    return sse(events_of(request), headers=[("x-request-id", f"up-{request.id}")]) if request.stream else unary(request)


def catalogue(request: Request) -> list[Step]:
    """Answer GET /v1/models and /v1/models/{id}."""
    _, _, name = request.path.partition("/v1/models")
    if not name.strip("/"):
        return json_answer(payloads.models(sorted(ANSWERS)))
    wanted = name.strip("/")
    return json_answer(payloads.model(wanted)) if wanted in ANSWERS else unknown_model(request)


def odd_json(request: Request) -> list[Step]:
    """Answer with a body no encoder here would write, under a content type that says more than it must."""
    text = (
        dumps(payloads.completion(request))
        .replace(b'"created":1700000000', b'"created" : 1.7e9')
        .replace(b"{", b"{\n ", 1)
    )
    fixed = [("content-type", "application/json; charset=utf-8; profile=odd"), ("content-length", str(len(text)))]
    return [head(200, fixed) + text]


# -- streams with a twist ----------------------------------------------------------------------------------------


def crlf(request: Request) -> list[Step]:
    """Stream with CRLF line ends."""
    return sse(events_of(request, newline=b"\r\n"))


def comments(request: Request) -> list[Step]:
    """Stream with comments, `retry`, `id` and fields without a space between the events."""
    first, second, *rest = events_of(request)
    noise = [b": keep-alive\n\n", first, b":\n\n", b"retry: 3000\n" + second, b"id: 7\n" + rest[0]]
    return sse([*noise, b": half a comm", b"ent\n\n", rest[1].replace(b"data: ", b"data:"), *rest[2:]])


def large_event(request: Request, size: str = "100000") -> list[Step]:
    """Stream with one event of more than 64 KiB."""
    return sse(events_of(request, ["small", "x" * int(size), "small"]))


def utf8_split(request: Request, size: str = "1") -> list[Step]:
    """Stream characters of two to four bytes, cut every `size` bytes."""
    whole = b"".join(events_of(request, ["é", "水平", "🌍", "الأرض"]))
    return sse(split(whole, int(size)))


def lines_of_data(request: Request) -> list[Step]:
    """Stream with events whose JSON is spread over several `data` lines."""
    spread = [one.replace(b'":', b'":\ndata: ', 1) for one in events_of(request)]
    return sse(spread)


def tool_calls(request: Request) -> list[Step]:
    """Stream two tool calls."""
    return sse([*(event(payload) for payload in payloads.tool_call_chunks(request)), DONE])


def tool_call_in_one_delta(request: Request) -> list[Step]:
    """Stream one tool call whose id, name and arguments come in one delta together with the role."""
    called = {"index": 0, "id": "call_0", "type": "function"}
    called |= {"function": {"name": "read_level", "arguments": '{"axis": "north"}'}}
    delta = {"role": "assistant", "content": None, "tool_calls": [called]}
    return sse([event(payloads.chunk(request, delta)), event(payloads.chunk(request, {}, "tool_calls")), DONE])


def untyped(request: Request) -> list[Step]:
    """Stream without saying that it is one: no content type."""
    head_, *rest = sse(events_of(request))
    assert isinstance(head_, bytes)
    return [head_.replace(b"content-type: text/event-stream\r\n", b""), *rest]


def one_packet(request: Request) -> list[Step]:
    """Stream everything, head and last-chunk included, in one packet."""
    steps = sse(events_of(request))
    return [b"".join(step for step in steps if isinstance(step, bytes))]


def usage_with_choices(request: Request) -> list[Step]:
    """Stream usage in the chunk that also carries the finish reason, as some servers do."""
    *before, last = payloads.chunks(request)[: 2 + len(payloads.PIECES)]
    return sse([*map(event, before), event(last | {"usage": payloads.usage()}), DONE])


def close_delimited(request: Request) -> list[Step]:
    """Stream without chunked framing: the end is the connection's end."""
    return sse(events_of(request), framing="close")


def slow_first_token(request: Request, seconds: str = "0.5") -> list[Step]:
    """Send head and role at once, the first token only after a while."""
    role, *rest = events_of(request)
    return sse([role, Sleep(float(seconds)), *rest])


def slow_head(request: Request, seconds: str = "0.5") -> list[Step]:
    """Send nothing, not even the head, for a while."""
    return [Sleep(float(seconds)), *ordinary(request)]


def slow_tokens(request: Request, seconds: str = "0.05") -> list[Step]:
    """Stream with a pause before every event."""
    return sse([part for one in events_of(request) for part in (Sleep(float(seconds)), one)])


def long_stream(request: Request, count: str = "1000") -> list[Step]:
    """Stream many tokens as fast as they are taken."""
    return sse(events_of(request, [f" {number}" for number in range(int(count))]), packets=False)


# -- streams that break ------------------------------------------------------------------------------------------


def no_done(request: Request) -> list[Step]:
    """Stream to the finish reason, but never send [DONE]."""
    return sse(one for one in events_of(request) if b"[DONE]" not in one)


def after_done(request: Request) -> list[Step]:
    """Stream, and send more after [DONE]."""
    return sse([*events_of(request), b": trailing\n\n"])


def half(request: Request) -> tuple[list[bytes], bytes]:
    """Give three whole events of a stream, and the first half of the fourth."""
    first, second, third, fourth, *_ = events_of(request)
    return [first, second, third], fourth[: len(fourth) // 2]


def cut_mid_event(request: Request) -> list[Step]:
    """Close the connection in the middle of an event."""
    whole, torn = half(request)
    return sse([*whole, torn], end=False)


def cut_between_events(request: Request) -> list[Step]:
    """Close the connection after a whole event, without last-chunk or finish reason."""
    return sse(half(request)[0], end=False)


def ended_early(request: Request) -> list[Step]:
    """End the body properly, but after a half event and without finish reason or [DONE]."""
    whole, torn = half(request)
    return sse([*whole, torn])


def reset_mid_stream(request: Request) -> list[Step]:
    """Reset the connection after some events."""
    return [*sse(half(request)[0], end=False)[:-1], RESET]


def hang_mid_stream(request: Request) -> list[Step]:
    """Fall silent after some events, until released; then go on to the end."""
    first, second, *rest = events_of(request)
    stream = sse([first, second, *rest])
    return [*stream[:5], HANG, *stream[5:]]


def in_band_error(request: Request) -> list[Step]:
    """Report an error inside a stream that began well."""
    failure = payloads.error("The server had an error while processing your request.", "server_error")
    return sse([*half(request)[0], event(failure), DONE])


# -- refusals and failures ---------------------------------------------------------------------------------------


def bad_request(request: Request) -> list[Step]:
    """Refuse with 400 and headers of its own."""
    failure = payloads.error("max_tokens is too large", param="max_tokens", code="context_length_exceeded")
    return json_answer(failure, 400, [("x-request-id", f"up-{request.id}"), ("x-vendor-note", "kept")])


def rate_limited(request: Request, seconds: str = "1") -> list[Step]:
    """Refuse with 429, with both retry headers and the limits' state."""
    failure = payloads.error("Rate limit reached", "requests", code="rate_limit_exceeded")
    wait = float(seconds)
    headers = [
        ("retry-after", str(round(wait))),
        ("retry-after-ms", str(round(wait * 1000))),
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-request-id", f"up-{request.id}"),
    ]
    return json_answer(failure, 429, headers)


def unknown_model(request: Request) -> list[Step]:
    """Refuse with 404."""
    failure = payloads.error(f"The model {request.model!r} does not exist", param="model", code="model_not_found")
    return json_answer(failure, 404)


def status(_request: Request, code: str = "500") -> list[Step]:
    """Fail with any status and OpenAI's error shape."""
    return json_answer(payloads.error("scripted failure", "server_error"), int(code))


def brief_failure(_request: Request, code: str = "500") -> list[Step]:
    """Fail with any status, and ask to be tried again at once."""
    failure = payloads.error("scripted failure", "server_error")
    return json_answer(failure, int(code), [("retry-after-ms", "1")])


def html_error(_request: Request) -> list[Step]:
    """Fail with 502 and a page that is not JSON, as a proxy in between would."""
    body = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
    return [head(502, [("content-type", "text/html"), ("content-length", str(len(body)))]) + body]


def silence(_request: Request) -> list[Step]:
    """Take the request and never answer, until released; then close."""
    return [HANG, CLOSE]


def close_at_once(_request: Request) -> list[Step]:
    """Close before any byte of an answer."""
    return [CLOSE]


def reset_at_once(_request: Request) -> list[Step]:
    """Reset before any byte of an answer."""
    return [RESET]


def cut_unary(request: Request) -> list[Step]:
    """Close in the middle of a body whose length was promised."""
    (whole,) = unary(request)
    assert isinstance(whole, bytes)
    return [whole[:-20], FLUSH, CLOSE]


def stale(request: Request) -> list[Step]:
    """Answer a connection's first request; reset on its second, before any byte: the keep-alive race."""
    return [RESET] if request.nth else ordinary(request)


def close_idle(request: Request) -> list[Step]:
    """Answer, and then close the connection without having said so."""
    return [*ordinary(request), FLUSH, CLOSE]


def not_http(_request: Request) -> list[Step]:
    """Answer with bytes that are no HTTP."""
    return [b"SSH-2.0-OpenSSH_9.6\r\n", FLUSH, CLOSE]


def gzipped(request: Request) -> list[Step]:
    """Answer in one piece with a compressed body, which must arrive as it is."""
    body = gzip.compress(dumps(payloads.completion(request)), mtime=0)
    return json_answer(body, headers=[("content-encoding", "gzip")])


def early_hints(request: Request) -> list[Step]:
    """Send an interim answer before the real one."""
    return [b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n", FLUSH, *ordinary(request)]


ANSWERS: dict[str, Callable[..., Steps]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        ordinary, odd_json, crlf, comments, lines_of_data, large_event, utf8_split, tool_calls, tool_call_in_one_delta,
        untyped, one_packet, usage_with_choices, close_delimited, slow_first_token, slow_head, slow_tokens, long_stream,
        no_done, after_done, cut_mid_event, cut_between_events, ended_early, reset_mid_stream, hang_mid_stream,
        in_band_error, bad_request, rate_limited, unknown_model, status, brief_failure, html_error, silence,
        close_at_once, reset_at_once, cut_unary, stale, close_idle, not_http, gzipped, early_hints,
    )
}  # fmt: skip


def by_model(request: Request) -> Steps:
    """Choose the answer by the request's model (`NAME` or `NAME:ARGUMENT`); the default script."""
    if request.method == "GET":
        return catalogue(request)
    name, colon, argument = request.model.partition(":")
    answer = ANSWERS.get(name, ordinary)
    return answer(request, argument) if colon and name in ANSWERS else answer(request)


def in_turn(*answers: Answer) -> Answer:
    """Give the first answer to the first request, and so on; the last one from then on."""
    remaining = list(answers)

    def script(request: Request) -> Steps:
        return (remaining.pop(0) if len(remaining) > 1 else remaining[0])(request)

    return script
