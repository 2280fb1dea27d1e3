"""Exchanges from files: our own lines and LiteLLM's spend log, each once, and content only where the user says so."""

import csv
import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from support.stores.audited_store import fetch, ship
from support.stores.exchanges import NOON, exchange

from auditor.coding.answers import read_answer
from auditor.config import Config, loads
from auditor.domain.ids import id_time
from auditor.errors import InputError
from replay.files.export import export_exchanges
from replay.files.imports import ImportCounts, ImportFormat, ImportOptions, import_exchanges
from replay.selection import read_selection

CONFIG = """
deployments:
  - {name: eu, base_url: "http://127.0.0.1:1/v1", model: m}
  - {name: us, base_url: "http://127.0.0.1:1/v1", model: m}
routes:
  - {model: gpt, deployments: [eu]}
  - {model: "*", deployments: [us]}
"""
NOW = NOON + timedelta(days=3)
ASKED = {"model": "gpt", "messages": [{"role": "user", "content": "How tall is a ladder?"}], "stream": True}
SAID = {
    "id": "chatcmpl-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Tall."}, "finish_reason": "stop"}],
}
#: As `/spend/logs` answers; the table has the same columns.
SPEND: dict[str, Any] = {
    "request_id": "chatcmpl-1",
    "call_type": "acompletion",
    "api_key": "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b",
    "spend": 0.0002,
    "total_tokens": 12,
    "prompt_tokens": 10,
    "completion_tokens": 2,
    "startTime": "2026-03-01T12:00:00.123000Z",
    "endTime": "2026-03-01T12:00:01.623000Z",
    "completionStartTime": "2026-03-01T12:00:00.500000Z",
    "model": "azure/gpt-4o-eu",
    "model_id": "7c1f",
    "model_group": "gpt",
    "custom_llm_provider": "azure",
    "api_base": "https://example.openai.azure.com",
    "user": "default_user_id",
    "metadata": {"status": "success", "user_api_key": "88dc28d0"},
    "cache_hit": "False",
    "cache_key": "Cache OFF",
    "request_tags": ["tenant:acme", "nightly"],
    "team_id": "",
    "end_user": "eve@example.com",
    "requester_ip_address": "10.1.2.3",
    "messages": {},
    "response": SAID,
    "proxy_server_request": ASKED,
    "session_id": "s-1",
    "status": "success",
}


@pytest.fixture
def config() -> Config:
    return loads(CONFIG, source="test", folder=Path(), environ={}).config


async def take(
    engine: AsyncEngine,
    config: Config,
    path: Path,
    form: ImportFormat = ImportFormat.LITELLM,
    *,
    content: bool = False,
    skip_bad: bool = False,
    **deployments: str,
) -> ImportCounts:
    """Import a file, three days after noon."""
    terms = ImportOptions(form=form, deployments=deployments or {"azure/gpt-4o-eu": "eu"}, content=content, now=NOW)
    return await import_exchanges(engine, config, path, terms, skip_bad=skip_bad, on_bytes=lambda _: None)


