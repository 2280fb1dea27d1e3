"""Entries of documents as a reader of the file finds them."""

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from auditor.documents.base import Document
from auditor.documents.codec import canonical_bytes, convert

_Document = TypeVar("_Document", bound=Document)
_P = ParamSpec("_P")


def written(value: Any) -> Any:
    """Return what is read back of a document or of some of its entries."""
    return json.loads(canonical_bytes(value))


def typed(value: object, kind: type[_Document]) -> _Document:
    """Return the document that some JSON values are."""
    return convert(value, kind, "document")


def writing(make: Callable[_P, Any]) -> Callable[_P, Any]:
    """Return a function that makes the same entries, and reads them back."""

    @wraps(make)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        return written(make(*args, **kwargs))

    return wrapped
