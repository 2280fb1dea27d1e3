"""Files made to break whoever reads them: every reader refuses each in one line that names it, in bounded memory."""

import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from auditor.config import load
from auditor.config.litellm import convert
from auditor.config.yaml_source import read_text
from auditor.documents.jsonl import Record, Rows
from auditor.errors import AuditError
from auditor.export.inspect_reader import read_inspect_logs
from auditor.instrument import loaders
from auditor.peers.domains.pack import read_pack
from auditor.reviews.label_file import read_review_file
from biasmeter.commands.main import app
from replay.counterfactual.lexicon import read_lexicon
from replay.files.exchange_line import ExcludedRow, exchange_of
from replay.files.imports import read_rows
from replay.files.spend_log import line_of
from replay.files.trace_rows import line_of_observation, line_of_span

DEEP = b"[" * 200_000
#: Unpacks to a thousand times its size.
BOMB = gzip.compress(b'{"id": "' + b" " * (20 << 20) + b'"}\n', mtime=0)
#: Values that a field of text, of a number or of a list does not expect.
ODD = (
    "null",
    "[]",
    "{}",
    "3",
    "-1e308",
    "true",
    '"\\ud800"',
    '"\\u0000"',
    '[[["x"]]]',
    '{"a": {"b": null}}',
    '"' + "x" * 9000 + '"',
)

ROWS = {
    "empty": b"",
    "blank": b"\n \n",
    "bom": b"\xef\xbb\xbf",
    "deep": b'{"id": ' + DEEP,
    "deep object": b'{"a":' * 100_000,
    "not utf-8": b'{"id": "\xff\xfe"}\n',
    "not a number": b'{"id": NaN}\n',
    "infinite": b'{"id": 1e999}\n',
    "many digits": b'{"id": ' + b"9" * 6000 + b"}\n",
    "list": b"[1]\n",
    "null": b"null\n",
    "binary": bytes(range(256)),
    "cut off": gzip.compress(b'{"id": "a"}\n' * 999, mtime=0)[:-9],
    "damaged": gzip.compress(b'{"id": "a"}\n' * 999, mtime=0)[:20] + b"garbage" * 9,
    **{f"odd {number}": ("{" + ", ".join(f'"{name}": {value}' for name in (
        "id", "statement", "response", "deployment", "task", "sel", "elab", "label", "theme", "question", "choice",
        "messages", "request", "answer", "created_at", "startTime", "attributes", "spans", "error", "usage", "draw",
        "votes", "groups", "candidates", "decision", "custom_id", "model", "metadata", "tags", "at", "sex",
        "race_ethnicity",
    )) + "}\n").encode() for number, value in enumerate(ODD)},
}  # fmt: skip
TABLES = {
    "empty": b"",
    "header alone": b"id,statement,label,theme,question,decision\n",
    "open quote": b'id,statement,label,theme,question\n1,"a\n' + b"x\n" * 99,
    "after the quote": b'id,statement,label,theme,question\n1,"a"b,c,d,e\n',
    "more cells": b"id,statement,label,theme,question\n1,2,3,4,5,6\n",
    "not utf-8": b"id,statement,label,theme,question\n1,\xff,c,d,e\n",
    "half a character": b"id,statement,label,theme,question\n1,\xed\xa0\x80,c,d,e\n",
    "null characters": b"id,statement,label,theme,question\n\0,\0,\0,\0,\0\n",
    "many columns": b",".join(b"c%d" % n for n in range(50_000)) + b"\n1\n",
}
DOCUMENTS = {
    "aliases": b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + n, 98 + n, b", ".join([b"*%c" % (97 + n)] * 9)) for n in range(9)
    ),
    "itself": b"a: &a [*a]\n",
    "deep": b"a: " + b"[" * 5000,
    "deep blocks": b"".join(b" " * n + b"a:\n" for n in range(900)),
    "tag": b"a: !!python/object/apply:os.system [x]\n",
    "sixty": b"a: " + b":".join([b"59"] * 5000),
    "many digits": b"seed: " + b"9" * 6000,
    "not utf-8": b"a: \xff",
    "null character": b"a: \0",
    "half a character": b'a: "\\ud800"',
    "list": b"- a\n",
    "large": b"#" * (2 << 20),
    "merge": b"a: &a {b: c}\n<<: [*a, 3]\n",
    "key": b"? [a, b]\n: c\n",
}  # fmt: skip

HEADER = json.dumps({"eval": {"model": "m", "task": "t", "eval_id": "e"}}).encode()
SAMPLE: dict[str, Any] = {"id": 1, "epoch": 1, "input": "x", "output": {"choices": [{"message": {"content": "y"}}]}}


