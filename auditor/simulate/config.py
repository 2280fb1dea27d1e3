"""Read a scenario from YAML, the shipped one or a file; errors name file and line.

``model`` defines the allowed content. The YAML reader is that of the configuration (``auditor.config``).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from auditor.config.problems import Problem, to_error
from auditor.config.values import quote
from auditor.config.yaml_source import YamlDocument, parse, read_text
from auditor.documents.input_files import read_document
from auditor.domain.statement import Statement
from auditor.errors import ConfigError, InputError
from auditor.instrument.pool import DEFAULT_POOL, SHIPPED_POOLS, shipped_pool
from auditor.simulate.model import Scenario
from auditor.simulate.recognise import KnownStatements

DEFAULT_NAME: Final = "the built-in scenario"

_SCENARIO: Final = TypeAdapter(Scenario)
_STATEMENT: Final = TypeAdapter(Statement)
_MESSAGES: Final = {
    "unexpected_keyword_argument": "unknown key",
    "missing": "is missing",
    "missing_argument": "is missing",
    "too_short": "needs at least one entry",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedScenario:
    """A scenario, the name of its source, and its statements (none: any statement)."""

    scenario: Scenario
    source: str
    statements: tuple[Statement, ...] = ()

    @property
    def pool(self) -> KnownStatements:
        """The statements for the recogniser: the scenario's own, otherwise the shipped pools, the default one first."""
        names = sorted(SHIPPED_POOLS, key=lambda name: name != DEFAULT_POOL)
        return KnownStatements(self.statements or [statement for name in names for statement in shipped_pool(name)])

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The statements' texts; ``None`` if there is no pool."""
        return tuple(statement.statement for statement in self.statements) or None


def default_text() -> str:
    """Return the built-in scenario as YAML."""
    return (resources.files("auditor.simulate") / "default.yaml").read_text(encoding="utf-8")


def load(path: Path | None = None) -> LoadedScenario:
    """Read a scenario file, or the built-in scenario if no file is named.

    Raises
    ------
    ConfigError
        The configuration has problems; the message has one line for each, with file and line.
    InputError
        The statement pool cannot be read.
    """
    if path is None:
        return LoadedScenario(scenario=loads(default_text(), DEFAULT_NAME), source=DEFAULT_NAME)
    scenario = loads(read_text(path), str(path))
    statements: tuple[Statement, ...] = ()
    if scenario.statements is not None:
        statements = tuple(read_statements(path.parent / scenario.statements))
    return LoadedScenario(scenario=scenario, source=str(path), statements=statements)


def loads(text: str, source: str) -> Scenario:
    """Read a scenario from YAML text.

    Raises
    ------
    ConfigError
        In the same cases as ``load``.
    """
    if not text.strip():
        raise ConfigError(f"{source}:1: the file is empty; a scenario needs at least deployments")
    document = parse(text, source)
    if document.problems:
        raise to_error(document.problems, source)
    try:
        return _SCENARIO.validate_python(document.data)
    except ValidationError as error:
        raise to_error(_problems(document, error), source) from None


def _problems(document: YamlDocument, error: ValidationError) -> Iterator[Problem]:
    every = error.errors(include_url=False, include_context=False)
    # A list whose only entry is wrong is also reported as too short; the second error follows from the first.
    for entry in [entry for entry in every if entry["type"] != "too_short" or len(every) == 1]:
        path = _path_in(document.data, entry["loc"])
        message = _MESSAGES.get(
            entry["type"], entry["msg"].removeprefix("Value error, ").replace("Input should", "must")
        )
        if entry["type"] in {"missing", "missing_argument"}:
            message = f"{quote(str(entry['loc'][-1]))} {message}"
        yield Problem(line=document.places.line(path), path=path, message=message)


def _path_in(data: Any, loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the part of pydantic's location that is in the file, without types of a union and marks of keys."""
    path: list[int | str] = []
    for part in loc:
        inside = part in data if isinstance(data, dict) else isinstance(data, list) and part in range(len(data))
        if not inside:
            break
        path.append(part)
        data = data[part]
    return tuple(path)


def read_statements(path: Path) -> Iterator[Statement]:
    """Read a statement pool, one JSON record a line.

    Raises
    ------
    InputError
        A line of the pool is wrong; the message names file and line.
    """
    try:
        lines = read_document(path).decode().splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8 text") from None
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        statement = _statement(line, f"{path}:{number}")
        if statement.id in seen:
            raise InputError(f"{path}:{number}: the id {quote(statement.id)} is already on line {seen[statement.id]}")
        seen[statement.id] = number
        yield statement
    if not seen:
        raise InputError(f"{path}: holds no statement")


def _statement(line: str, place: str) -> Statement:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{place}: not a JSON object")
    known = {name: value for name, value in record.items() if name in Statement.__dataclass_fields__}
    try:
        return _STATEMENT.validate_python(known)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{place}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
