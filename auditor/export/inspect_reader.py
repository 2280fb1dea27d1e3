"""Read logs of Inspect AI (https://inspect.aisi.org.uk/eval-logs.html) as rows of responses or of coded responses.

Both forms are read: ``.json``, and ``.eval``, a ZIP archive whose members may be compressed with Zstandard. A sample
that ``inspect_writer`` has written gives the row from which it was made. Any other sample becomes a response: fields of
its metadata that ``responses.jsonl`` has are taken, such as ``statement`` and ``task``.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from auditor.coding.responses import FIELDS
from auditor.documents.jsonl import Record
from auditor.errors import InputError
from auditor.export.inspect_writer import ROW

#: Endings of the names of logs.
LOGS: Final = (".eval", ".json")
_SAMPLES: Final = "samples/"
_ZSTANDARD: Final = 93
#: Bytes of the fixed part of the header in front of a member of a ZIP archive.
_LOCAL_HEADER: Final = 30
#: Inspect's reasons to stop, by ours.
_STOPS: Final = {"max_tokens": "length", "model_length": "length"}
#: How Inspect writes a text that it keeps apart.
_ATTACHMENT: Final = "attachment://"


def read_inspect_logs(path: Path) -> Iterator[Record]:
    """Yield a row for each sample of a log, or of all logs in a folder and below.

    Yields
    ------
    dict
        A row of ``responses.jsonl``; of ``coded.jsonl`` if Biasmeter has written the log. The deployment is the model;
        ``draw`` is the epoch less one; a failed sample has an ``error``.

    Raises
    ------
    InputError
        A file cannot be read, is no log, or holds no samples.
    """
    if not path.is_dir():
        yield from _rows(path)
        return
    logs = sorted(file for file in path.rglob("*") if file.name.endswith(LOGS) and file.is_file())
    if not logs:
        raise InputError(f"{path}: holds no logs (*.eval, *.json)")
    for log in logs:
        yield from _rows(log)


def _rows(path: Path) -> Iterator[Record]:
    count = 0
    for header, sample in _archive(path) if path.suffix == ".eval" else _document(path):
        if not isinstance(header.get("eval"), dict) or not isinstance(sample, dict):
            raise InputError(f"{path}: is not a log of Inspect")
        count += 1
        yield _row(header["eval"], sample)
    if count == 0:
        raise InputError(f"{path}: holds no samples")


def _document(path: Path) -> Iterator[tuple[Mapping[str, Any], Any]]:
    try:
        log = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{path}: is not JSON: {' '.join(str(error).split())}") from None
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list):
        raise InputError(f"{path}: is not a log of Inspect with samples")
    for sample in samples:
        yield log, sample


def _archive(path: Path) -> Iterator[tuple[Mapping[str, Any], Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if name.startswith(_SAMPLES))
            header = msgspec.json.decode(_member(archive, "header.json"))
            for name in names:
                yield header, msgspec.json.decode(_member(archive, name))
    except KeyError:
        raise InputError(f"{path}: has no header.json: the evaluation has not ended, or it is not a log") from None
    except (zipfile.BadZipFile, zlib.error, msgspec.DecodeError, struct.error, RecursionError) as error:
        raise InputError(f"{path}: is not a log of Inspect: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return a member; Python before 3.14 does not decompress Zstandard.

    Raises
    ------
    ModuleNotFoundError
        The member is compressed with Zstandard, and pyarrow is not installed.
    """
    member = archive.getinfo(name)
    if member.compress_type != _ZSTANDARD:
        return archive.read(member)
    import pyarrow as pa  # noqa: PLC0415 -- part of the extra frames

    assert archive.fp is not None
    archive.fp.seek(member.header_offset)
    name_size, extra_size = struct.unpack_from("<HH", archive.fp.read(_LOCAL_HEADER), 26)
    archive.fp.seek(name_size + extra_size, 1)
    packed = archive.fp.read(member.compress_size)
    content: bytes = pa.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    return content


def _row(spec: Mapping[str, Any], sample: Mapping[str, Any]) -> Record:
    metadata = sample.get("metadata") or {}
    output = sample.get("output") or {}
    choice: Mapping[str, Any] = next(iter(output.get("choices") or ()), {})
    text = _attached(sample, _text((choice.get("message") or {}).get("content")) or output.get("completion") or "")
    if isinstance(metadata.get(ROW), dict):
        return {**metadata[ROW], **({"response": text} if choice else {})}
    stop = choice.get("stop_reason")
    error = sample.get("error")
    row: Record = {
        "task": "Explain",
        **{name: metadata[name] for name in FIELDS if metadata.get(name) is not None},
        "id": f"{spec.get('eval_id') or spec.get('task_id')}/{sample.get('id')}/{sample.get('epoch', 1)}",
        "deployment": spec.get("model"),
        "response": text if choice else None,
        "finish_reason": _STOPS.get(str(stop), stop),
        "prompt": _prompt(sample),
        "error": error.get("message") if isinstance(error, dict) else None,
        "draw": int(sample.get("epoch", 1)) - 1,
        "sample_id": sample.get("id"),
        "inspect_task": spec.get("task"),
    }
    return {name: value for name, value in row.items() if value is not None}


def _prompt(sample: Mapping[str, Any]) -> str | None:
    prompt = sample.get("input")
    if isinstance(prompt, list):
        questions = [message for message in prompt if isinstance(message, dict) and message.get("role") == "user"]
        prompt = _text(questions[-1].get("content")) if questions else None
    return _attached(sample, prompt) if isinstance(prompt, str) else None


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _attached(sample: Mapping[str, Any], text: str) -> str:
    key = text.removeprefix(_ATTACHMENT)
    attachment = (sample.get("attachments") or {}).get(key) if key != text else None
    return attachment if isinstance(attachment, str) else text
