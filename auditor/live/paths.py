"""JSON in requests and answers, and paths into it: ``$.messages[-1].content``, ``$['a b'].c``; no more of JSONPath."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson

from auditor.errors import ConfigError

_STEP: Final = re.compile(r"\.([^.\[\]'\"\s]+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_NESTED: Final = 64
#: Fenced blocks of one answer that are tried.
_FENCES: Final = 8


@dataclass(frozen=True, slots=True)
class Path:
    """A way into a JSON value: names of members, and places in lists (negative ones count from the end)."""

    steps: tuple[str | int, ...]

    def follow(self, value: object) -> object | None:
        """Give what stands at the end; ``None`` where the way ends before."""
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
        It is none; the message names ``where`` it stands.

    Examples
    --------
    >>> parse_path("$.messages[-1].content", "audits").steps
    ('messages', -1, 'content')
    """
    steps: list[str | int] = []
    rest = text.strip().removeprefix("$")
    place = 0
    while place < len(rest) and len(steps) < _NESTED:
        found = _STEP.match(rest, place)
        if found is None:
            break
        name, index, single, double = found.groups()
        steps.append(
            int(index) if index is not None else next(one for one in (name, single, double) if one is not None)
        )
        place = found.end()
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
        parts: list[Any] = [one.get("text") if isinstance(one, dict) else one for one in value]
        return "".join(part for part in parts if isinstance(part, str)) or None
    return None


def read_json(text: str) -> object | None:
    """Read the JSON that an answer is, or that stands in it, fenced or bare; ``None`` where there is none."""
    # Splitting, not matching: the text is as long, and as odd, as a model makes it.
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
    """Copy a JSON value without what the steps lead to."""
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
    """Give every text in a JSON value, in its order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)
