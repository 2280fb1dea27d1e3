"""Redaction: replace secrets and personal data in copies of client traffic before they reach the spool.

Only copies are changed, never the traffic. Most copies contain nothing to redact; a fast search over their bytes
detects that, and the exchange is stored unchanged.
"""

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from auditor.domain.exchange import Exchange, Origin
from gateway.recording.redaction.search import STRING, Searcher, Span, replace_spans
from gateway.recording.redaction.streams import Stream, redact_deltas, searchable_text

#: Fields whose text comes from a client or a deployment; tags are handled separately.
_TEXT_FIELDS = ("model", "request_id", "ref", "finish_reason", "error_type", "content_encoding")
_CLIENT = Origin.CLIENT  # members are looked up in Python
#: What `_searchable_text` reads of each exchange, in its order there: together, in less time than field by field.
_SEARCHED: Final = ("id", *_TEXT_FIELDS, "tags", "stream", "request", "response")
_searched: Final = itemgetter(*(Exchange._fields.index(name) for name in _SEARCHED))
_DIGITS = frozenset("0123456789")
#: Non-empty log probabilities: they repeat an answer token by token.
_LOGPROBS = re.compile(rb'"logprobs"\s*+:\s*+(?=\{|\[(?!\s*+\]))')
_BRACKET_OR_STRING = re.compile(STRING.pattern.encode() + rb"|([{\[])|[}\]]")


class Redactor:
    """Redacts exchanges.

    Parameters
    ----------
    names
        The rules to apply, of ``keys``, ``email``, ``phone``, ``card``; none turns redaction off.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._searcher = Searcher(names) if names else None

    def redact(self, exchange: Exchange) -> Exchange:
        """Return the exchange without what the rules find; the same object if they find nothing."""
        if self._searcher is None or exchange.origin is not _CLIENT:
            return exchange
        text = _searchable_text(exchange)
        if text is not None and not self._searcher.suspects(text):
            return exchange
        changes = _redact_fields(exchange, self._searcher)
        if exchange.request and (request := _redact_content(exchange.request, self._searcher)) != exchange.request:
            changes["request"] = request
        if (response := exchange.response) and (
            kept := _redact_response(exchange, response, self._searcher)
        ) != response:
            changes["response"] = _drop_logprobs(kept)
        return exchange._replace(redacted=True, **changes) if changes else exchange


def _is_derived_id(request_id: str, exchange_id: UUID | str) -> bool:
    """Return whether the gateway has made the request id: then it is never secret, and expensive to search."""
    return request_id.endswith(str(exchange_id).replace("-", ""))


def _is_stream(exchange: Exchange) -> bool:
    return exchange.stream and not (exchange.response or b"")[:64].lstrip().startswith((b"{", b"["))


def _is_coded(exchange: Exchange) -> bool:
    return exchange.content_encoding is not None and exchange.content_encoding != "identity"


def _searchable_text(exchange: Exchange) -> bytes | None:
    """Join all text of an exchange, so that one search covers it; None if the answer is compressed."""
    (exchange_id, model, request_id, ref, finish_reason, error_type, content_encoding,
     tags, is_stream, request, response) = _searched(exchange)  # fmt: skip
    facts: str = model
    if finish_reason is not None:
        facts += "\n" + finish_reason
    if ref is not None:
        facts += "\n" + ref
    if error_type is not None:
        facts += "\n" + error_type
    if content_encoding:
        if _is_coded(exchange):
            return None
        facts += "\n" + content_encoding
    if not _is_derived_id(request_id, exchange_id):
        facts += "\n" + request_id
    if tags:
        facts = "\n".join((facts, *tags.values()))
    answer = response or b""
    if is_stream and _is_stream(exchange):
        answer = searchable_text(answer)
    return b"\n".join((facts.encode("utf-8", "surrogatepass"), request or b"", answer))


def _redact_fields(exchange: Exchange, searcher: Searcher) -> dict[str, Any]:
    texts = {name: text for name in _TEXT_FIELDS if (text := getattr(exchange, name))}
    if _is_derived_id(exchange.request_id, exchange.id):
        del texts["request_id"]
    changed: dict[str, Any] = {
        name: replace_spans(text, spans) for name, text in texts.items() if (spans := searcher.find(text))
    }
    tags = {name: replace_spans(value, searcher.find(value)) for name, value in exchange.tags.items()}
    return changed | ({"tags": tags} if tags != exchange.tags else {})


def _redact_response(exchange: Exchange, response: bytes, searcher: Searcher) -> bytes:
    """Redact the answer; of one that is compressed nothing must be kept."""
    if _is_coded(exchange):
        return b""
    if not _is_stream(exchange):
        return _redact_content(response, searcher)
    stream = Stream(response)
    redact_deltas(stream, searcher)
    joined = b"".join(stream.lines)
    if not searcher.suspects(joined):
        return joined
    return b"".join(_redact_content(line, searcher) for line in stream.lines)


def _redact_content(content: bytes, searcher: Searcher) -> bytes:
    """Redact JSON or any other text, complete or truncated.

    The text is searched, not parsed, so truncated JSON works too. All other bytes stay unchanged.
    """
    if not searcher.suspects(content):
        return content
    # Invalid UTF-8, such as half a character at the end of a copy, stays as it is.
    text = content.decode(errors="surrogateescape")
    spans = searcher.find(text)
    if text.lstrip().startswith(("{", "[", "data:")):
        spans = _quote_numbers(text, spans)
    return replace_spans(text, spans).encode(errors="surrogateescape")


def _quote_numbers(text: str, spans: Sequence[Span]) -> list[Span]:
    """Quote a placeholder that replaces a number, so that the JSON stays valid."""
    numbers = {span for span in spans if _DIGITS.issuperset(text[span.start : span.end])}
    if not numbers:
        return list(spans)
    strings = STRING.finditer(text)
    quoted: list[Span] = []
    string = next(strings, None)
    for span in spans:
        while string is not None and string.end() <= span.start:
            string = next(strings, None)
        bare = span in numbers and (string is None or span.start < string.start())
        quoted.append(span._replace(placeholder=f'"{span.placeholder}"') if bare else span)
    return quoted


def _drop_logprobs(answer: bytes) -> bytes:
    """Replace log probabilities by ``null``, because their tokens repeat the redacted text."""
    pieces: list[bytes] = []
    at = 0
    while (match := _LOGPROBS.search(answer, at)) is not None:
        pieces += answer[at : match.end()], b"null"
        at = _end_of_value(answer, match.end())
    return b"".join((*pieces, answer[at:]))


def _end_of_value(json: bytes, start: int) -> int:
    depth = 0
    for token in _BRACKET_OR_STRING.finditer(json, start):
        if json[token.start()] == 0x22:  # a string
            continue
        depth += 1 if token[2] else -1
        if depth == 0:
            return token.end()
    return len(json)
