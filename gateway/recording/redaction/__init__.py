"""Redaction: replace secrets and personal data in copies of client traffic before they reach the spool.

Only copies are changed, never the traffic. Most copies contain nothing to redact; a fast search over their bytes
detects that, and the exchange is stored unchanged.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from auditor.domain.exchange import Exchange, Origin
from gateway.recording.redaction.content import drop_logprobs, redact_content, redact_events
from gateway.recording.redaction.search import Searcher, replace_spans
from gateway.recording.redaction.squeezing import searchable_text
from gateway.recording.redaction.streams import Stream

#: Fields whose text comes from a client or a deployment; tags are handled separately.
_TEXT_FIELDS = ("model", "request_id", "ref", "finish_reason", "error_type", "content_encoding")
_CLIENT = Origin.CLIENT  # members are looked up in Python
#: What `_searchable_text` reads of each exchange, in its order there: together, in less time than field by field.
_SEARCHED: Final = ("id", *_TEXT_FIELDS, "tags", "stream", "request", "response")
_searched: Final = itemgetter(*(Exchange._fields.index(name) for name in _SEARCHED))


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
        texts = _texts(exchange)
        response = _response(exchange)
        changes = _redact_fields(exchange, texts, self._searcher)
        if exchange.request and (request := redact_content(exchange.request, self._searcher)) != exchange.request:
            changes["request"] = request
        if exchange.response and (kept := _redact_response(response, self._searcher)) != exchange.response:
            changes["response"] = drop_logprobs(kept)
        return exchange._replace(redacted=True, **changes) if changes else exchange


def _texts(exchange: Exchange) -> dict[str, str]:
    texts = {name: text for name in _TEXT_FIELDS if (text := getattr(exchange, name))}
    if _is_derived_id(exchange.request_id, exchange.id):
        del texts["request_id"]
    return texts


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


def _response(exchange: Exchange) -> Stream | bytes | None:
    """Return the answer in the form in which it is redacted, or None if it is compressed and must not be kept."""
    response = exchange.response or b""
    if _is_coded(exchange):
        return None
    return Stream(response) if _is_stream(exchange) else response


def _redact_fields(exchange: Exchange, texts: Mapping[str, str], searcher: Searcher) -> dict[str, Any]:
    changed: dict[str, Any] = {
        name: replace_spans(text, spans) for name, text in texts.items() if (spans := searcher.find(text))
    }
    tags = {name: replace_spans(value, searcher.find(value)) for name, value in exchange.tags.items()}
    return changed | ({"tags": tags} if tags != exchange.tags else {})


def _redact_response(response: Stream | bytes | None, searcher: Searcher) -> bytes:
    if response is None:
        return b""
    return redact_events(response, searcher) if isinstance(response, Stream) else redact_content(response, searcher)
