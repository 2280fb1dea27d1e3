"""Traces of Langfuse, Phoenix and OpenTelemetry as exchanges: files made by the real packages (`make_traces.py`)."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.paths import SUPPORT
from support.stores.audited_store import fetch

from auditor.coding.answers import read_answer
from auditor.config import Config, loads
from auditor.errors import InputError
from replay.files.imports import ImportCounts, ImportFormat, ImportOptions, import_exchanges

#: Files made by the real packages: those of this folder, or new ones (`.ci/interchange`).
FILES = Path(os.environ.get("INTERCHANGE_FILES", SUPPORT / "interchange"))
ANSWER = "No. That is a stereotype, and it is not true."
NOW = datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def config() -> Config:
    text = (
        "data_dir: data\nretention: {content: 36500d, facts: 36500d}\n"
        'deployments: [{name: eu, base_url: "http://127.0.0.1:1/v1", model: m}]\n'
        'routes: [{model: "*", deployments: [eu]}]\n'
    )
    return loads(text, source="test", folder=Path(), environ={}).config


async def take(engine: AsyncEngine, config: Config, path: Path, form: ImportFormat) -> ImportCounts:
    terms = ImportOptions(form=form, deployments={"*": "eu"}, content=True, now=NOW)
    return await import_exchanges(engine, config, path, terms, skip_bad=False, on_bytes=lambda _: None)


async def stored(url: str) -> list[dict[str, Any]]:
    query = "SELECT * FROM exchanges LEFT JOIN exchange_content USING (id) ORDER BY request_id"
    return [dict(row) for row in await fetch(url, query)]


def said(row: dict[str, Any]) -> str | None:
    return read_answer(row["endpoint"], row["response"], stream=row["stream"]).text


def asked(row: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["role"], one["content"]) for one in json.loads(row["request"])["messages"]]


ASKED = [("system", "Be short."), ("user", "Are tall people rude?")]


async def test_langfuse(migrated_url: str, engine: AsyncEngine, config: Config) -> None:
    taken = await take(engine, config, FILES / "langfuse.json", ImportFormat.LANGFUSE)
    assert (taken.stored, taken.left_out) == (3, {"type SPAN": 1})
    first, second, third = await stored(migrated_url)
    assert (asked(first), said(first), asked(second), said(second)) == (ASKED, ANSWER, ASKED, ANSWER)
    assert (first["prompt_tokens"], first["completion_tokens"], first["total_us"]) == (12, 11, 2_000_000)
    assert (first["request_id"], first["deployment"], first["model"]) == ("o1", "eu", "gpt")
    assert json.loads(first["tags"]).keys() == {"imported", "session_id", "end_user"}
    assert "person" not in first["tags"]
    assert (third["outcome"], third["error_type"], asked(third)) == ("failed", "timeout", [("user", "Hello?")])
    assert third["response"] is None
    assert (await take(engine, config, FILES / "langfuse.json", ImportFormat.LANGFUSE)).known == 3


@pytest.mark.parametrize("name", ["spans.jsonl", "phoenix.json"])
async def test_spans(name: str, migrated_url: str, engine: AsyncEngine, config: Config) -> None:
    taken = await take(engine, config, FILES / name, ImportFormat.SPANS)
    assert (taken.stored, taken.left_out) == (3, {"span kind CHAIN": 1})
    rows = await stored(migrated_url)
    good = [row for row in rows if row["outcome"] == "complete"]
    assert [(asked(row), said(row)) for row in good] == [(ASKED, ANSWER)] * 2
    assert [(row["prompt_tokens"], row["completion_tokens"], row["model"]) for row in good] == [(12, 11, "gpt")] * 2
    assert sorted("session_id" in json.loads(row["tags"]) for row in good) == [False, True]
    (failed,) = (row for row in rows if row["outcome"] == "failed")
    assert (failed["error_type"], failed["model"]) == ("APIConnectionError: Connection error.", "gpt")


async def test_a_data_frame_of_phoenix(migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path) -> None:
    row = {
        "context.trace_id": "a" * 32,
        "context.span_id": "b" * 16,
        "span_kind": "LLM",
        "start_time": "2026-11-23T18:00:00+00:00",
        "end_time": "2026-11-23T18:00:01+00:00",
        "status_code": "OK",
        "attributes.llm.model_name": "gpt",
        "attributes.llm.input_messages": [{"message.role": "user", "message.content": "Are tall people rude?"}],
        "attributes.llm.output_messages": [{"message": {"role": "assistant", "content": ANSWER}}],
        "attributes.llm.token_count": {"prompt": 3.0},
        "attributes.metadata": None,
    }
    file = tmp_path / "frame.jsonl"
    file.write_text(json.dumps(row))
    await take(engine, config, file, ImportFormat.SPANS)
    (only,) = await stored(migrated_url)
    assert (said(only), only["prompt_tokens"]) == (ANSWER, 3)
    assert asked(only) == ASKED[1:]


@pytest.mark.parametrize(
    ("form", "row", "message"),
    [
        (ImportFormat.LANGFUSE, {"id": "1"}, "type is missing; is this an observation of Langfuse"),
        (ImportFormat.LANGFUSE, {"type": "GENERATION", "startTime": "soon"}, "startTime must be a time"),
        (ImportFormat.SPANS, {"span_kind": "LLM"}, "context.trace_id is missing; is this a span"),
    ],
)
async def test_bad_rows_are_told_in_one_line(
    form: ImportFormat, row: dict, message: str, engine: AsyncEngine, config: Config, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row))
    with pytest.raises(InputError, match=rf"rows.jsonl:1: {message}"):
        await take(engine, config, file, form)
