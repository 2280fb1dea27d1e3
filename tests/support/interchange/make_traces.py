"""Make traces with the real packages, against a server that gives fixed answers: here, or in the folder that is named.

    python3 -m venv venv
    venv/bin/pip install opentelemetry-sdk openinference-instrumentation-openai openai langfuse arize-phoenix-client
    venv/bin/python make_traces.py [FOLDER]

The committed files were made with openinference-instrumentation-openai 0.1.66, openinference-semantic-conventions
0.1.42, opentelemetry-sdk 1.45.2, langfuse 5.0.4 and arize-phoenix-client 3.5.0.
"""

import contextlib
import datetime as dt
import http.server
import json
import sys
import threading
from pathlib import Path

import openai
from langfuse.api import ObservationV2
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from phoenix.client.__generated__ import v1

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
OUT = OUT if OUT.is_dir() else OUT.parent
ANSWER = "No. That is a stereotype, and it is not true."
ASKED = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Are tall people rude?"}]
USAGE = {"prompt_tokens": 12, "completion_tokens": 11, "total_tokens": 23}


class Deployment(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt", "usage": USAGE}
        content = json.dumps(body | {"choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def spans():
    """One call through the instrumented SDK, one that fails, and one span that is no call to a model."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Deployment)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    good = openai.OpenAI(api_key="x", base_url=f"http://127.0.0.1:{server.server_port}/v1")
    bad = openai.OpenAI(api_key="x", base_url="http://127.0.0.1:1/v1", max_retries=0)
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("chain", attributes={"openinference.span.kind": "CHAIN"}):
        good.chat.completions.create(model="gpt", messages=ASKED, user="person")
    with contextlib.suppress(openai.APIConnectionError):
        bad.chat.completions.create(model="gpt", messages=ASKED)
    # The conventions of OpenTelemetry for generative AI, as its SDK writes them.
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 11,
        "gen_ai.conversation.id": "c1",
        "gen_ai.input.messages": json.dumps(
            [{"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]} for one in ASKED]
        ),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
        ),
    }
    with tracer.start_as_current_span("chat gpt", attributes=attributes):
        pass
    return kept.get_finished_spans()


def phoenix_span(span) -> v1.Span:
    """A span as Phoenix's REST API returns it."""
    told = json.loads(span.to_json())
    return v1.Span(
        name=span.name,
        context=v1.SpanContext(trace_id=told["context"]["trace_id"][2:], span_id=told["context"]["span_id"][2:]),
        span_kind=span.attributes.get("openinference.span.kind", "UNKNOWN"),
        start_time=told["start_time"],
        end_time=told["end_time"],
        status_code=told["status"]["status_code"],
        status_message=told["status"].get("description", ""),
        attributes=told["attributes"],
    )


def observations():
    at = dt.datetime(2026, 11, 23, 18, tzinfo=dt.UTC)
    usual = {"trace_id": "t1", "project_id": "p", "start_time": at, "end_time": at + dt.timedelta(seconds=2)}
    made = [
        ObservationV2(
            **usual,
            id="o1",
            type="GENERATION",
            model="gpt",
            input=ASKED,
            output={"role": "assistant", "content": ANSWER},
            usage_details={"input": 12, "output": 11, "total": 23},
            user_id="person",
            session_id="s1",
        ),
        ObservationV2(**usual, id="o2", type="SPAN", name="chain"),
        ObservationV2(**usual, id="o3", type="GENERATION", model="gpt", input={"messages": ASKED}, output=ANSWER),
        ObservationV2(
            **usual, id="o4", type="GENERATION", model="gpt", input="Hello?", level="ERROR", status_message="timeout"
        ),
    ]
    return [json.loads(one.json(by_alias=True, exclude_none=True)) for one in made]


found = spans()
# Without events: a failed call's has a traceback of this machine.
(OUT / "spans.jsonl").write_text(
    "".join(json.dumps(json.loads(one.to_json()) | {"events": []}) + "\n" for one in found)
)
page = {"data": [phoenix_span(one) for one in found], "next_cursor": None}
(OUT / "phoenix.json").write_text(json.dumps(page, indent=1) + "\n")
(OUT / "langfuse.json").write_text(json.dumps({"data": observations(), "meta": {}}, indent=1) + "\n")
