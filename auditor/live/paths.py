"""Paths into JSON, as audit profiles write them: ``$.messages[-1].content``, ``$['a b'].c``. No more of JSONPath."""

import re
from dataclasses import dataclass
from typing import Any, Final

from auditor.errors import ConfigError

_STEP: Final = re.compile(r"\.([^.\[\]'\"\s]+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_NESTED: Final = 64


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
