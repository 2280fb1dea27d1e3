"""Relay of a deployment's answer to the client, byte for byte, as it arrives.

Only the end of the answer (the ``[DONE]`` event of a stream, the last piece of a unary body) waits a few microseconds,
until the record is in the spool. So every answer that a client has received in full is kept, whatever is killed.
"""

from auditor.domain.exchange import Outcome
from gateway.errors import UpstreamFailed, UpstreamTimeout
from gateway.exchange.attempt import Attempt
from gateway.exchange.stopping import finish_storing
from gateway.exchange.stream_relay import StreamRelay
from gateway.exchange.tap import Tap
from gateway.headers import client_headers
from gateway.http import OpenAnswer, Request, WholeAnswer
from gateway.recording.threads import WorkThread
from gateway.routing.failures import ErrorAnswer, error_type_of, retry_may_help


async def relay(request: Request, attempt: Attempt, tap: Tap, thread: WorkThread) -> WholeAnswer | OpenAnswer:
    """Relay an answer that has begun, to its end.

    Usage that the gateway asked for, and the client did not, is taken out of a stream. Large events are read in the
    thread.
    """
    answer = attempt.answer
    tap.status = answer.status
    tap.content_encoding = attempt.headers.get("content-encoding")
    try:
        headers = client_headers(answer.headers, tap.own_headers())
        if attempt.is_stream:
            return await StreamRelay(request, attempt, tap, thread).run(headers)
        if attempt.whole:
            tap.body(attempt.held)
            tap.end(*ended(answer.status))
            await finish_storing(request, tap.storing)
            headers.setdefault("content-type", "application/octet-stream")
            return WholeAnswer(answer.status, headers, attempt.held)
        return await _relay_long_body(request, attempt, tap, headers)
    finally:
        answer.close()


async def relay_refusal(request: Request, refusal: ErrorAnswer, tap: Tap) -> WholeAnswer:
    """Relay an error answer as it is."""
    tap.status = refusal.status
    tap.content_encoding = dict(refusal.headers).get("content-encoding")
    tap.body(refusal.body)
    tap.end(*ended(refusal.status))
    await finish_storing(request, tap.storing)
    headers = client_headers(refusal.headers, tap.own_headers())
    if not retry_may_help(refusal.status):
        headers.setdefault("x-should-retry", "false")
    return WholeAnswer(refusal.status, headers, refusal.body)


def ended(status: int) -> tuple[Outcome, int, str | None]:
    """Return how an exchange ends whose client has got a whole answer of this status."""
    return Outcome.COMPLETE if status < 300 else Outcome.FAILED, status, error_type_of(status)


async def _relay_long_body(request: Request, attempt: Attempt, tap: Tap, headers: dict[str, str]) -> OpenAnswer:
    answer, held = attempt.answer, attempt.held
    open_answer = OpenAnswer(request, answer.status, headers)
    try:
        while following := await attempt.wait(answer.read(), attempt.end_due, tap, "total_timeout"):
            tap.bytes_passed(held)
            open_answer.write(held)
            if open_answer.is_full:
                await attempt.drain(open_answer, tap)
            held = following
    except (UpstreamFailed, UpstreamTimeout) as error:
        tap.end(Outcome.CUT, answer.status, error.code)
        open_answer.cut()
        return open_answer
    tap.bytes_passed(held)
    tap.end(*ended(answer.status))
    await finish_storing(request, tap.storing)
    open_answer.write(held)
    open_answer.end()
    return open_answer
