"""Words for what pydantic refuses: what must stand there, never what stands there if it could be a secret."""

import difflib
import types
from collections.abc import Iterable
from typing import Any, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from auditor.config.problems import Path
from auditor.config.values import quote

_MAPPING: Final = "must be a mapping (key: value)"
_LIST: Final = "must be a list ([a, b], or lines that begin with a dash)"
_INTEGER: Final = "must be a whole number"
_NUMBER: Final = "must be a number"
_SWITCH: Final = "must be true or false"

#: pydantic's error type → our words; ``{name}`` comes from the error's context.
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
    """Say in words what pydantic found. ``hide``: the value came from the environment and is not shown."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        return _word_unknown(error["loc"], root)
    if kind == "literal_error":
        return _word_choice(error, context["expected"], hide=hide)
    if kind == "value_error":
        return str(context["error"])
    if kind in _WORDS:
        return _WORDS[kind].format_map(context)
    return "cannot be used here: " + error["msg"].replace("Input should", "it should")


def suggest(name: str, known: Iterable[str]) -> str:
    """Give ``; did you mean "gpt-4"?`` where something known is near, else nothing."""
    near = difflib.get_close_matches(name[:64], list(known), n=1, cutoff=0.6)
    return f"; did you mean {quote(near[0])}?" if near else ""


def _word_unknown(path: Path, root: type[BaseModel]) -> str:
    model = model_at(root, path[:-1])
    known = [field.alias or name for name, field in model.model_fields.items()] if model else []
    near = suggest(str(path[-1]), known)
    return "unknown key" + (near or (f"; known here: {', '.join(known)}" if known else ""))


def _word_choice(error: ErrorDetails, expected: str, *, hide: bool) -> str:
    choices = [choice.strip().strip("'") for choice in expected.replace(" or ", ", ").split(",")]
    value = error["input"]
    near = suggest(value, choices) if isinstance(value, str) and not hide else ""
    return f"must be one of {', '.join(choices)}{near}"


def model_at(root: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """Find the model that stands at a path."""
    model: type[BaseModel] | None = root
    for part in path:
        if isinstance(part, int):
            continue  # an item of a list: the field's model was found with its name
        fields = {field.alias or name: field for name, field in model.model_fields.items()} if model else {}
        model = _model_in(fields[part].annotation) if part in fields else None
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Find the model inside ``X``, ``X | None`` or ``tuple[X, ...]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in {types.UnionType, Union, tuple}:
        found = (_model_in(one) for one in get_args(annotation))
        return next((one for one in found if one), None)
    return None
