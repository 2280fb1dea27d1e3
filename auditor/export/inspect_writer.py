"""Write coded rows as logs of Inspect AI, one ``.eval`` archive for each deployment; the same rows give the same bytes.

The model is the deployment. A sample's scores are its labels, the log's metrics those of ``biasmeter analyze`` of the
same rows, with their bounds as parameters. The row itself is kept in the metadata, so that nothing is lost.
"""

import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.codec import canonical_bytes, decode
from auditor.documents.estimates import EstimateEntry
from auditor.documents.jsonl import Record, Records
from auditor.documents.output import write_files
from auditor.estimation.analysis import Options, analyse, read_tallies

#: Where a sample's metadata keep its coded row.
ROW: Final = "biasmeter"
_TASK: Final = "biasmeter"
#: A log has a time; rows without one have this.
_NO_TIME: Final = "1980-01-01T00:00:00+00:00"
_LAYERS: Final = {"selection": ("sel", "sel_reason"), "elaboration": ("elab", "elab_reason")}


def write_inspect_logs(rows: Iterable[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write a log for each deployment, and return their paths. The rows are held in memory.

    Parameters
    ----------
    rows
        Rows of ``coded.jsonl``.

    Raises
    ------
    InputError
        A row cannot be counted.
    UsageError
        The folder cannot be written to.
    """
    coded = [dict(row) for row in rows]
    options = Options(by=("deployment",))
    content = canonical_bytes(analyse(read_tallies(Records(coded), options), options))
    analysis = decode(content, AnalysisDocument, "analysis.json")  # with the digits of the file
    written = []
    for deployment in sorted({str(row["deployment"]) for row in coded}):
        rows_of_deployment = [row for row in coded if row["deployment"] == deployment]
        scores = [
            _score(group.rubric, group.n, group.metrics)
            for group in analysis.groups
            if group.by.get("deployment") == deployment
        ]
        name, log = _log(deployment, rows_of_deployment, scores)
        write_files(folder, {name: log})
        written.append(folder / name)
    return written


def _score(rubric: str, n: int, metrics: Mapping[str, object]) -> Record:
    """Return the estimates of one rubric; a measure without a value is left out."""
    known = {name: entry for name, entry in metrics.items() if isinstance(entry, EstimateEntry)}
    return {
        "name": rubric,
        "scorer": _TASK,
        "scored_samples": n,
        "params": {},
        "metrics": {
            name: {
                "name": name,
                "value": entry.value,
                "params": {
                    "low": entry.low,
                    "high": entry.high,
                    "base": entry.base,
                    "n": entry.n,
                    "method": entry.method,
                },
            }
            for name, entry in known.items()
        },
    }


def _log(deployment: str, rows: Sequence[Record], scores: Sequence[Record]) -> tuple[str, bytes]:
    """Return the name and the content of a log."""
    samples = [_sample(deployment, row) for row in rows]
    times = sorted(str(row["at"]) for row in rows if row.get("at"))
    began, ended = (times[0], times[-1]) if times else (_NO_TIME, _NO_TIME)
    digest = blake2b(_json([deployment, samples]), digest_size=11).hexdigest()
    header = {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": digest,
            "run_id": digest,
            "created": _moment(began).isoformat(timespec="seconds"),
            "task": _TASK,
            "task_id": digest,
            "task_version": 0,
            "task_attribs": {},
            "task_args": {},
            "dataset": {"name": "coded", "samples": len(rows), "shuffled": False},
            "model": deployment,
            "model_args": {},
            "config": {"epochs": 1},
            "scorers": [{"name": layer, "options": {}, "metrics": [], "metadata": {}} for layer in _LAYERS],
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": len(rows), "completed_samples": len(rows), "scores": list(scores)},
        "stats": {
            "started_at": _moment(began).isoformat(),
            "completed_at": _moment(ended).isoformat(),
            "model_usage": {},
        },
    }
    summaries = [
        {name: sample[name] for name in ("id", "epoch", "input", "target", "scores")} | {"completed": True}
        for sample in samples
    ]
    members = {
        "_journal/start.json": {name: header[name] for name in ("version", "eval", "plan")},
        **{f"samples/{place:08}_epoch_1.json": sample for place, sample in enumerate(samples, start=1)},
        "summaries.json": summaries,
        "header.json": header,
    }
    stamp = _moment(began).strftime("%Y-%m-%dT%H-%M-%S")
    return f"{stamp}+00-00_{_TASK}_{digest}.eval", _archive(members)


def _sample(deployment: str, row: Record) -> Record:
    text, prompt = str(row.get("response") or ""), str(row.get("prompt") or row.get("statement") or "")
    question = {"role": "user", "content": prompt}
    answer = {"role": "assistant", "content": text, "source": "generate", "model": deployment}
    stop = "content_filter" if row.get("finish_reason") == "content_filter" else "stop"
    scores = {layer: _label(row, label, reason) for layer, (label, reason) in _LAYERS.items()}
    scores["elaboration"]["metadata"] = {"votes": row.get("votes") or []}
    return {
        "id": str(row["id"]),
        "epoch": 1,
        "input": prompt,
        "target": "",
        "messages": [question, answer],
        "output": {
            "model": deployment,
            "choices": [{"message": answer, "stop_reason": stop}] if "response" in row else [],
            "completion": text,
        },
        "scores": scores,
        "metadata": {ROW: row},
        "store": {},
        "events": [],
        "model_usage": {},
        "attachments": {},
    }


def _label(row: Record, label: str, reason: str) -> Record:
    return {"value": row[label], **({"explanation": row[reason]} if row.get(reason) else {})}


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _archive(members: Mapping[str, object]) -> bytes:
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            # A member without a time of its own has that of 1980.
            archive.writestr(zipfile.ZipInfo(name), _json(value), zipfile.ZIP_DEFLATED)
    return content.getvalue()


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
