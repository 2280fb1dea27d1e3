"""The JSON an OpenAI-compatible server answers with, per endpoint; `upstream_answers` puts it on the wire.

Everything is a function of the request, so the same request gets the same bytes.
The answer's id carries the request's own id: a load test can see that no answer went to another's caller.
"""

from collections.abc import Sequence
from typing import Any

from support.upstreams.upstream_wire import Request

#: a fixed clock: answers must not differ from run to run
CREATED = 1_700_000_000
PROMPT_TOKENS = 11
PIECES = ("Level", " ground", ", as", " far as", " we", " see.")

Payload = dict[str, Any]


def is_completion(request: Request) -> bool:
    """Tell the older text endpoint from chat."""
    return request.path.endswith("/v1/completions")


def usage(completion_tokens: int = len(PIECES)) -> Payload:
    """Token counts of an answer; the prompt always counts `PROMPT_TOKENS`."""
    return {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": completion_tokens,
        "total_tokens": PROMPT_TOKENS + completion_tokens,
    }


def completion(request: Request, content: str = "".join(PIECES)) -> Payload:
    """Build a unary answer of chat/completions, or of completions where that was asked."""
    answer: Payload
    if is_completion(request):
        choice = {"index": 0, "text": content, "logprobs": None, "finish_reason": "stop"}
        answer = {"id": f"cmpl-{request.id}", "object": "text_completion"}
    else:
        message = {"role": "assistant", "content": content, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        answer = {"id": f"chatcmpl-{request.id}", "object": "chat.completion"}
    return answer | {"created": CREATED, "model": request.model, "choices": [choice], "usage": usage()}


def chunk(request: Request, delta: Payload | str | None, finish: str | None = None, **extra: Any) -> Payload:
    """Build one chunk of a stream; `delta` None gives the chunk without choices that carries usage.

    A string is text: the delta's content in chat, the choice's text in completions.
    """
    text_endpoint = is_completion(request)
    choices: list[Payload] = []
    if delta is not None and text_endpoint:
        choices = [{"index": 0, "text": delta if isinstance(delta, str) else "", "finish_reason": finish}]
    elif delta is not None:
        content = {"content": delta} if isinstance(delta, str) else delta
        choices = [{"index": 0, "delta": content, "logprobs": None, "finish_reason": finish}]
    kind, prefix = ("text_completion", "cmpl") if text_endpoint else ("chat.completion.chunk", "chatcmpl")
    head = {"id": f"{prefix}-{request.id}", "object": kind, "created": CREATED, "model": request.model}
    return head | {"choices": choices} | extra


def chunks(request: Request, pieces: Sequence[str] = PIECES) -> list[Payload]:
    """Build a whole stream of text pieces; with usage, where asked, the way OpenAI sends it."""
    extra: Payload = {"usage": None} if request.include_usage else {}
    start = [] if is_completion(request) else [chunk(request, {"role": "assistant", "content": ""}, **extra)]
    body = [chunk(request, piece, **extra) for piece in pieces]
    end = [chunk(request, {}, "stop", **extra)]
    if request.include_usage:
        end.append(chunk(request, None, usage=usage(len(pieces))))
    return start + body + end


def tool_call_chunks(request: Request) -> list[Payload]:
    """Build a stream that calls two tools, their arguments cut in the middle of JSON."""
    extra: Payload = {"usage": None} if request.include_usage else {}

    def call(index: int, arguments: str, name: str | None = None) -> Payload:
        function: Payload = {"arguments": arguments}
        entry: Payload = {"index": index, "function": function}
        if name is not None:
            function["name"] = name
            entry |= {"id": f"call_{index}", "type": "function"}
        return {"tool_calls": [entry]}

    deltas = [
        {"role": "assistant", "content": None},
        call(0, "", "read_level"),
        call(0, '{"axis": "no'),
        call(0, 'rth"}'),
        call(1, "", "read_level"),
        call(1, '{"axis": "east"}'),
    ]
    end = [chunk(request, {}, "tool_calls", **extra)]
    if request.include_usage:
        end.append(chunk(request, None, usage=usage(len(deltas))))
    return [chunk(request, delta, **extra) for delta in deltas] + end


def embeddings(request: Request, dimensions: int = 4) -> Payload:
    """Build one small vector per input."""
    given = request.payload.get("input", "")
    inputs = given if isinstance(given, list) else [given]
    data = [
        {"object": "embedding", "index": i, "embedding": [round((i + 1) / (d + 2), 6) for d in range(dimensions)]}
        for i in range(len(inputs))
    ]
    counts = {"prompt_tokens": PROMPT_TOKENS, "total_tokens": PROMPT_TOKENS}
    return {"object": "list", "data": data, "model": request.model, "usage": counts}


def response(request: Request, content: str = "".join(PIECES), status: str = "completed") -> Payload:
    """Build an answer of /v1/responses."""
    text = {"type": "output_text", "text": content, "annotations": []}
    message = {"type": "message", "id": "msg_0", "status": status, "role": "assistant", "content": [text]}
    counts = {
        "input_tokens": PROMPT_TOKENS,
        "output_tokens": len(PIECES),
        "total_tokens": PROMPT_TOKENS + len(PIECES),
    }
    done = status == "completed"
    return {
        "id": f"resp_{request.id}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": request.model,
        "output": [message] if done else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": counts if done else None,
    }


def response_events(request: Request, pieces: Sequence[str] = PIECES) -> list[Payload]:
    """Build the events of a /v1/responses stream, which ends without [DONE]."""
    place = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    events: list[Payload] = [{"type": "response.created", "response": response(request, status="in_progress")}]
    events += [{"type": "response.output_text.delta", "delta": piece} | place for piece in pieces]
    events.append({"type": "response.completed", "response": response(request, "".join(pieces))})
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def models(names: Sequence[str]) -> Payload:
    """Build the answer of GET /v1/models."""
    return {"object": "list", "data": [model(name) for name in names]}


def model(name: str) -> Payload:
    """Build the answer of GET /v1/models/{id}."""
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "scripted"}


def error(
    message: str, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
) -> Payload:
    """Build OpenAI's error object."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
