"""Read JSON in requests and answers by paths such as ``$.messages[-1].content`` and ``$['a b'].c``.

Only names and indexes are supported, not the rest of JSONPath.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from auditor.errors import ConfigError

_STEP: Final = re.compile(r"\.([^.\[\]'\"\s]+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_NESTED: Final = 64
#: The number of fenced blocks of one answer that are tried.
_FENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Path:
    """A path into a JSON value: names of members, and indexes of lists (negative ones count from the end)."""

    steps: tuple[str | int, ...]

    def follow(self, value: object) -> object | None:
        """Return the value at the path; ``None`` if there is none."""
        for step in self.steps:
            if isinstance(step, str) and isinstance(value, dict):
                value = value.get(step)
            elif isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
                value = value[step]
            else:
                return None
        return value


def parse_path(text: str, where: str) -> Path:
    """Read a path.

    Raises
    ------
    ConfigError
        The path is not valid; the message names its place ``where``.

    Examples
    --------
    >>> parse_path("$.messages[-1].content", "audits").steps
    ('messages', -1, 'content')
    """
    steps: list[str | int] = []
    rest = text.strip().removeprefix("$")
    place = 0
    while place < len(rest) and len(steps) < _NESTED:
        step = _STEP.match(rest, place)
        if step is None:
            break
        name, index, single, double = step.groups()
        steps.append(
            int(index) if index is not None else next(key for key in (name, single, double) if key is not None)
        )
        place = step.end()
    if not text.strip().startswith("$") or place < len(rest) or not steps:
        raise ConfigError(f"{where}: {text!r} is not a path such as $.messages[-1].content or $.verdict")
    return Path(tuple(steps))


def as_text(value: object) -> str | None:
    """Read a value as text: itself, a number, or the text parts of a message's content."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list):
        parts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in value]
        return "".join(part for part in parts if isinstance(part, str)) or None
    return None


def read_json(text: str) -> object | None:
    """Return the JSON value of an answer (the whole answer, or fenced or bare inside it); ``None`` without one."""
    # Split instead of matching a pattern, because the text may be long and irregular.
    fenced = [block.removeprefix("json") for block in text.split("```")[1::2]]
    start, end = text.find("{"), text.rfind("}")
    for candidate in (text, *fenced[:_FENCES], text[start : end + 1] if 0 <= start < end else ""):
        try:
            value: object = orjson.loads(candidate.strip())
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict | list):
            return value
    return None


def pruned(value: Any, steps: tuple[str | int, ...]) -> object:
    """Copy a JSON value without the value at the path."""
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        return {name: pruned(each, rest) if name == step else each for name, each in value.items()}
    if isinstance(value, list) and isinstance(step, int):
        place = step % len(value) if value else 0
        return [pruned(each, rest) if index == place else each for index, each in enumerate(value)]
    return value


def texts_of(value: object) -> Iterator[str]:
    """Yield every text in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)
