"""Define what all documents share: the base class, the reason in place of a value, and the types of common fields.

A document is a file that a command writes and a page, a person or another program reads: ``analysis.json``,
``report.json``, ``peers.json``, ``comparison.json``, ``judges.json``. One definition per document writes it, reads it,
validates it and generates its published schema (``docs/*.schema.json``). What the auditor's API answers is defined in
the same way, as ``<Subject>Body``; its OpenAPI document is generated from that. To add a document:

1. Write its classes in a module of this package, each a subclass of ``Document``. Name the whole
   ``<Subject>Document`` and its parts ``<Subject>Entry``. The docstring of a class becomes the description in the
   schema. Rules for fields:

   - The type says everything: ``Count``, ``Share``, ``Literal[...]``, ``Sequence[X]``, ``Mapping[str, X]``,
     ``Interval``. Add words with ``Annotated[X, Meta(description="...")]``.
   - ``X | None`` writes ``null``. ``X | UnsetType = UNSET`` leaves the key out. There are no other defaults, so that a
     document always says what it was made with; ``schema: Literal["biasmeter.x/1"]`` has none either.
   - ``X | Missing`` writes ``{"missing": "reason"}`` where there is no value; ``or_missing`` makes it of an
     ``Insufficient``. Where ``missing`` stands beside other keys, write a second class with those keys and the field
     ``missing: Reason``, and use ``ThisEntry | MissingThis``. Classes of one union differ in their required keys.
   - A key that Python does not allow as a name: ``from_: str = msgspec.field(name="from")``.

2. Enter it in ``auditor.schemas.DOCUMENTS`` and run ``make schemas``. A test fails where a committed schema
   is not what the classes generate.
3. Write it with ``codec.canonical_bytes(document)`` and read it with ``codec.decode(content, XDocument, name)``. Code
   that has a document in memory passes the object on; nobody reads it as a dictionary.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, dataclass_transform

from msgspec import UNSET, Meta, Struct, StructMeta, UnsetType, field

from auditor.domain.estimate import Insufficient

#: What JSON can hold.
Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]

#: A number of things.
Count = Annotated[int, Meta(ge=0)]
#: A part of a whole.
Share = Annotated[float, Meta(ge=0, le=1)]
#: Lower and upper bound.
Interval = tuple[float, float]
#: Why there is no value.
Reason = Annotated[str, Meta(description="There is no value, and this is why.")]
#: A value of a field of the rows.
Scalar = str | int | float | bool | None
#: An ISO 8601 time with its offset.
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
#: An ISO 8601 date.
Day = Annotated[str, Meta(extra_json_schema={"format": "date"})]
#: The id of an exchange.
Id = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]

_Value = TypeVar("_Value")


def one_of(values: Iterable[str]) -> Meta:
    """Return what a text's type has besides: ``Annotated[str, one_of(KeyRole)]``."""
    return Meta(extra_json_schema={"enum": [*values]})


class _DocumentMeta(StructMeta):
    """Makes all fields keyword-only, which msgspec does not inherit, so that they can stand in any order."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "_DocumentMeta":
        return super().__new__(cls, name, bases, namespace, **{"kw_only": True, **options})


# The decorator tells type checkers what subclasses inherit.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Document(Struct, metaclass=_DocumentMeta, frozen=True, forbid_unknown_fields=True):
    """A document, or one object inside it."""


@dataclass(frozen=True, slots=True)
class HasFields:
    """Marks a mapping that has the keys of a class and further ones: ``Annotated[Mapping[str, Any], HasFields(X)]``."""

    kind: type[Document]


class Missing(Document):
    """There is no value, and this is why. Never null, 0 or NaN in its place."""

    missing: str


def or_missing(value: _Value | Insufficient) -> _Value | Missing:
    """Return the value, or the document's form of the reason why there is none."""
    return Missing(missing=value.reason) if isinstance(value, Insufficient) else value


def or_unset(value: _Value | None) -> _Value | UnsetType:
    """Return the value, or UNSET, which leaves its key out, for None."""
    return UNSET if value is None else value


def value_or(value: _Value | None, reason: str) -> _Value | Missing:
    """Return the value, or where it is None the reason."""
    return Missing(missing=reason) if value is None else value
