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
from typing import Any, Final, TypeVar

import msgspec

from auditor.coding.responses import FIELDS
from auditor.config.values import quote
from auditor.documents.input_files import check_unpacked, read_document, require_file
from auditor.documents.jsonl import Record
from auditor.errors import InputError
from auditor.export.inspect_writer import ROW

#: Endings of the names of logs.
LOGS: Final = (".eval", ".json")
_HEADER: Final = "header.json"
_SAMPLES: Final = "samples/"
_ZSTANDARD: Final = 93
_COMPRESSIONS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, _ZSTANDARD})
#: The flag of an encrypted member.
_ENCRYPTED: Final = 1
#: Bytes of a sample with its events.
_LARGEST_MEMBER: Final = 64 << 20
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
    for spec, sample in _archive(path) if path.suffix == ".eval" else _document(path):
        count += 1
        yield _row(spec, sample)
    if count == 0:
        raise InputError(f"{path}: holds no samples")


class _Part(msgspec.Struct):
    """A part of a message."""

    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    role: str | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    stop_reason: str | None = None


class _Output(msgspec.Struct):
    choices: list[_Choice] | None = None
    completion: str | None = None


class _Failure(msgspec.Struct):
    message: str | None = None


class _Sample(msgspec.Struct):
    """What is read of a sample; its events, which are most of it, are skipped."""

    id: str | int | None = None
    epoch: int = 1
    input: str | list[_Message] | None = None
    metadata: dict[str, Any] | None = None
    output: _Output | None = None
    error: _Failure | None = None
    attachments: dict[str, str] | None = None


class _Header(msgspec.Struct):
    eval: dict[str, Any]


class _Log(_Header):
    samples: list[_Sample]


_T = TypeVar("_T")


def _decode(content: bytes, kind: type[_T], place: str) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{place}: is not a log of Inspect: {' '.join(str(error).split())}") from None


def _document(path: Path) -> Iterator[tuple[Mapping[str, Any], _Sample]]:
    log = _decode(read_document(path), _Log, str(path))
    for sample in log.samples:
        yield log.eval, sample


def _archive(path: Path) -> Iterator[tuple[Mapping[str, Any], _Sample]]:
    require_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            # The sizes are those that the archive's table of contents names; no member gives more.
            members = {member.filename: member for member in archive.infolist()}
            names = sorted(name for name in members if name.startswith(_SAMPLES))
            if _HEADER not in members:
                raise InputError(f"{path}: has no {_HEADER}: the evaluation has not ended, or it is not a log")
            unpacked = sum(members[name].file_size for name in (_HEADER, *names))
            check_unpacked(unpacked, path.stat().st_size, str(path))
            header = _decode(_member(archive, members[_HEADER], path), _Header, f"{path}: {_HEADER}")
            for name in names:
                yield header.eval, _decode(_member(archive, members[name], path), _Sample, f"{path}: {quote(name)}")
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path}: is not an archive that can be read: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> bytes:
    """Return a member; Python before 3.14 does not decompress Zstandard.

    Raises
    ------
    InputError
        It is too large, encrypted, or compressed in another way than Inspect's.
    ModuleNotFoundError
        The member is compressed with Zstandard, and pyarrow is not installed.
    """
    place = f"{path}: {quote(member.filename)}"
    if member.file_size > _LARGEST_MEMBER:
        raise InputError(f"{place}: is larger than {_LARGEST_MEMBER >> 20} MiB")
    if member.flag_bits & _ENCRYPTED or member.compress_type not in _COMPRESSIONS:
        raise InputError(f"{place}: is encrypted, or compressed in another way than Inspect's logs are")
    if member.compress_type != _ZSTANDARD:
        with archive.open(member) as file:
            return file.read(member.file_size)  # with a number it unpacks no more than these bytes
    import pyarrow as pa  # noqa: PLC0415 -- part of the extra frames

    assert archive.fp is not None
    archive.fp.seek(member.header_offset)
    name_size, extra_size = struct.unpack_from("<HH", archive.fp.read(_LOCAL_HEADER), 26)
    archive.fp.seek(name_size + extra_size, 1)
    packed = archive.fp.read(member.compress_size)
    content: bytes = pa.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    return content


def _row(spec: Mapping[str, Any], sample: _Sample) -> Record:
    metadata = sample.metadata or {}
    output = sample.output or _Output()
    choice = next(iter(output.choices or ()), None)
    message = choice.message if choice is not None else None
    text = _attached(sample, (_text(message.content) if message is not None else "") or output.completion or "")
    if isinstance(metadata.get(ROW), dict):
        return {**metadata[ROW], **({"response": text} if choice is not None else {})}
    stop = choice.stop_reason if choice is not None else None
    row: Record = {
        "task": "Explain",
        **{name: metadata[name] for name in FIELDS if metadata.get(name) is not None},
        "id": f"{spec.get('eval_id') or spec.get('task_id')}/{sample.id}/{sample.epoch}",
        "deployment": spec.get("model"),
        "response": text if choice is not None else None,
        "finish_reason": _STOPS.get(str(stop), stop),
        "prompt": _prompt(sample),
        "error": sample.error.message if sample.error is not None else None,
        "draw": sample.epoch - 1,
        "sample_id": sample.id,
        "inspect_task": spec.get("task"),
    }
    return {name: value for name, value in row.items() if value is not None}


def _prompt(sample: _Sample) -> str | None:
    prompt = sample.input
    if isinstance(prompt, list):
        questions = [message for message in prompt if message.role == "user"]
        prompt = _text(questions[-1].content) if questions else None
    return None if prompt is None else _attached(sample, prompt)


def _text(content: str | list[_Part] | None) -> str:
    return content if isinstance(content, str) else "".join(part.text or "" for part in content or ())


def _attached(sample: _Sample, text: str) -> str:
    key = text.removeprefix(_ATTACHMENT)
    return (sample.attachments or {}).get(key, text) if key != text else text
