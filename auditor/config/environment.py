"""Puts environment variables in the place of ``${NAME}``, which must be the whole of a value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from auditor.config.problems import Path, Problem
from auditor.config.values import quote
from auditor.config.yaml_source import Places

#: Here, and only here, an unset variable means that the key is absent: the embedded store is meant.
OPTIONAL: Final = frozenset({("store", "url")})

_WHOLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_ANYWHERE: Final = re.compile(r"\$\{[^}]*\}")


@dataclass(slots=True)
class Substitution:
    """One pass over a document: ``apply`` gives it back with variables filled in."""

    environ: Mapping[str, str]
    places: Places
    problems: list[Problem] = field(default_factory=list)
    #: Paths whose value came from a variable: errors never show it.
    filled: set[Path] = field(default_factory=set)

    def apply(self, value: Any, path: Path = ()) -> Any:
        """Fill in every variable at or below ``path``; what cannot be filled in becomes None."""
        if isinstance(value, dict):
            return {key: self.apply(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [self.apply(one, (*path, index)) for index, one in enumerate(value)]
        if isinstance(value, str) and _ANYWHERE.search(value):
            return self._fill(value, path)
        return value

    def _fill(self, value: str, path: Path) -> str | None:
        whole = _WHOLE.fullmatch(value)
        if whole is None:
            self._refuse(path, f"{_word(value)}: a variable must be the whole value, written ${{NAME}}")
            return None
        name = whole[1]
        found = self.environ.get(name)
        if path in OPTIONAL and not found:
            return None
        if not found:
            self._refuse(path, f"the environment variable {name} is {'not set' if found is None else 'empty'}")
            return None
        if any("\ud800" <= character <= "\udfff" for character in found):
            self._refuse(path, f"the environment variable {name} is not UTF-8")
            return None
        self.filled.add(path)
        return found

    def _refuse(self, path: Path, message: str) -> None:
        self.problems.append(Problem(line=self.places.line(path), path=path, message=message))


def _word(value: str) -> str:
    """Name the first reference only: the text around it may be half a secret."""
    match = _ANYWHERE.search(value)
    reference = match[0] if match else value
    if reference == value:
        return f"{quote(reference)} does not name a variable"
    return f"{quote(reference)} stands inside a longer text"
