"""Records of usual exchanges on the short way: of a whole answer of status 200 without an error, or of a whole refusal.

They are as the tap would make them, in half the time: nothing is made in between.
"""

import time
from typing import Final

from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from gateway.exchange.asked_exchange import AskedExchange
from gateway.routing.breaker import BreakerVerdict
from gateway.routing.failures import error_type_of
from gateway.wire import AnswerSummary, read_answer

#: Members are looked up in Python, and each request asks for these.
_CLIENT, _COMPLETE, _FAILED, _HASHED = Origin.CLIENT, Outcome.COMPLETE, Outcome.FAILED, Capture.HASHED
_OK: Final = BreakerVerdict.OK
_HTTP_OK: Final = 200
_NOTHING: Final = AnswerSummary()
#: `Exchange._make` without its check of the number of fields, which takes as long again.
_new: Final = tuple.__new__


def record(asked: AskedExchange, status: int, answer: bytes, arrived: float) -> bool:
    """Record an exchange that has ended, count it, and release its slot. `Recorder.write_held` writes the record.

    Parameters
    ----------
    status
        200, or that of a refusal, which is the request's fault and not the deployment's.
    answer
        The whole body.
    arrived
        `time.perf_counter` when it had come.

    Returns
    -------
    bool
        False, with nothing done, if the exchange is not usual.
    """
    is_ok = status == _HTTP_OK
    outcome, error_type = (_COMPLETE, None) if is_ok else (_FAILED, error_type_of(status))
    summary = read_answer(answer)
    if summary is None and not is_ok:
        summary = _NOTHING
    plan, gateway, endpoint = asked.plan, asked.gateway, asked.known.plan.endpoint
    capture, inclusion, skip_reason = plan.capture or endpoint.capture(
        asked.config.seed, plan.route, asked.directives, asked.id
    )
    if (
        summary is None
        or summary.response is not None
        or (is_ok and summary.error)
        or capture is _HASHED
        or asked.envelope.stream
    ):
        return False
    chosen, recorder, body, directives = asked.chosen, gateway.recorder, asked.body, asked.directives
    usage, began = summary.usage, asked.began
    prompt, completion = (None, None) if usage is None else (usage.prompt, usage.completion)
    total_us = round((time.perf_counter() - began) * 1e6)
    upstream_us = round((arrived - asked.asked_at) * 1e6)
    label, route, name = chosen.labels
    asked_bytes, answer_bytes = len(body), len(answer)
    if skip_reason:
        recorder.count_skipped(skip_reason)
    else:
        limit = plan.capture_limit
        key = asked.known.plan.key
        # All fields in their order: with their names it takes three times as long.
        recorder.hold(
            _new(
                Exchange,
                (
                    asked.id,
                    asked.at_us,
                    _CLIENT,
                    label,
                    route,
                    name,
                    plan.model,
                    status,
                    outcome,
                    False,  # stream
                    1,  # attempts
                    capture,
                    inclusion,
                    plan.config_hash,
                    asked.request_id,
                    directives.tags,
                    None if key is None else key.id,
                    directives.ref,
                    directives.parent,
                    error_type,
                    summary.finish_reason,
                    prompt,
                    completion,
                    total_us,
                    upstream_us,
                    round((arrived - began) * 1e6),
                    asked_bytes,
                    answer_bytes,
                    answer_bytes > limit or asked_bytes > limit,
                    False,  # redacted
                    None,  # content encoding
                    None,  # hashes
                    None,
                    body[:limit],
                    answer[:limit],
                ),
            )
        )
    recorder.ended += 1
    series = chosen.series
    if series is None:
        series = chosen.series = recorder.series(label, route, name, _CLIENT)
    series.count(status, prompt, completion, total_us, upstream_us, None)
    if asked.grant is not None:
        asked.grant.settle(prompt, completion, chosen.deployment.price, failed=usage is None and not is_ok)
    chosen.access.release(asked.ticket, _OK)
    return True
