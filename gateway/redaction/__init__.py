"""The gate in front of the spool: what must not be kept is taken out of the copies of client traffic.

Only copies are touched, never what passes. Most hold nothing: a search over their bytes says so, and the exchange
goes through as it is.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from auditor.domain.exchange import Exchange, Origin
from gateway.redaction.content import drop_logprobs, redact_content, redact_events
from gateway.redaction.search import Searcher, put

#: Facts that a client or a deployment puts into words; tags are one too.
_TOLD = ("model", "request_id", "ref", "finish_reason", "error_type", "content_encoding")


class Redactor:
    """Takes secrets out of exchanges.

    Parameters
    ----------
    names
        What is looked for: of ``keys``, ``email``, ``phone``, ``card``; none turns redaction off.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._searcher = Searcher(names) if names else None

    def redact(self, exchange: Exchange) -> Exchange:
        """Give the exchange as it may be kept: the same object where there is nothing to take out."""
        if self._searcher is None or exchange.origin is not Origin.CLIENT:
            return exchange
        changes = _facts(exchange, self._searcher)
        if exchange.request and (request := redact_content(exchange.request, self._searcher)) != exchange.request:
            changes["request"] = request
        if exchange.response and (response := _response(exchange, self._searcher)) != exchange.response:
            changes["response"] = response
        return replace(exchange, redacted=True, **changes) if changes else exchange


def _facts(exchange: Exchange, searcher: Searcher) -> dict[str, Any]:
    told = {name: text for name in _TOLD if (text := getattr(exchange, name))}
    if exchange.request_id.endswith(exchange.id.hex):  # ours: nobody's secret, and dear to search
        del told["request_id"]
    together = "\n".join((*told.values(), *exchange.tags.values()))
    if not searcher.suspects(together.encode(errors="surrogatepass")):
        return {}
    changed: dict[str, Any] = {name: put(text, spans) for name, text in told.items() if (spans := searcher.find(text))}
    tags = {name: put(value, searcher.find(value)) for name, value in exchange.tags.items()}
    return changed | ({"tags": tags} if tags != exchange.tags else {})


def _response(exchange: Exchange, searcher: Searcher) -> bytes:
    response = exchange.response or b""
    if exchange.content_encoding not in {None, "identity"}:
        return b""  # what cannot be read is not kept
    events = exchange.stream and not response[:64].lstrip().startswith((b"{", b"["))
    redacted = redact_events(response, searcher) if events else redact_content(response, searcher)
    return response if redacted == response else drop_logprobs(redacted)
