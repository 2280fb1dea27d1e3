"""Write exchanges as spans and codings as events of OpenTelemetry, in the protocol buffers of OTLP.

Names follow the semantic conventions for generative AI (``gen_ai.*``); what these do not name is under ``biasmeter.*``.
A span has the trace id that the client sent in ``traceparent``, and otherwise the exchange's id. No text of a request
or an answer is written.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, Final

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from auditor.domain.exchange import Outcome
from auditor.export.codings import endorses, hex_id, trace_id
from auditor.store.unsent import UnsentCoding

EVENT: Final = "gen_ai.evaluation.result"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_OPERATIONS: Final = {"chat/completions": "chat", "completions": "text_completion", "responses": "chat"}


def trace_request(codings: Sequence[UnsentCoding], vendors: Mapping[str, str]) -> bytes | None:
    """Return the spans of the exchanges that are coded for the first time; None if there are none.

    Parameters
    ----------
    vendors
        The vendor by deployment, where it is declared.
    """
    spans = [_span(coding.facts, vendors) for coding in codings if coding.first]
    if not spans:
        return None
    scoped = ResourceSpans(resource=_resource(), scope_spans=[ScopeSpans(scope=_scope(), spans=spans)])
    content: bytes = ExportTraceServiceRequest(resource_spans=[scoped]).SerializeToString()
    return content


def logs_request(codings: Sequence[UnsentCoding]) -> bytes:
    """Return one event for each coding."""
    records = [_event(coding) for coding in codings]
    scoped = ResourceLogs(resource=_resource(), scope_logs=[ScopeLogs(scope=_scope(), log_records=records)])
    content: bytes = ExportLogsServiceRequest(resource_logs=[scoped]).SerializeToString()
    return content


def _span(facts: Mapping[str, Any], vendors: Mapping[str, str]) -> Span:
    operation = _OPERATIONS.get(facts["endpoint"], facts["endpoint"])
    began = _nanoseconds(facts["at"])
    trace, span = _ids(facts)
    failed = facts["outcome"] != Outcome.COMPLETE
    tags = facts["tags"] or {}
    return Span(
        trace_id=trace,
        span_id=span,
        parent_span_id=hex_id(tags.get("parent_span_id"), 8),
        name=f"{operation} {facts['model']}",
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=began,
        end_time_unix_nano=began + facts["total_us"] * 1000,
        status=Status(code=Status.STATUS_CODE_ERROR) if failed else Status(),
        attributes=_attributes(
            {
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": vendors.get(facts["deployment"]),
                "gen_ai.request.model": facts["model"],
                "gen_ai.request.stream": facts["stream"],
                "gen_ai.response.finish_reasons": [facts["finish_reason"]] if facts["finish_reason"] else None,
                "gen_ai.usage.input_tokens": facts["prompt_tokens"],
                "gen_ai.usage.output_tokens": facts["completion_tokens"],
                "http.response.status_code": facts["status"],
                "error.type": (facts["error_type"] or facts["outcome"]) if failed else None,
                **_named(facts),
                "biasmeter.route": facts["route"],
                "biasmeter.inclusion": facts["inclusion"],
            }
        ),
    )


def _event(unsent: UnsentCoding) -> LogRecord:
    coding, facts = unsent.coding, unsent.facts
    trace, span = _ids(facts)
    selection, elaboration = coding["sel"], coding["elab"]
    endorsed = endorses(selection, elaboration)
    return LogRecord(
        time_unix_nano=_nanoseconds(coding["coded_at"]),
        observed_time_unix_nano=_nanoseconds(coding["coded_at"]),
        severity_number=SEVERITY_NUMBER_INFO,
        event_name=EVENT,
        trace_id=trace,
        span_id=span,
        attributes=_attributes(
            {
                "gen_ai.evaluation.name": "biasmeter.endorsement",
                "gen_ai.evaluation.score.value": None if endorsed is None else float(endorsed),
                "gen_ai.evaluation.score.label": f"{selection}|{elaboration}" if selection and elaboration else None,
                "gen_ai.evaluation.explanation": coding["sel_reason"] or coding["elab_reason"] or coding["uncoded"],
                **_named(facts),
                "biasmeter.selection": selection,
                "biasmeter.elaboration": elaboration,
                "biasmeter.coder": coding["coder"],
                "biasmeter.rubric": coding["rubric"],
                "biasmeter.task": coding["task"],
                "biasmeter.audit": coding["audit"],
            }
        ),
    )


def _named(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "biasmeter.exchange.id": str(facts["id"]),
        "biasmeter.deployment": facts["deployment"],
        "biasmeter.origin": facts["origin"],
    }


def _ids(facts: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the ids of the trace and of the exchange's span, which are the same whenever they are made."""
    return trace_id(facts), facts["id"].bytes[8:]


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def _resource() -> Resource:
    return Resource(attributes=_attributes({"service.name": "biasmeter", "service.version": version("biasmeter")}))


def _scope() -> InstrumentationScope:
    return InstrumentationScope(name="biasmeter", version=version("biasmeter"))


def _attributes(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items() if value is not None]


def _value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=map(_value, value)))
    return AnyValue(string_value=str(value))
