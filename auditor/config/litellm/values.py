"""Read single values of a LiteLLM file as the configuration would read them, and name variables for its secrets.

All scalars are the text that stands in the file.
"""

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from auditor.config.network import ApiVersion, BaseUrl, Headers
from auditor.config.values import Label, NonNegative, PositiveSeconds

T = TypeVar("T")

LABEL: Final = TypeAdapter[str](Label)
URL: Final = TypeAdapter[str](BaseUrl)
VERSION: Final = TypeAdapter[str](ApiVersion)
HEADERS: Final = TypeAdapter[dict[str, SecretStr]](Headers)
SECONDS: Final = TypeAdapter[float](PositiveSeconds)
COUNT: Final = TypeAdapter[int](Annotated[int, Field(ge=1)])
RETRIES: Final = TypeAdapter[int](Annotated[int, Field(ge=0)])
WEIGHT: Final = TypeAdapter[float](NonNegative)


def fits(adapter: TypeAdapter[T], value: Any) -> T | None:
    """Parse a value as the configuration would; return None if it would refuse it or take it for a variable."""
    if isinstance(value, str) and "${" in value:
        return None
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def plain(value: float) -> float:
    """Return a whole number without decimals: ``600``, not ``600.0``."""
    return int(value) if value.is_integer() else value


def per_million(per_token: Any) -> float | None:
    """Convert USD per token to USD per million tokens, in decimals, so that 0.0000025 becomes exactly 2.5."""
    try:
        price = float(per_token)
    except (TypeError, ValueError):
        return None
    if not math.isfinite(price) or not 0 <= price <= 1:
        return None
    return plain(float(Decimal(per_token) * 1_000_000))


_REFERENCE: Final = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)", re.ASCII)


class Variables:
    """Choose names of variables; the same secret always has the same variable.

    Parameters
    ----------
    text
        The LiteLLM file; the variables in it are taken.
    also
        More taken names.
    """

    def __init__(self, text: str, also: Iterable[str]) -> None:
        self._taken = {*_REFERENCE.findall(text), *also}
        self._names: dict[str, str] = {}

    def stand_in(self, secret: str, *words: str) -> str:
        """Return the variable for ``secret``; a new name is made of the words."""
        if secret not in self._names:
            self._names[secret] = self._new(words)
        return self._names[secret]

    def _new(self, words: Iterable[str]) -> str:
        stem = re.sub(r"[^A-Z0-9]+", "_", "_".join(words).upper()).strip("_")
        stem = f"_{stem}" if stem[:1].isdigit() else stem
        name, number = stem, 2
        while name in self._taken:
            name, number = f"{stem}_{number}", number + 1
        self._taken.add(name)
        return name


def reference(text: str) -> str | None:
    """Return ``${NAME}`` for ``os.environ/NAME``, and None for any other text."""
    match = _REFERENCE.fullmatch(text)
    return f"${{{match[1]}}}" if match else None
