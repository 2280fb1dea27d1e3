"""Read the text of a stored answer from JSON bodies and event streams.

Only the first choice is read. ``auditor.selection`` interprets the text.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from auditor.domain.question import Answer

_Object = Mapping[str, Any]
#: Finish reasons of ``/v1/responses``, translated to those of the other endpoints.
_INCOMPLETE: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


class UnreadableAnswer(Exception):  # noqa: N818 -- becomes a stored reason, not an error
    """The bytes are not a valid answer of their endpoint."""


def read_answer(endpoint: str, body: bytes, *, stream: bool) -> Answer:
    """Return the text of an answer and its finish reason.

    Parameters
    ----------
    endpoint
        Endpoint as exchanges name it, e.g. ``chat/completions``.
    body
        The whole answer, not compressed.
    stream
        Whether the answer is a stream of server-sent events.

    Raises
    ------
    UnreadableAnswer
        The endpoint is unknown, or the bytes are not its answer.
    """
    readers = _STREAMS if stream else _BODIES
    if endpoint not in readers:
        raise UnreadableAnswer(f"answers of {endpoint} have no text")
    try:
        answer = readers[endpoint](list(_events(body))) if stream else readers[endpoint]([_object(orjson.loads(body))])
    except orjson.JSONDecodeError as error:
        raise UnreadableAnswer(f"not JSON: {error}") from None
    if answer is None:
        raise UnreadableAnswer("there is no choice in it")
    return answer


def _object(value: object) -> _Object:
    if not isinstance(value, dict):
        raise UnreadableAnswer("not a JSON object")
    return value


def _events(body: bytes) -> Iterator[_Object]:
    """Yield the JSON objects of an event stream; comments, ``[DONE]`` and incomplete events are skipped."""
    for block in body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n\n"):
        lines = [line[5:].removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")]
        try:
            value = orjson.loads(b"\n".join(lines)) if lines else None
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value


def _first_choice(event: _Object) -> _Object:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) in {0, None}:
            return choice
    return {}


def _text(content: object) -> str:
    """Read a content: text, or a list of parts of which some are text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(_text(part.get("text") or part.get("refusal")) for part in parts if isinstance(part, dict))


def _message_text(message: _Object) -> str:
    """Read a message; a refusal in its own field is its text."""
    return _text(message.get("content")) or _text(message.get("refusal"))


def _gather(events: list[_Object], field: str, read_part: Callable[[_Object], str]) -> Answer | None:
    pieces: list[str] = []
    finish: str | None = None
    seen = False
    for event in events:
        choice = _first_choice(event)
        seen = seen or bool(choice)
        part = choice.get(field) if field else choice
        if isinstance(part, dict):
            pieces.append(read_part(part))
        reason = choice.get("finish_reason")
        finish = reason if isinstance(reason, str) else finish
    return Answer(text="".join(pieces), finish_reason=finish) if seen else None


def _response_text(response: _Object) -> str:
    output = response.get("output")
    items = [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []
    return "".join(_text(item.get("content")) for item in items if item.get("type") == "message")


def _whole_response(events: list[_Object]) -> Answer | None:
    response = events[0]
    return _ended(_response_text(response), response) if isinstance(response.get("output"), list) else None


def _ended(text: str, response: _Object) -> Answer:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    finish = _INCOMPLETE.get(str(reason), str(reason)) if reason else None
    return Answer(text=text, finish_reason=finish or ("stop" if response.get("status") == "completed" else None))


def _streamed_response(events: list[_Object]) -> Answer | None:
    """Return the whole response of the last event, or the sum of the deltas if the stream has none."""
    pieces: list[str] = []
    for event in events:
        kind, response = event.get("type"), event.get("response")
        if kind in {"response.completed", "response.incomplete"} and isinstance(response, dict):
            return _ended(_response_text(response) or "".join(pieces), response)
        if kind in {"response.output_text.delta", "response.refusal.delta"}:
            pieces.append(_text(event.get("delta")))
    return Answer(text="".join(pieces)) if pieces else None


_Reader = Callable[[list[_Object]], Answer | None]
_BODIES: Final[dict[str, _Reader]] = {
    "chat/completions": lambda events: _gather(events, "message", _message_text),
    "completions": lambda events: _gather(events, "", lambda choice: _text(choice.get("text"))),
    "responses": _whole_response,
}
_STREAMS: Final[dict[str, _Reader]] = {
    "chat/completions": lambda events: _gather(events, "delta", _message_text),
    "completions": lambda events: _gather(events, "", lambda choice: _text(choice.get("text"))),
    "responses": _streamed_response,
}
