"""The numbers of ``peers.json`` as people read them, with the digits that the paper prints."""

from collections.abc import Mapping
from typing import Any, Final

from auditor.report.words import DASH

#: A JSON object of the document, or a plain value of it.
Entry = Mapping[str, Any]

_EMBEDDING: Final = "embedding"
_MINUS: Final = "\N{MINUS SIGN}"


def number_text(instrument: str, value: Any, digits: int | None = None) -> str:
    """Write a value in an instrument's units: scores with two decimals, distances with four.

    >>> number_text("embedding", 0.05610), number_text("judge:a", 2.6)
    ('0.0561', '2.60')
    """
    places = digits if digits is not None else 4 if instrument == _EMBEDDING else 2
    return _written(value, f".{places}f")


def fixed_text(value: Any, digits: int = 2) -> str:
    """Write a t statistic, or degrees of freedom."""
    return _written(value, f".{digits}f")


def interval_text(instrument: str, entry: Entry) -> str:
    """Write the bounds of a mean or a difference; nothing where there are none."""
    if "low" not in entry:
        return ""
    return f"[{number_text(instrument, entry['low'])}, {number_text(instrument, entry['high'])}]"


def p_text(value: Any) -> str:
    """Write a p value as the paper does.

    >>> p_text(1e-9), p_text(0.0373505), p_text(0.9982), p_text(1.0)
    ('< .001', '0.0374', '0.998', '> .999')
    """
    if isinstance(value, Mapping) or value is None:
        return DASH
    if value < 0.001:
        return "< .001"
    return "> .999" if value > 0.999 else f"{value:.3g}"


def word_text(value: Any) -> str:
    """Write a verdict or a conclusion, a dash where there is none."""
    return DASH if isinstance(value, Mapping) or value is None else str(value)


def reason_text(value: Any) -> str:
    """Say why there is no value; nothing where there is one."""
    return str(value["missing"]) if isinstance(value, Mapping) and "missing" in value else ""


def _written(value: Any, form: str) -> str:
    if isinstance(value, Mapping) or value is None:
        return DASH
    text = f"{value:{form}}"
    # A difference that rounds to nothing has no sign.
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", _MINUS)
