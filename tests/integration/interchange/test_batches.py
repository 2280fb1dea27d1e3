"""A plan through OpenAI's batch API: files to upload, and an output file whose answers count for the planned calls."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from openai.types.chat import ChatCompletion
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import ANSWERS, configuration, fetch
from support.stores.exported_audit import command, written

import biasmeter
from auditor.errors import InputError
from auditor.instrument.pool import record_of, shipped_pool
from auditor.jobs.run_once import run_once

PLAN = ("--design", "panel", "--task", "CTO", "--deployment", "d1")


def output_line(asked: dict, text: str) -> dict:
    """A line of an output file, with an answer as the SDK types it."""
    message = {"role": "assistant", "content": text}
    answer = ChatCompletion(
        id="chatcmpl-1",
        object="chat.completion",
        created=int(time.time()),
        model=asked["body"]["model"],
        choices=[{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        usage={"prompt_tokens": 40, "completion_tokens": 20, "total_tokens": 60},
    )
    response = {"status_code": 200, "request_id": "req_1", "body": answer.model_dump(mode="json")}
    return {"id": "batch_req_1", "custom_id": asked["custom_id"], "response": response, "error": None}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
async def batch(migrated_url: str, tmp_path: Path) -> tuple[Path, list[dict]]:
    config = written(tmp_path, migrated_url)
    pool = write(tmp_path / "pool.jsonl", [record_of(one) for one in shipped_pool()[:20]])
    await command("audit", "batch", "-c", config, *PLAN, "--statements", pool, "-o", tmp_path / "batches")
    (file,) = (tmp_path / "batches").iterdir()
    return config, lines(file)


async def test_answers_of_an_output_file_count_for_the_plan(
    batch: tuple[Path, list[dict]], migrated_url: str, engine: AsyncEngine, tmp_path: Path
) -> None:
    config, asked = batch
    assert len(asked) == 20
    assert {(one["method"], one["url"], one["body"]["model"]) for one in asked} == {
        ("POST", "/v1/chat/completions", "m1")
    }
    answered = [output_line(one, ANSWERS["D|D"]) for one in asked[:18]]
    failed = {"custom_id": asked[18]["custom_id"], "response": None, "error": {"code": "batch_expired", "message": ""}}
    error = {"error": {"code": "content_filter", "message": "blocked"}}
    blocked = {"custom_id": asked[19]["custom_id"], "response": {"status_code": 400, "body": error}, "error": None}
    output = write(tmp_path / "output.jsonl", [*answered, failed, blocked])
    await command("audit", "import-batch", output, "-c", config)
    await command("audit", "import-batch", output, "-c", config)  # again: nothing is stored twice
    rows = await fetch(migrated_url, "SELECT e.*, c.request FROM exchanges e JOIN exchange_content c USING (id)")
    assert len(rows) == 19
    assert {row["origin"] for row in rows} == {"probe"}
    by_ref = {row["ref"]: row for row in rows}
    first = by_ref[asked[0]["custom_id"]]
    assert json.loads(first["request"])["messages"] == asked[0]["body"]["messages"]
    assert (first["prompt_tokens"], first["completion_tokens"]) == (40, 20)
    assert by_ref[asked[19]["custom_id"]]["outcome"] == "failed"
    await run_once(configuration(tmp_path), engine, lambda: max(row["at"] for row in rows))
    with await asyncio.to_thread(biasmeter.open, config) as store:
        coded = await asyncio.to_thread(store.coded)
    # The panel asks half of the questions with the options in the other order.
    assert sorted(coded["sel"].value_counts().to_dict().values()) == [1, 9, 9]
    # The next batch asks only what has no answer.
    pool = tmp_path / "pool.jsonl"
    await command("audit", "batch", "-c", config, *PLAN, "--statements", pool, "-o", tmp_path / "rest")
    (rest,) = (tmp_path / "rest").iterdir()
    assert [one["custom_id"] for one in lines(rest)] == [asked[18]["custom_id"]]


async def test_rows_of_no_plan_are_told(batch: tuple[Path, list[dict]], tmp_path: Path) -> None:
    config, asked = batch
    stranger = output_line(asked[0] | {"custom_id": "other"}, "yes")
    with pytest.raises(InputError, match=r"output.jsonl:1: custom_id 'other' is not a call of a stored plan"):
        await command("audit", "import-batch", write(tmp_path / "output.jsonl", [stranger]), "-c", config)
    with pytest.raises(InputError, match=r"output.jsonl:1: is not a line of a batch's output"):
        await command("audit", "import-batch", write(tmp_path / "output.jsonl", [{"id": 1}]), "-c", config)