def archive(*members: tuple[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as file:
        for name, content in members:
            file.writestr(name, content)
    return made.getvalue()


def a_sample(**changes: object) -> bytes:
    return archive(("header.json", HEADER), ("samples/1.json", json.dumps(SAMPLE | changes).encode()))


def a_member(content: bytes) -> bytes:
    return archive(("header.json", HEADER), ("samples/1.json", content))


def repeated(count: int) -> bytes:
    """An archive whose table of contents names one member many times."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", HEADER)
        file.writestr("samples/0.json", b" " * (1 << 20))
        (first,) = [member for member in file.filelist if member.filename.startswith("samples")]
        for number in range(1, count):
            copy = zipfile.ZipInfo(f"samples/{number}.json")
            for field in ("compress_type", "header_offset", "CRC", "compress_size", "file_size", "flag_bits"):
                setattr(copy, field, getattr(first, field))
            file.filelist.append(copy)
            file.NameToInfo[copy.filename] = copy
    return made.getvalue()


LOGS = {
    "empty.eval": b"",
    "no archive.eval": b"PK\x03\x04" + bytes(99),
    "cut off.eval": a_sample()[:-30],
    "no header.eval": archive(("samples/1.json", b"{}")),
    "no samples.eval": archive(("header.json", HEADER)),
    "header list.eval": archive(("header.json", b"[]"), ("samples/1.json", b"{}")),
    "header of text.eval": archive(("header.json", b'{"eval": "x"}'), ("samples/1.json", b"{}")),
    "sample list.eval": archive(("header.json", HEADER), ("samples/1.json", b"[]")),
    "deep.eval": archive(("header.json", HEADER), ("samples/1.json", b'{"metadata": {"a": ' + DEEP)),
    "not utf-8.eval": archive(("header.json", HEADER), ("samples/1.json", b'{"id": "\xff"}')),
    "lzma.eval": archive(("header.json", HEADER), ("samples/1.json", b"{}"), kind=zipfile.ZIP_LZMA),
    "encrypted.eval": a_sample().replace(b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"),
    "zstandard.eval": a_sample().replace(b"\x08\x00", b"\x5d\x00"),
    "damaged.eval": archive(("header.json", HEADER), ("samples/1.json", bytes(range(256)) * 9)).replace(
        bytes(range(60, 80)), bytes(20)
    ),
    **{
        f"{name} {number}.eval": a_sample(**{name: value})
        for name, values in {
            "epoch": ("x", [1], 1.5, None), "input": (3, [3], [{"role": "user", "content": 3}]), "metadata": ([], "x"),
            "output": ([], {"choices": 3}, {"choices": [3]}, {"choices": [{"message": 3}]}),
            "error": ("x", [1]), "attachments": ([], {"a": 3}), "id": ([], {}),
        }.items()
        for number, value in enumerate(values)
    },
    "empty.json": b"",
    "deep.json": b'{"eval": {}, "samples": ' + DEEP,
    "no samples.json": b'{"eval": {}}',
    "odd samples.json": b'{"eval": {}, "samples": {"a": 1}}',
}  # fmt: skip

MAKERS: dict[str, Callable[[Record], object]] = {
    "biasmeter": exchange_of, "litellm": lambda row: exchange_of(line_of(row)),
    "langfuse": lambda row: exchange_of(line_of_observation(row)), "spans": lambda row: exchange_of(line_of_span(row)),
}  # fmt: skip


def imported(form: str) -> Callable[[Path], object]:
    def exchange_or_reason(row: Record) -> object:
        try:
            return MAKERS[form](row)
        except ExcludedRow as reason:
            return str(reason)

    return lambda path: list(read_rows(Rows(path), exchange_or_reason, lambda _: None))


def command(*arguments: str) -> Callable[[Path], object]:
    """Run a command on the file, which stands in the place of FILE."""

    def run(path: Path) -> object:
        written = [argument.replace("FILE", str(path)).replace("OUT", str(path.parent)) for argument in arguments]
        done = CliRunner().invoke(app, written)
        if isinstance(done.exception, SystemExit):
            assert done.exit_code in {1, 2}, done.output
            raise AuditError(done.output)
        if done.exception is not None:
            raise done.exception
        return done.output

    return run


ROW_READERS: dict[str, Callable[[Path], object]] = {
    "code": command("code", "FILE", "-o", "OUT/coded.jsonl"),
    "analyze": command("analyze", "FILE", "-o", "OUT/report", "--n-boot", "20"),
    "items": command("items", "FILE"),
    "decisions": command("decisions", "FILE", "-o", "OUT/decisions"),
    "peers": command("peers", "FILE", "--target", "a", "-o", "OUT/peers"),
    "bbq": command("import-responses", "FILE", "--format", "bbq", "-o", "OUT/rows.jsonl"),
    "decodingtrust": command("import-responses", "FILE", "--format", "decodingtrust", "-o", "OUT/rows.jsonl"),
    "export-inspect": command("export-inspect", "FILE", "-o", "OUT/logs"),
    "judges report": command("judges", "report", "FILE", "-o", "OUT/judges"),
    "pool": command("pool", "--statements", "FILE"),
    "statements": loaders.load,
    "labels": read_review_file,
    "questions": read_pack,
    **{f"exchanges of {form}": imported(form) for form in MAKERS},
}
DOCUMENT_READERS: dict[str, Callable[[Path], object]] = {
    "configuration": lambda path: load(path, {}),
    "scenario": command("simulate", "-c", "FILE", "--truth"),
    "import-config": lambda path: convert(read_text(path), str(path)),
    "lexicon": read_lexicon,
    "rule": command("decisions", "rows.jsonl", "--preset", "FILE", "-o", "OUT/decisions"),
}


@contextmanager
def refusing(path: Path, *, lines: int = 1) -> Iterator[None]:
    """Expect a refusal in one line that names the file, or nothing."""
    try:
        yield
    except AuditError as error:
        text = str(error).strip()
        assert text
        assert len(text.splitlines()) <= lines, text
        assert all(len(line) < 500 for line in text.splitlines())
        assert all(character.isprintable() or character == "\n" for character in text), text
        assert str(path) in text or "row" in text, text


@contextmanager
def in_bounded_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 << 20


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("reader", ROW_READERS)
def test_rows(tmp_path: Path, reader: str) -> None:
    for number, content in enumerate(ROWS.values()):
        path = write(tmp_path, f"rows{number}.jsonl", content)
        with refusing(path):
            ROW_READERS[reader](path)


@pytest.mark.parametrize("reader", ["decisions", "statements", "labels", "questions", "exchanges of litellm"])
def test_tables(tmp_path: Path, reader: str) -> None:
    for number, content in enumerate(TABLES.values()):
        path = write(tmp_path, f"rows{number}.csv", content)
        with refusing(path):
            ROW_READERS[reader](path)


@pytest.mark.parametrize("reader", DOCUMENT_READERS)
def test_documents(tmp_path: Path, reader: str) -> None:
    for number, content in enumerate(DOCUMENTS.values()):
        path = write(tmp_path, f"rows{number}.yaml", content)
        with refusing(path, lines=21):  # a line for each problem
            DOCUMENT_READERS[reader](path)


@pytest.mark.parametrize("name", LOGS)
def test_logs(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, LOGS[name])
    with refusing(path), pytest.raises(AuditError) as refused:
        list(read_inspect_logs(path))
    with refusing(path):
        raise refused.value


BOMBS: dict[str, tuple[Callable[[], bytes], Callable[[Path], object]]] = {
    "rows.jsonl": (lambda: BOMB, ROW_READERS["code"]),
    "table.csv": (lambda: gzip.compress(b"id,statement\n1," + b" " * (20 << 20), mtime=0), ROW_READERS["statements"]),
    "exchanges.csv": (lambda: gzip.compress(b"id,b\n1," + b" " * (20 << 20), mtime=0), imported("litellm")),
    "page.json": (lambda: gzip.compress(b'[{"id": "' + b" " * (20 << 20), mtime=0), imported("langfuse")),
    "log.json": (lambda: BOMB, lambda path: list(read_inspect_logs(path))),
    "member.eval": (lambda: a_member(b" " * (20 << 20)), lambda path: list(read_inspect_logs(path))),
    "large.eval": (lambda: a_member(b" " * (65 << 20)), lambda path: list(read_inspect_logs(path))),
    "repeated.eval": (lambda: repeated(200), lambda path: list(read_inspect_logs(path))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_far_more_is_refused_in_bounded_memory(tmp_path: Path, name: str) -> None:
    content, read = BOMBS[name]
    path = write(tmp_path, name, content())
    with (
        in_bounded_memory(),
        pytest.raises(AuditError, match=r"unpacks to more than 250 times its size|is larger than"),
    ):
        read(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(99) + b"PAR1"])
def test_columns(tmp_path: Path, content: bytes) -> None:
    day = tmp_path / "codings" / "day=2026-03-01"
    day.mkdir(parents=True)
    (day / "codings.parquet").write_bytes(content)
    with refusing(tmp_path):
        command("analyze", "FILE", "-o", "OUT/report")(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "plan", "-c", "CONFIG", "--components", "FILE"),
        ("report", "-c", "CONFIG", "--replay", "FILE", "-o", "OUT/report"),
    ],
)
def test_json_documents(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    config = tmp_path / "biasmeter.yaml"
    config.write_text(
        "data_dir: data\ndeployments: [{name: a, base_url: 'http://127.0.0.1:9', model: m}]\n"
        "routes: [{model: m, deployments: [a]}]\nstore: {url: 'postgresql://u@127.0.0.1:1/d'}\n"
    )
    arguments = tuple(argument.replace("CONFIG", str(config)) for argument in arguments)
    for number, content in enumerate(ROWS.values()):
        path = write(tmp_path, f"rows{number}.json", content)
        with refusing(path):
            command(*arguments)(path)
