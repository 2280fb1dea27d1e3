"""What is wrong with a configuration, and where: collected, then told all together, one line each."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from auditor.config.values import show
from auditor.errors import ConfigError

#: Where a value stands: the keys and indices that lead to it.
Path = tuple[str | int, ...]

#: Beyond this many, the rest mostly follows from the first.
MOST_TOLD: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One thing that is wrong: the line (and column, for syntax), the path of keys, and the words."""

    line: int | None
    message: str
    path: Path = ()
    column: int | None = None

    def tell(self, source: str) -> str:
        """Write the problem as one line for a person."""
        place = ":".join(str(part) for part in (source, self.line, self.column) if part is not None)
        where = f"{format_path(self.path)}: " if self.path else ""
        return _on_one_line(f"{place}: {where}{self.message}")


def _on_one_line(text: str) -> str:
    """Escape what does not print: whatever a file holds, it cannot write to the terminal through an error."""
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def format_path(path: Path) -> str:
    """Write a path as ``routes[0].deployments[1].name``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = show(part)
            text += f".{key}" if text else key
    return text


def to_error(problems: Iterable[Problem], source: str) -> ConfigError:
    """Join problems, in the order of their lines, into one error."""
    ordered = sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    lines = list(dict.fromkeys(problem.tell(source) for problem in ordered))
    told = lines[:MOST_TOLD]
    if len(lines) > MOST_TOLD:
        told.append(f"{source}: and {len(lines) - MOST_TOLD} more problems")
    return ConfigError("\n".join(told))
