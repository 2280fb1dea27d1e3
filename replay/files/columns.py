"""Read values of the rows that other programs export; a JSON value may also be a text that holds one. No I/O."""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec

from auditor.documents.jsonl import BadRow


def moment_of(row: Mapping[str, object], name: str, what: str) -> datetime:
    """Return a time; UTC if it has no zone.

    Raises
    ------
    BadRow
        It is missing, or no time; ``what`` says what a row should be.
    """
    text = needed(row, name, what)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadRow(f"{name} must be a time, not {text[:40]!r}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def count_of(row: Mapping[str, object], name: str) -> int | None:
    """Return a whole number; None if there is none.

    Raises
    ------
    BadRow
        It is something else.
    """
    value = row.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return int(str(value)) if value not in (None, "") else None
    except ValueError:
        raise BadRow(f"{name} must be a whole number, not {str(value)[:40]!r}") from None


def needed(row: Mapping[str, object], name: str, what: str) -> str:
    """Return a text that must be there.

    Raises
    ------
    BadRow
        It is missing; ``what`` says what a row should be.
    """
    text = text_of(row, name)
    if not text:
        raise BadRow(f"{name} is missing; is this {what}?")
    return text


def text_of(row: Mapping[str, object], name: str) -> str:
    """Return a text without spaces around it; an empty one if it is missing."""
    value = row.get(name)
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def object_of(row: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return an object; an empty one if there is none."""
    value = value_of(row, name)
    return value if isinstance(value, dict) else {}


def value_of(row: Mapping[str, object], name: str) -> object:
    """Return a JSON value. A text that is no JSON has no value."""
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        return value
    try:
        parsed: object = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None
    return parsed


def user_digest(user: str) -> str:
    """Return a digest of a user, which tells which requests belong to the same one, and nothing else."""
    return blake2b(user.encode("utf-8", "replace"), digest_size=8).hexdigest()
