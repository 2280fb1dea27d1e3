"""Redaction: replace secrets and personal data in copies of client traffic before they reach the spool.

Only copies are changed, never the traffic. Most copies contain nothing to redact; a fast search over their bytes
detects that, and the exchange is stored unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.domain.exchange import Exchange, Origin
from gateway.redaction.content import drop_logprobs, redact_content, redact_events
from gateway.redaction.search import Searcher, replace_spans
from gateway.redaction.squeezing import searchable_text
from gateway.redaction.streams import Stream

#: Fields whose text comes from a client or a deployment; tags are handled separately.
_TEXT_FIELDS = ("model", "request_id", "ref", "finish_reason", "error_type", "content_encoding")
_CLIENT = Origin.CLIENT  # members are looked up in Python


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
    if _has_own_id(exchange):
        del texts["request_id"]
    return texts


def _has_own_id(exchange: Exchange) -> bool:
    """Return whether the gateway has made the request id: then it is never secret, and expensive to search."""
    return exchange.request_id.endswith(str(exchange.id).replace("-", ""))


def _is_stream(exchange: Exchange) -> bool:
    return exchange.stream and not (exchange.response or b"")[:64].lstrip().startswith((b"{", b"["))


def _is_coded(exchange: Exchange) -> bool:
    return exchange.content_encoding is not None and exchange.content_encoding != "identity"


def _searchable_text(exchange: Exchange) -> bytes | None:
    """Join all text of an exchange, so that one search covers it; None if the answer is compressed."""
    facts = exchange.model
    for fact in (exchange.finish_reason, exchange.ref, exchange.error_type):  # of most only the first is given
        if fact is not None:
            facts += "\n" + fact
    if exchange.content_encoding:
        if _is_coded(exchange):
            return None
        facts += "\n" + exchange.content_encoding
    if not _has_own_id(exchange):
        facts += "\n" + exchange.request_id
    if exchange.tags:
        facts = "\n".join((facts, *exchange.tags.values()))
    answer = exchange.response or b""
    if exchange.stream and _is_stream(exchange):
        answer = searchable_text(answer)
    return b"\n".join((facts.encode(errors="surrogatepass"), exchange.request or b"", answer))


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