def written(path: Path, *rows: Any) -> Path:
    """A file of lines, gzipped if its name says so."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


async def stored(url: str) -> list[dict[str, Any]]:
    rows = await fetch(url, "SELECT * FROM exchanges LEFT JOIN exchange_content USING (id) ORDER BY id")
    return [dict(row) for row in rows]


async def test_what_was_exported_is_imported_once_and_marked(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    sent = [
        exchange(NOON + timedelta(hours=number), deployment="eu", tags={"tenant": "a"}, inclusion=0.5)
        for number in range(4)
    ]
    await ship(migrated_url, sent)
    path = tmp_path / "out.jsonl.gz"
    await export_exchanges(engine, read_selection("limit=3"), path, content=True, on_progress=lambda *_: None)
    before = await stored(migrated_url)
    assert vars_of(await take(engine, config, path, ImportFormat.BIASMETER, content=True, us="us")) == (0, 3, {}, 0)
    assert await stored(migrated_url) == before
    await fetch(migrated_url, "TRUNCATE exchanges, exchange_content")
    assert vars_of(await take(engine, config, path, ImportFormat.BIASMETER, content=True, us="us")) == (3, 0, {}, 0)
    for row in await stored(migrated_url):
        same = next(one for one in before if one["id"] == row["id"])
        assert json.loads(row["tags"]) == {"tenant": "a", "imported": "biasmeter"}
        assert row["inclusion"] == 0.5 * 0.75, "kept with one probability, drawn with another"
        changed = {"tags": same["tags"], "inclusion": same["inclusion"], "route": same["route"]}
        assert row | changed == same


def vars_of(taken: ImportCounts) -> tuple[int, int, dict[str, int], int]:
    return taken.stored, taken.known, dict(taken.left_out), taken.skipped


async def test_without_the_users_say_only_facts_and_hashes_are_kept(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    path = written(tmp_path / "logs.jsonl", SPEND)
    assert vars_of(await take(engine, config, path)) == (1, 0, {}, 0)
    (row,) = await stored(migrated_url)
    assert (row["capture"], row["request"], row["response"]) == ("hashed", None, None)
    body = json.dumps(ASKED, separators=(",", ":")).encode()
    assert row["request_hash"] == sha256(body).digest()
    assert (row["deployment"], row["route"], row["model"]) == ("eu", "gpt", "gpt")
    assert (row["origin"], row["status"], row["outcome"], row["inclusion"]) == ("client", 200, "complete", 1.0)
    assert (row["prompt_tokens"], row["completion_tokens"], row["total_us"]) == (10, 2, 1_500_000)
    assert (row["finish_reason"], row["stream"], row["request_id"]) == ("stop", False, "chatcmpl-1")
    assert row["at"] == id_time(row["id"]) == datetime(2026, 3, 1, 12, 0, 0, 123000, UTC)
    tags = json.loads(row["tags"])
    assert len(tags.pop("end_user")) == 16
    assert tags == {"tenant": "acme", "nightly": "", "session_id": "s-1", "imported": "litellm"}
    assert "eve" not in str(row)
    assert "10.1.2.3" not in str(row)
    # The same again is known, even if content is asked for now: what is stored stays as it is.
    assert vars_of(await take(engine, config, path, content=True)) == (0, 1, {}, 0)
    assert (await stored(migrated_url))[0]["request"] is None


def as_csv(path: Path, *rows: dict[str, Any]) -> Path:
    """A table as PostgreSQL's COPY writes it: JSON as text, no time zone, NULL as nothing."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(SPEND))
        writer.writeheader()
        for row in rows:
            plain = {name: json.dumps(one) if isinstance(one, dict | list) else one for name, one in row.items()}
            times = {name: plain[name].replace("T", " ").removesuffix("Z") for name in ("startTime", "endTime")}
            writer.writerow(plain | times)
    return path


@pytest.mark.parametrize("kind", ["lines", "list", "page", "pretty", "csv", "strings"])
async def test_every_spelling_of_a_spend_log_is_the_same(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path, kind: str
):
    other = SPEND | {"request_id": "chatcmpl-2"}
    texts = {name: json.dumps(one) if isinstance(one, dict | list) else one for name, one in SPEND.items()}
    path = tmp_path / ("logs.csv" if kind == "csv" else "logs.json")
    match kind:
        case "lines":
            written(path, SPEND, other)
        case "list":
            written(path, [SPEND, other])
        case "page":
            written(path, {"data": [SPEND, other], "total": 2})
        case "pretty":
            path.write_text(json.dumps({"total": 2, "data": [SPEND, other]}, indent=2))
        case "csv":
            as_csv(path, SPEND, other)
        case _:
            written(path, texts, texts | {"request_id": "chatcmpl-2"})
    assert vars_of(await take(engine, config, path, content=True)) == (2, 0, {}, 0)
    for row in await stored(migrated_url):
        assert json.loads(row["request"]) == ASKED
        assert json.loads(row["response"]) == SAID
        assert read_answer(row["endpoint"], row["response"], stream=row["stream"]).text == "Tall."
        assert row["at"] == datetime(2026, 3, 1, 12, 0, 0, 123000, UTC)
        assert json.loads(row["tags"])["tenant"] == "acme"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"proxy_server_request": {"url": "http://x", "headers": {"authorization": "s3cret"}, "body": ASKED}}, ASKED),
        ({"proxy_server_request": {}, "messages": ASKED["messages"]}, {"model": "gpt", "messages": ASKED["messages"]}),
        ({"proxy_server_request": {}, "messages": "{}"}, None),
    ],
    ids=["wrapped", "early versions", "not kept"],
)
async def test_the_request_is_found_where_it_was_kept(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path, changed: dict[str, Any], expected: Any
):
    await take(engine, config, written(tmp_path / "logs.jsonl", SPEND | changed), content=True)
    (row,) = await stored(migrated_url)
    assert (json.loads(row["request"]) if row["request"] else None) == expected
    assert row["capture"] == ("full" if expected else "hashed")


