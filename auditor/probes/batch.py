"""Write the calls of a plan as files for OpenAI's batch API, and store the answers of its output files.

A batch costs half the price and takes up to a day (https://platform.openai.com/docs/guides/batch). ``custom_id`` is the
ref of a call. An answer becomes an exchange of origin ``probe``, as if the gateway had sent it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncEngine

from auditor.access import pinned_model
from auditor.config import Config, Deployment
from auditor.config.routes import ANY_MODEL
from auditor.documents.jsonl import BadRow, Record, Rows, writing
from auditor.domain.exchange import Capture, Exchange, Origin, Outcome
from auditor.domain.ids import new_id
from auditor.errors import UsageError
from auditor.instrument.asking import ask
from auditor.instrument.pool import statement_of
from auditor.instrument.templates import find_template
from auditor.probes.plan import Planned
from auditor.probes.run import answered_calls, store_plan
from auditor.probes.send import is_block
from auditor.store.engine import transaction
from auditor.store.exchanges import add_exchanges
from auditor.store.plans import StoredCall, count_as_answered, read_calls

_ENDPOINT: Final = "chat/completions"
#: The most requests that the API takes in one file.
LARGEST_BATCH: Final = 50_000
#: Answers that are stored in one transaction.
_ROWS: Final = 500
#: Exchanges without a configuration of ours.
_ELSEWHERE: Final = "batch"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchFile:
    """A file to upload."""

    path: Path
    deployment: str
    calls: int


async def write_batches(
    engine: AsyncEngine, config: Config, planned: Planned, deployments: Sequence[Deployment], folder: Path
) -> tuple[BatchFile, ...]:
    """Store a plan, and write its unanswered calls, in files of at most `LARGEST_BATCH` calls.

    Raises
    ------
    UsageError
        A deployment names no model.
    InputError
        A statement is stored with another text, or a file cannot be written.
    StoreUnavailable
        The store does not answer.
    """
    # A file goes to the provider, past the gateway, so the provider's name of the model counts.
    models = {deployment.name: deployment.model or pinned_model(config, deployment) for deployment in deployments}
    await store_plan(engine, planned, models, datetime.now(UTC))
    answered = await answered_calls(engine, planned, deployments)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, model in models.items():
        lines = _lines(planned, name, model, answered[name])
        number = 1
        while chunk := list(islice(lines, LARGEST_BATCH)):
            path = folder / f"{planned.plan.id}.{name}.{number}.jsonl"
            with writing(path) as write:
                for line in chunk:
                    write(line)
            written.append(BatchFile(path=path, deployment=name, calls=len(chunk)))
            number += 1
    return tuple(written)


def _lines(planned: Planned, deployment: str, model: str, answered: set[int]) -> Iterator[Record]:
    for call in planned.calls(deployment):
        if call.position not in answered:
            messages = [
                {"role": message.role, "content": message.content} for message in planned.item(call.position).messages
            ]
            yield {
                "custom_id": call.ref,
                "method": "POST",
                "url": f"/v1/{_ENDPOINT}",
                "body": {"model": model, "messages": messages},
            }


@dataclass(kw_only=True, slots=True)
class BatchCounts:
    """What became of the lines of an output file."""

    stored: int = 0
    known: int = 0  #: answers of calls that had one already
    failed: Counter[str] = field(default_factory=Counter)  #: not stored, so the call can be asked again; by reason
    skipped: int = 0  #: bad rows
    complaints: list[str] = field(default_factory=list)


async def import_batch(
    engine: AsyncEngine, config: Config, path: Path, *, skip_bad: bool, on_bytes: Callable[[int], None]
) -> BatchCounts:
    """Store the answers of an output or error file. An answer that is stored already is not stored again.

    Raises
    ------
    InputError
        A row is bad and bad rows are not skipped, or the file cannot be read.
    StoreUnavailable
        The store does not answer.
    """
    counts, models = (
        BatchCounts(),
        {deployment.name: _route_of(config, deployment) for deployment in config.deployments},
    )
    rows = Rows(path, skip_bad=skip_bad, on_bytes=on_bytes)
    lines = rows.read(_output_line)
    while chunk := list(islice(lines, _ROWS)):
        async with transaction(engine) as connection:
            calls = await read_calls(connection, [line.custom_id for _, line in chunk])
        answers: dict[str, Exchange] = {}
        for number, line in chunk:
            call = calls.get(line.custom_id)
            if call is None:
                rows.complain(number, f"custom_id {line.custom_id[:80]!r} is not a call of a stored plan")
            elif call.answered or line.custom_id in answers:
                counts.known += 1
            elif isinstance(made := _exchange(line, call, models), str):
                counts.failed[made] += 1
            else:
                answers[line.custom_id] = made
        await add_exchanges(engine, list(answers.values()))
        async with transaction(engine) as connection:
            new = await count_as_answered(connection, {ref: answer.id for ref, answer in answers.items()})
        counts.stored += len(new)
        counts.known += len(answers) - len(new)
    counts.skipped, counts.complaints = rows.skipped, rows.complaints
    return counts


def _route_of(config: Config, deployment: Deployment) -> str:
    """Return the model whose route a call would have taken through the gateway."""
    try:
        return pinned_model(config, deployment)
    except UsageError:
        return ANY_MODEL


class _Answer(msgspec.Struct):
    status_code: int
    body: Any = None


class _OutputLine(msgspec.Struct):
    custom_id: str
    response: _Answer | None = None
    error: Any = None


def _output_line(record: Record) -> _OutputLine:
    try:
        return msgspec.convert(record, _OutputLine)
    except msgspec.ValidationError as error:
        raise BadRow(f"is not a line of a batch's output: {error}") from None


def _exchange(line: _OutputLine, call: StoredCall, models: Mapping[str, str]) -> Exchange | str:
    """Return the exchange of an answer, or why it does not answer the call."""
    answer = line.response
    if answer is None:
        code = line.error.get("code") if isinstance(line.error, dict) else None
        return str(code or "no answer")
    body = answer.body if isinstance(answer.body, dict) else {}
    blocked = answer.status_code != 200 and is_block(body.get("error"))
    if answer.status_code != 200 and not blocked:
        return f"HTTP {answer.status_code}"
    content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    if choice is None and not blocked:
        return "no choice in the answer"
    finish = (choice or {}).get("finish_reason")
    created = body.get("created")
    at_us = int(created * 1e6) if isinstance(created, int | float) and created > 0 else _now_us()
    reported = body.get("usage")
    usage: Mapping[str, Any] = reported if isinstance(reported, dict) else {}
    request = _request(call, models.get(call.deployment, ANY_MODEL))
    digest = int.from_bytes(blake2b(line.custom_id.encode(), digest_size=16).digest(), "big")
    return Exchange(
        id=new_id(min(at_us, _now_us()) // 1000, lambda bits: digest & ((1 << bits) - 1)),
        at_us=min(at_us, _now_us()),
        origin=Origin.PROBE,
        endpoint=_ENDPOINT,
        route=models.get(call.deployment, ANY_MODEL),
        deployment=call.deployment,
        model=models.get(call.deployment, ANY_MODEL),
        status=answer.status_code,
        outcome=Outcome.FAILED if blocked else Outcome.COMPLETE,
        stream=False,
        attempts=1,
        capture=Capture.FULL,
        inclusion=1.0,
        config_hash=_ELSEWHERE,
        request_id=str(body.get("id") or line.custom_id),
        tags={},
        ref=line.custom_id,
        error_type="content_filter" if blocked else None,
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        request_bytes=len(request),
        response_bytes=len(content),
        request=request,
        response=content,
    )


def _request(call: StoredCall, model: str) -> bytes:
    """Return the body of the call as it was planned."""
    messages = ask(statement_of(dict(call.statement)), find_template(call.template_id))
    entries = [{"role": message.role, "content": message.content} for message in messages]
    return json.dumps({"model": model, "messages": entries}, ensure_ascii=False).encode()


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    count = usage.get(name)
    return count if isinstance(count, int) and count >= 0 else None


def _now_us() -> int:
    return int(datetime.now(UTC).timestamp() * 1e6)
