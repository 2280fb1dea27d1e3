"""The gate in front of the spool: what must not be kept is taken out of the copies of client traffic.

Only copies are touched, never what passes. Most hold nothing: a search over their bytes says so, and the exchange
goes through as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from auditor.domain.exchange import Exchange, Origin
from gateway.redaction.content import drop_logprobs, redact_content, redact_events
from gateway.redaction.search import Searcher, put
from gateway.redaction.streams import Stream

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
        told, response = _told(exchange), _response(exchange)
        if response is not None and not self._searcher.suspects(_together(exchange, told, response)):
            return exchange
        changes = _facts(exchange, told, self._searcher)
        if exchange.request and (request := redact_content(exchange.request, self._searcher)) != exchange.request:
            changes["request"] = request
        if exchange.response and (kept := _kept(response, self._searcher)) != exchange.response:
            changes["response"] = drop_logprobs(kept)
        return exchange._replace(redacted=True, **changes) if changes else exchange


def _told(exchange: Exchange) -> dict[str, str]:
    told = {name: text for name in _TOLD if (text := getattr(exchange, name))}
    if exchange.request_id.endswith(exchange.id.hex):  # ours: nobody's secret, and dear to search
        del told["request_id"]
    return told


def _response(exchange: Exchange) -> Stream | bytes | None:
    """Give the answer as it can be searched; None if it cannot be read, and so not be kept."""
    response = exchange.response or b""
    if exchange.content_encoding not in {None, "identity"}:
        return None
    events = exchange.stream and not response[:64].lstrip().startswith((b"{", b"["))
    return Stream(response) if events else response


def _together(exchange: Exchange, told: Mapping[str, str], response: Stream | bytes) -> bytes:
    """Put all that an exchange tells together, for one search: most exchanges hold nothing."""
    facts = "\n".join((*told.values(), *exchange.tags.values())).encode(errors="surrogatepass")
    return b"\n".join((facts, exchange.request or b"", response.told() if isinstance(response, Stream) else response))


def _facts(exchange: Exchange, told: Mapping[str, str], searcher: Searcher) -> dict[str, Any]:
    changed: dict[str, Any] = {name: put(text, spans) for name, text in told.items() if (spans := searcher.find(text))}
    tags = {name: put(value, searcher.find(value)) for name, value in exchange.tags.items()}
    return changed | ({"tags": tags} if tags != exchange.tags else {})


def _kept(response: Stream | bytes | None, searcher: Searcher) -> bytes:
    if response is None:
        return b""
    return redact_events(response, searcher) if isinstance(response, Stream) else redact_content(response, searcher)