async def test_failures_and_shortened_texts_say_so(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    error = {"status": "failure", "error_information": {"error_code": "429", "error_class": "RateLimitError"}}
    shortened = {"model": "gpt", "messages": [{"role": "user", "content": "a... (litellm_truncated skipped 9 chars)"}]}
    path = written(
        tmp_path / "logs.jsonl",
        SPEND | {"request_id": "a", "status": "failure", "metadata": error, "response": {}},
        SPEND | {"request_id": "b", "status": "", "metadata": {"status": "failure"}, "response": "redacted-by-litellm"},
        SPEND | {"request_id": "c", "proxy_server_request": shortened},
    )
    await take(engine, config, path, content=True)
    rows = {row["request_id"]: row for row in await stored(migrated_url)}
    assert [(rows[one]["outcome"], rows[one]["status"]) for one in "abc"] == [
        ("failed", 429), ("failed", 500), ("complete", 200),
    ]  # fmt: skip
    assert rows["a"]["error_type"] == "RateLimitError"
    assert rows["b"]["response"] is None
    assert [rows[one]["truncated"] for one in "abc"] == [False, False, True]


async def test_what_is_not_taken_is_counted_with_its_reason(engine: AsyncEngine, config: Config, tmp_path: Path):
    days = {"old": NOW - timedelta(days=31), "new": NOW + timedelta(minutes=1)}
    path = written(
        tmp_path / "logs.jsonl",
        SPEND,
        SPEND | {"request_id": "2", "call_type": "aembedding"},
        SPEND | {"request_id": "3", "cache_hit": "True"},
        SPEND | {"request_id": "4", "model": "openai/o3", "model_group": "o3"},
        SPEND | {"request_id": "5", "startTime": days["old"].isoformat()},
        SPEND | {"request_id": "6", "startTime": days["new"].isoformat(), "endTime": days["new"].isoformat()},
        SPEND,
    )
    assert vars_of(await take(engine, config, path, content=True)) == (
        1,
        1,
        {
            "call_type aembedding": 1,
            "answered_from_cache": 1,
            "deployment openai/o3 not declared": 1,
            "older_than_retention": 1,
            "in_the_future": 1,
        },
        0,
    )
    # Facts are kept longer than content.
    assert (await take(engine, config, path)).left_out["older_than_retention"] == 0


async def test_a_deployment_is_found_by_its_name_there_its_model_or_for_all(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    rows = [SPEND | {"request_id": str(number)} for number in range(3)]
    rows[1]["model"] = "openai/o3"
    rows[2] |= {"model": "openai/o3", "model_group": "o3"}
    path = written(tmp_path / "logs.jsonl", *rows)
    names = {"azure/gpt-4o-eu": "eu", "gpt": "us", "*": "eu"}
    await take(engine, config, path, **names)
    found = sorted((row["request_id"], row["deployment"], row["route"]) for row in await stored(migrated_url))
    assert found == [("0", "eu", "gpt"), ("1", "us", "gpt"), ("2", "eu", "*")]


BAD = [
    ("{", "is not JSON"),
    ("[1]", "is not a JSON object"),
    (SPEND | {"request_id": ""}, "request_id is missing"),
    ({"startTime": "2026-03-01", "spend": 1.0}, "request_id is missing; is this a row of LiteLLM's spend log?"),
    (SPEND | {"startTime": "yesterday"}, "startTime must be a time"),
    (SPEND | {"prompt_tokens": "ten"}, "prompt_tokens must be a whole number"),
    (SPEND | {"prompt_tokens": -1}, "prompt_tokens"),
    (SPEND | {"model_group": "a\0b"}, "NUL"),
]


@pytest.mark.parametrize(("row", "named"), BAD)
async def test_a_bad_row_is_named_by_its_line_and_skipped_only_when_asked(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path, row: Any, named: str
):
    path = written(tmp_path / "logs.jsonl", SPEND, row, SPEND | {"request_id": "after"})
    with pytest.raises(InputError) as caught:
        await take(engine, config, path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)
    taken = await take(engine, config, path, skip_bad=True)
    assert (taken.stored + taken.known, taken.skipped) == (2, 1)
    assert taken.complaints[0].startswith(f"{path}:2: ")
    assert len(await stored(migrated_url)) == 2


async def test_bad_rows_of_documents_and_tables_have_their_lines(engine: AsyncEngine, config: Config, tmp_path: Path):
    document = tmp_path / "logs.json"
    document.write_text("[\n" + json.dumps(SPEND) + ",\n\n" + json.dumps(SPEND | {"endTime": None}) + "\n]\n")
    with pytest.raises(InputError, match=r"logs\.json:4: endTime is missing"):
        await take(engine, config, document)
    asked = SPEND | {"proxy_server_request": {"messages": [{"content": "two\nlines"}]}, "user": "two\nlines"}
    table = as_csv(tmp_path / "logs.csv", asked, SPEND | {"endTime": ""})
    with pytest.raises(InputError, match=r"logs\.csv:4: endTime is missing"):
        await take(engine, config, table)
    table.write_text("a,b\n1\n")
    with pytest.raises(InputError, match=r"logs\.csv:2: has 1 fields, and the header 2"):
        await take(engine, config, table)


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("a.jsonl", b"", "holds no rows"),
        ("a.json", b"[]", "holds no rows"),
        ("a.csv", b"a,b\n", "holds no rows"),
        ("a.json", b"[{]", "neither a JSON list"),
        ("a.json", b'{\n"rows": []}', "neither a JSON list"),
        ("a.csv", b'a,b\n"1', "is not CSV"),
        ("a.csv", b"a,b\n\xff,1", "is not UTF-8 text"),
        ("a.csv.gz", gzip.compress(b"a,b\n" * 9, mtime=0)[:-9], "cut off or damaged"),
        ("a.jsonl", b'{"a": 1}\n', "request_id is missing"),
    ],
)
async def test_a_file_that_is_no_spend_log_is_one_line(
    engine: AsyncEngine, config: Config, tmp_path: Path, name: str, content: bytes, named: str
):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        await take(engine, config, path)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"id": None}, "`id`"),
        ({"at": "2026-03-01T12:00:00"}, "timezone"),
        ({"inclusion": 0}, "$.inclusion"),
        ({"chance": 1.5}, "$.chance"),
        ({"status": "ok"}, "$.status"),
        ({"origin": "robot"}, "$.origin"),
        ({"tags": {"a": 1}}, "$.tags"),
        ({"request_hash": "xyz"}, "$.request_hash"),
        ({"request_base64": "%"}, "request_base64"),
    ],
)
async def test_a_line_of_ours_that_cannot_be_read_names_the_member(
    engine: AsyncEngine, config: Config, tmp_path: Path, changed: dict[str, Any], named: str
):
    line = {"id": "x", "at": "2026-03-01T12:00:00Z", "deployment": "eu", "model": "gpt"} | changed
    path = written(tmp_path / "rows.jsonl", {name: one for name, one in line.items() if one is not None})
    with pytest.raises(InputError) as caught:
        await take(engine, config, path, ImportFormat.BIASMETER)
    assert named in str(caught.value)
    assert str(caught.value).startswith(f"{path}:1: ")


async def test_a_line_by_hand_needs_little_and_probes_stay_out(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    line = {"id": "mine", "at": "2026-03-01T13:00:00+01:00", "deployment": "us", "model": "other"}
    path = written(tmp_path / "rows.jsonl", line | {"request": "{}"}, line | {"id": "p", "origin": "probe"})
    taken = await take(engine, config, path, ImportFormat.BIASMETER, content=True)
    assert vars_of(taken) == (1, 0, {"origin probe": 1}, 0)
    (row,) = await stored(migrated_url)
    assert (row["request_id"], row["route"], row["request_bytes"], row["config_hash"]) == ("mine", "*", 2, "imported")
    assert row["at"] == NOON


async def test_imports_of_many_batches_are_whole(
    migrated_url: str, engine: AsyncEngine, config: Config, tmp_path: Path
):
    rows = [SPEND | {"request_id": str(number % 1100)} for number in range(1300)]
    taken = await take(engine, config, written(tmp_path / "logs.jsonl.gz", *rows))
    assert vars_of(taken) == (1100, 200, {}, 0)
    found = Counter(row["request_id"] for row in await stored(migrated_url))
    assert len(found) == 1100
    assert set(found.values()) == {1}
