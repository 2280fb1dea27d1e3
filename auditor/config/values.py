"""Validate the small values of a configuration: durations, sizes, names and paths (see also ``network``).

Each value is parsed from the text in the file, or from a number if Python code builds a model. ``models`` and
``audits`` use them.
"""

import json
import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)?", re.ASCII)
_DURATION_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
#: A century: a longer duration is a typing error, and dates would overflow.
_LONGEST: Final = 36_500 * 86_400.0

_SIZE: Final = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([kKMGT]i?)?[bB]?", re.ASCII)
_SIZE_POWERS: Final = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
_LARGEST: Final = 2**50

_NAME: Final = re.compile(r"[A-Za-z0-9._:/-]{1,64}", re.ASCII)
_BARE: Final = re.compile(r"[A-Za-z0-9_.:/*-]{1,64}", re.ASCII)
_LABEL_LENGTH: Final = 256
#: No escapes and no segment that begins with a dot, because the path follows the ``base_url`` of a deployment.
_ENDPOINT_PATH: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,7}", re.ASCII)
_ENDPOINT_PATH_LENGTH: Final = 200


class Section(BaseModel):
    """A mapping of the configuration: immutable, without unknown keys, and with values hidden in errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: item for key, item in value.items() if item is not None or key not in known}


def quote(text: str, limit: int = 60) -> str:
    """Quote text from a file for a one-line message: escape what is not printable, and shorten long text."""
    shown = text if len(text) <= limit else text[: limit - 3] + "..."
    return json.dumps(shown, ensure_ascii=not shown.isprintable())


def show(text: str) -> str:
    """Write text from a file in a list or a path, quoted only if necessary."""
    return text if _BARE.fullmatch(text) else quote(text)


def parse_duration(value: object) -> float:
    """Parse ``30s``, ``5m``, ``1.5h``, ``7d``, ``2w``, ``500ms`` or a number of seconds as seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.strip())):
        seconds = float(match[1]) * _DURATION_UNITS[match[2] or "s"]
    else:
        raise ValueError("must be a duration such as 30s, 5m, 12h or 7d, or a number of seconds")
    if not math.isfinite(seconds) or seconds > _LONGEST:
        raise ValueError("must be at most 36500d")
    return seconds


def format_duration(seconds: float) -> str:
    """Write a duration in the largest unit that divides it (``86400`` is ``1d``)."""
    for unit in ("d", "h", "m"):
        size = _DURATION_UNITS[unit]
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:f}".rstrip("0").rstrip(".") + "s"


def parse_size(value: object) -> int:
    """Parse ``4GiB``, ``512MiB``, ``10MB``, ``64k`` or ``1_000_000`` as bytes (KiB is 1024, kB is 1000)."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        unit = match[2] or ""
        scale = (1024 if unit.endswith("i") else 1000) ** _SIZE_POWERS.get(unit[:1], 0)
        number = match[1].replace("_", "")
        if len(number) > 24:
            raise ValueError("must be at most 1024TiB")
        size = round(float(number) * scale) if "." in number else int(number) * scale
    else:
        raise ValueError("must be a size such as 512MiB, 4GiB or 1_000_000")
    if size > _LARGEST:
        raise ValueError("must be at most 1024TiB")
    return size


def check_name(name: str) -> str:
    """Refuse text that is not a valid name; raises ``ValueError``."""
    if not _NAME.fullmatch(name):
        raise ValueError("a name has 1 to 64 of the characters A-Z a-z 0-9 . _ : / -")
    return name


def is_endpoint_path(text: str) -> bool:
    """Return whether a text is the path of an endpoint below ``/v1/``, such as ``images/generations``."""
    return len(text) <= _ENDPOINT_PATH_LENGTH and _ENDPOINT_PATH.fullmatch(text) is not None


def _check_endpoint_path(text: str) -> str:
    if not is_endpoint_path(text):
        raise ValueError("is not the path of an endpoint after /v1/, such as images/generations")
    return text


def _check_label(name: str) -> str:
    if not 1 <= len(name) <= _LABEL_LENGTH or not name.isprintable() or name != name.strip():
        raise ValueError(f"must be 1 to {_LABEL_LENGTH} printable characters without space around them")
    return name


def _check_regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    return pattern


def _resolve_path(path: Path, info: ValidationInfo) -> Path:
    """Expand ``~``, and resolve a relative path against the configuration file's folder."""
    context: dict[str, Any] = info.context or {}
    environ = context.get("environ", os.environ)
    text = str(path)
    if "\0" in text:
        raise ValueError("is not a path")
    if text == "~" or text.startswith("~/"):
        path = _find_home(environ) / text[2:]
    folder = context.get("folder")
    return Path(folder, path) if folder is not None else path


def _find_home(environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME")
    if home:
        return Path(home)
    try:
        return Path.home()  # asks the system's user database
    except RuntimeError:
        raise ValueError("starts with ~, but HOME is not set") from None


Seconds = Annotated[float, BeforeValidator(parse_duration), Field(ge=0)]
PositiveSeconds = Annotated[float, BeforeValidator(parse_duration), Field(gt=0)]
Bytes = Annotated[int, BeforeValidator(parse_size), Field(ge=0)]
PositiveBytes = Annotated[int, BeforeValidator(parse_size), Field(gt=0)]
Number = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Name = Annotated[str, AfterValidator(check_name)]
EndpointPath = Annotated[str, AfterValidator(_check_endpoint_path)]
Label = Annotated[str, AfterValidator(_check_label)]
Text = Annotated[str, Field(min_length=1)]
Regex = Annotated[str, Field(min_length=1), AfterValidator(_check_regex)]
ResolvedPath = Annotated[Path, AfterValidator(_resolve_path)]
