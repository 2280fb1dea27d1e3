"""Summarize the documents of commands by keys and numbers, so that a small file shows whether a number has changed.

Words are only counted: a better sentence must not fail a test. Numbers are compared with a tolerance because their last
digits depend on the processor and the linear algebra library.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, chdir
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from support.documents.replay_documents import comparison
from typer.testing import CliRunner

from auditor.errors import AuditError
from biasmeter.commands.main import app

from .cases import OFFLINE, PLANS
from .inputs import write_inputs

#: Path of keys -> how often each code stands there, and under `NUMBERS` the numbers: how many, and two sums.
Summary = dict[str, dict[str, Any]]

NUMBERS = "#"
EXPECTED = Path(__file__).with_name("expected")
TOLERANCE = 1e-8
#: A tail probability computed as one minus a number near one has no correct digit below this.
NOISE = 1e-10
#: The summarized cases of `OFFLINE`, with the document that each one writes; of `PLANS` the first; and a replay.
WRITTEN = {
    "analyze-reviews": "analysis.json",
    "analyze-factorial": "analysis.json",
    "peers-options": "peers.json",
    "pool-own": "pool.json",
}
CASES = (*WRITTEN, "plan", "replay")
#: The pages take most of the time, and have tests of their own.
_PAGES = ("analysis.render_analysis", "peers.render_peers")
#: Keys whose text changes with a release, or with the wording of statements and templates.
_UNSTABLE = ("version", "plan")


def summaries() -> dict[str, Summary]:
    """Run the commands on the fixed inputs, and summarize the documents that they write."""
    documents: dict[str, object] = {"replay": comparison(statements=16)}
    commands = {case: arguments for case, arguments, _ in OFFLINE if case in WRITTEN} | {"plan": PLANS[0]}
    with TemporaryDirectory(prefix="golden-") as folder, chdir(folder), ExitStack() as stack:
        for page in _PAGES:
            stack.enter_context(patch(f"auditor.report.{page}", return_value=b""))
        write_inputs(Path(), 4000, 4100)
        for case, arguments in commands.items():
            out = Path(case)
            told = [case if name == "out" else name for name in arguments]
            done = CliRunner().invoke(app, told)
            # A pool with a failed check ends the command after the document is written.
            assert isinstance(done.exception, AuditError | None), (case, done.output)
            documents[case] = json.loads((out / WRITTEN[case]).read_text() if case in WRITTEN else done.stdout)
    return {case: summary(documents[case]) for case in CASES}


def summary(document: object) -> Summary:
    """Return the keys of a document with the codes and numbers below each path of keys.

    Of one number it keeps the number. Of more it keeps how many there are, the sum of their sizes, and the sum of the
    numbers, each multiplied by its place, which notices signs and exchanged numbers.
    """
    codes: Summary = defaultdict(lambda: defaultdict(int))
    numbers: dict[str, list[float]] = defaultdict(list)
    for path, value in _leaves(document, ""):
        if isinstance(value, int | float) and not isinstance(value, bool):
            numbers[path].append(value)
        else:
            codes[path][_code(path, value)] += 1
    return {
        path: dict(codes.get(path, {})) | ({NUMBERS: _condensed(numbers[path])} if path in numbers else {})
        for path in sorted(codes.keys() | numbers.keys())
    }


def deviations(expected: Summary, found: Summary) -> Iterator[str]:
    """Yield a line for every path that only one summary has, or that has other codes or numbers."""
    for path in sorted(expected.keys() | found.keys()):
        old, new = expected.get(path), found.get(path)
        if old is None or new is None or not _agree(old, new):
            yield f"{path}: expected {old}, found {new}"


def read_expected(case: str) -> Summary:
    """Return the committed summary of a case."""
    found: Summary = json.loads((EXPECTED / f"{case}.json").read_text())
    return found


def write_expected() -> None:
    """Write the summaries of this checkout, a line for each path."""
    EXPECTED.mkdir(exist_ok=True)
    for case, found in summaries().items():
        lines = (
            json.dumps({path: entry}, sort_keys=True, separators=(",", ":"))[1:-1] for path, entry in found.items()
        )
        (EXPECTED / f"{case}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        for below in value:
            yield from _leaves(below, f"{path}[]")
    else:
        yield path, value


def _code(path: str, value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    return "words" if " " in value or path in _UNSTABLE else f"={value}"


def _condensed(numbers: list[float]) -> list[float]:
    if len(numbers) == 1:
        return [_rounded(numbers[0])]
    placed = sum(place * number for place, number in enumerate(numbers, start=1))
    return [len(numbers), _rounded(sum(map(abs, numbers))), _rounded(placed)]


def _rounded(number: float) -> float:
    return float(f"{number:.9g}")


def _agree(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if old.keys() != new.keys() or any(old[key] != new[key] for key in old if key != NUMBERS):
        return False
    first, second = (entry.get(NUMBERS, []) for entry in (old, new))
    if len(first) != len(second):
        return False
    if len(first) < len(("n", "sizes", "placed")):
        return all(isclose(a, b, rel_tol=TOLERANCE, abs_tol=NOISE) for a, b in zip(first, second, strict=True))
    n, sizes, placed = first
    within = TOLERANCE * sizes + NOISE
    # The placed numbers may cancel, so their sum alone says nothing about the digits that can be expected.
    return bool(second[0] == n and abs(second[1] - sizes) <= within and abs(second[2] - placed) <= n * within)
