"""Collect what is wrong with a configuration, and where; report it all at once, one line each."""

import difflib
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from auditor.config.values import quote, show
from auditor.errors import ConfigError

#: The path of a value: the keys and indices that lead to it.
KeyPath = tuple[str | int, ...]

#: The greatest number of reported problems; further ones mostly follow from the first.
MAX_REPORTED: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem: its line (and column, for syntax), its path of keys, and the message."""

    line: int | None
    message: str
    path: KeyPath = ()
    column: int | None = None

    def line_of(self, source: str) -> str:
        """Return the problem as one line."""
        place = ":".join(str(part) for part in (source, self.line, self.column) if part is not None)
        where = f"{format_path(self.path)}: " if self.path else ""
        return _on_one_line(f"{place}: {where}{self.message}")


def _on_one_line(text: str) -> str:
    """Escape what is not printable, so that a file cannot control the terminal through an error."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def format_path(path: KeyPath) -> str:
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
    lines = list(dict.fromkeys(problem.line_of(source) for problem in ordered))
    reported = lines[:MAX_REPORTED]
    if len(lines) > MAX_REPORTED:
        reported.append(f"{source}: and {len(lines) - MAX_REPORTED} more problems")
    return ConfigError("\n".join(reported))


_MAPPING: Final = "must be a mapping (key: value)"
_LIST: Final = "must be a list ([a, b], or lines that begin with a dash)"
_INTEGER: Final = "must be a whole number"
_NUMBER: Final = "must be a number"
_SWITCH: Final = "must be true or false"

#: Messages by pydantic's error type; ``{name}`` comes from the error's context.
_WORDS: Final = {
    "missing": "is missing",
    "model_type": _MAPPING,
    "model_attributes_type": _MAPPING,
    "dict_type": _MAPPING,
    "tuple_type": _LIST,
    "list_type": _LIST,
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": "is too large a number",
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "string_type": "must be text",
    "string_unicode": "must be text",
    "path_type": "must be a path",
    "string_too_short": "must not be empty",
    "too_short": "needs at least {min_length} (it has {actual_length})",
    "greater_than": "must be greater than {gt:g}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than": "must be less than {lt:g}",
    "less_than_equal": "must be at most {le:g}",
}


def word(error: ErrorDetails, root: type[BaseModel], *, hide: bool) -> str:
    """Return a message for an error of pydantic. With ``hide`` the value is not shown: it came from the environment."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _word_unknown(error["loc"], root)
    if kind == "literal_error":
        return _word_choice(error, context["expected"], hide=hide)
    if kind == "value_error":
        return str(context["error"])
    if kind in _WORDS:
        return _WORDS[kind].format_map(context)
    return "is not valid here: " + error["msg"].replace("Input should", "it should")


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean "gpt-4"?`` if a known name is similar, else an empty text."""
    near = difflib.get_close_matches(name[:64], list(known), n=1, cutoff=0.6)
    return f"; did you mean {quote(near[0])}?" if near else ""


def _word_unknown(path: KeyPath, root: type[BaseModel]) -> str:
    model = model_at(root, path[:-1])
    known = [field.alias or name for name, field in model.model_fields.items()] if model else []
    near = suggest(str(path[-1]), known)
    return "unknown key" + (near or (f"; known here: {', '.join(known)}" if known else ""))


def _word_choice(error: ErrorDetails, expected: str, *, hide: bool) -> str:
    choices = [choice.strip().strip("'") for choice in expected.replace(" or ", ", ").split(",")]
    value = error["input"]
    near = suggest(value, choices) if isinstance(value, str) and not hide else ""
    return f"must be one of {', '.join(choices)}{near}"


def model_at(root: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """Return the model at a path."""
    model: type[BaseModel] | None = root
    for part in path:
        if isinstance(part, int):
            continue  # an item of a list: the field's model was found with its name
        fields = {field.alias or name: field for name, field in model.model_fields.items()} if model else {}
        model = _model_in(fields[part].annotation) if part in fields else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside ``X``, ``X | None`` or ``tuple[X, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {types.UnionType, Union, tuple}:
        models = (_model_in(argument) for argument in get_args(annotation))
        return next((model for model in models if model), None)
    return None
