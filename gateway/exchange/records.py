"""The record of an exchange, made in one place."""

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from auditor.domain.exchange import Capture, Exchange

if TYPE_CHECKING:
    from gateway.exchange.exchange import ActiveExchange

_FULL: Final = Capture.FULL  # members are looked up in Python, and each exchange asks for it
#: `Exchange._make` without its check of the number of fields, which takes as long again.
_new: Final = tuple.__new__


def make_record(  # noqa: PLR0913, PLR0917 -- what the exchange has worked out for its series as well
    exchange: "ActiveExchange",
    status: int,
    seen: int,
    prompt: int | None,
    completion: int | None,
    total_us: int,
    upstream_us: int,
    first_byte_us: int | None,
) -> Exchange:
    """Make the record of an exchange that has ended.

    Parameters
    ----------
    status
        Status that the client gets.
    seen
        Bytes of the answer.
    prompt, completion
        Tokens; None: not known.
    total_us, upstream_us, first_byte_us
        Microseconds: of all, of waiting for deployments, and until the first byte.
    """
    capture, inclusion, _ = exchange.sampling
    head, route, chosen, directives = exchange.head, exchange.route, exchange.chosen, exchange.directives
    body, key, answer, encoding = exchange.body, head.key, exchange.answer_body, None
    if answer is None:
        answer = b"".join(exchange.copy)
    if exchange.answer_head is not None:
        encoding = exchange.answer_head.content_encoding
    is_full, limit, size = capture is _FULL, route.capture_limit, len(body)
    body_hash = answer_hash = None
    if not is_full:
        body_hash, answer_hash = sha256(body).digest(), (exchange.hash or sha256(answer)).digest()
    # All fields in their order: with their names it takes three times as long.
    record: Exchange = _new(
        Exchange,
        (
            exchange.id,
            exchange.at_us,
            directives.origin,
            head.endpoint_name,
            route.route.model,
            "" if chosen is None else chosen.deployment.name,
            route.model,
            status,
            exchange.outcome,
            bool(exchange.envelope.stream),
            exchange.attempts,
            capture,
            inclusion,
            route.config_hash,
            exchange.request_id,
            directives.tags,
            None if key is None else key.id,
            directives.ref,
            directives.parent,
            exchange.error_type,
            exchange.finish_reason,
            prompt,
            completion,
            total_us,
            upstream_us,
            first_byte_us,
            size,
            seen,
            is_full and (seen > limit or size > limit),
            False,  # redacted
            encoding and _as_text(encoding),
            body_hash,
            answer_hash,
            body[:limit] if is_full else None,
            answer[:limit] if is_full else None,
        ),
    )
    return record


def _as_text(header: str) -> str:
    # A header's value may contain any bytes; the store needs text.
    return ascii(header)[1:-1][:100]
