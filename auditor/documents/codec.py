"""Write documents as the same bytes every time, and read them back with errors that name the place.

msgspec does not read unions of several untagged classes, which ``{"missing": "reason"}`` needs. So this module walks
through such types itself and leaves everything below them to msgspec.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeGuard, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import UNSET, Struct, UnsetType

from auditor.documents.base import Document, Json
from auditor.errors import InputError

_Document = TypeVar("_Document", bound=Document)
#: Significant digits of a written number: enough for every use, and the same on every machine.
_DIGITS: Final = 10


def canonical_bytes(value: Json | Document) -> bytes:
    """Write JSON with sorted keys and ten significant digits, so that equal values are equal bytes."""
    text = json.dumps(_plain(value), sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def json_object(document: Document) -> dict[str, Any]:
    """Return a document as the JSON object that ``canonical_bytes`` writes: the same keys and digits."""
    return cast("dict[str, Any]", _plain(document))


def rounded(document: _Document) -> _Document:
    """Return a document with the digits that ``canonical_bytes`` writes."""
    return convert(_plain(document), type(document), type(document).__name__)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") + 0.0  # adding 0.0 turns -0.0 into 0.0
    if isinstance(value, str):
        return value
    if isinstance(value, Struct):
        values = ((name, getattr(value, attribute)) for attribute, name in field_names(type(value)))
        return {name: _plain(each) for name, each in values if each is not UNSET}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, Sequence) else value


@cache
def field_names(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a class, each with its key in the document."""
    return tuple((field.name, field.encode_name) for field in msgspec.structs.fields(kind))


def decode(content: bytes, kind: type[_Document], source: str) -> _Document:
    """Read a document from JSON.

    Parameters
    ----------
    content
        Bytes that ``canonical_bytes`` wrote, or any other JSON of the same content.
    kind
        Class of the document.
    source
        Name of the source in errors, such as the path of a file.

    Raises
    ------
    InputError
        Where it is not JSON, or not such a document; names the place as a JSON pointer.
    """
    try:
        value = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{source}: is not JSON: {' '.join(str(error).split())}") from None
    return convert(value, kind, source)


def convert(value: object, kind: type[_Document], source: str) -> _Document:
    """Read a document from a value that has been parsed already; raises as ``decode`` does."""
    try:
        return cast("_Document", _read(value, kind, ""))
    except _WrongAt as wrong:
        raise InputError(f"{source}: {wrong}") from None


class _WrongAt(Exception):  # noqa: N818 -- becomes an InputError
    """A value is not what the document's definition says."""

    def __init__(self, pointer: str, what: str) -> None:
        super().__init__(f"{pointer or '/'}: {what}")
        self.pointer = pointer


def _read(value: object, annotation: Any, pointer: str) -> object:
    """Read a value, by msgspec where it knows the type; else, and to name the place of an error, part by part."""
    if _is_known(annotation):
        try:
            return msgspec.convert(value, annotation)
        except msgspec.ValidationError as error:
            return _read_parts(value, annotation, pointer, _first_clause(error))
    return _read_parts(value, annotation, pointer, "")


@cache
def _is_known(annotation: Any) -> bool:
    try:
        msgspec.json.Decoder(annotation)
    except TypeError:
        return False
    return True


def _first_clause(error: msgspec.ValidationError) -> str:
    """Return what is wrong without msgspec's own place, which lacks the keys of mappings."""
    message = str(error).partition(" - at ")[0]
    return message[:1].lower() + message[1:]


def _read_parts(value: object, annotation: Any, pointer: str, wrong: str) -> object:
    kind = bare(annotation)
    members = alternatives(kind)
    if len(members) > 1:
        return _read_union(value, members, pointer, wrong)
    if is_class(kind):
        return _read_object(value, kind, pointer)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Sequence:
        if not isinstance(value, list):
            raise _WrongAt(pointer, f"expected an array, got {_name_of(value)}")
        return _checked([_read(each, arguments[0], f"{pointer}/{i}") for i, each in enumerate(value)], pointer, wrong)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise _WrongAt(pointer, f"expected an object, got {_name_of(value)}")
        return _checked(
            {key: _read(each, arguments[1], child_pointer(pointer, key)) for key, each in value.items()}, pointer, wrong
        )
    raise _WrongAt(pointer, wrong)


def _checked(value: object, pointer: str, wrong: str) -> object:
    """Return a container whose parts are right, unless msgspec found something wrong with it as a whole."""
    if wrong:
        raise _WrongAt(pointer, wrong)
    return value


def _read_union(value: object, members: Sequence[Any], pointer: str, wrong: str) -> object:
    """Read an object as the class whose keys fit best, and anything else as the first type that it is."""
    classes = [kind for kind in members if is_class(kind)]
    if isinstance(value, dict) and classes:
        return _read_object(value, min(classes, key=lambda kind: _misfit(value, kind)), pointer)
    errors = [_WrongAt(pointer, wrong or f"{_name_of(value)} does not belong here")]
    for kind in members:
        try:
            return _read(value, kind, pointer)
        except _WrongAt as error:
            errors.append(error)
    raise max(errors, key=lambda error: len(error.pointer))


def is_class(kind: Any) -> TypeGuard[type[Struct]]:
    """Return whether a type is a class of documents."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def _misfit(value: Mapping[str, object], kind: type[Struct]) -> int:
    """Count the keys that are lacking or too many."""
    fields = struct_fields(kind)
    required = {name for name, (_, is_required) in fields.items() if is_required}
    return len(value.keys() - fields.keys()) + len(required - value.keys())


def _read_object(value: object, kind: type[Struct], pointer: str) -> Struct:
    if not isinstance(value, dict):
        raise _WrongAt(pointer, f"expected an object, got {_name_of(value)}")
    fields = struct_fields(kind)
    for key in value:
        if key not in fields:
            raise _WrongAt(child_pointer(pointer, key), "unknown key")
    for key, (_, is_required) in fields.items():
        if is_required and key not in value:
            raise _WrongAt(pointer, f"lacks the key {key!r}")
    read = {key: _read(each, fields[key][0], child_pointer(pointer, key)) for key, each in value.items()}
    return kind(**{attribute: read[name] for attribute, name in field_names(kind) if name in read})


@cache
def struct_fields(kind: type[Struct]) -> dict[str, tuple[Any, bool]]:
    """Return type and necessity of each key of a class."""
    return {
        field.encode_name: (without_unset(field.type), UnsetType not in alternatives(bare(field.type)))
        for field in msgspec.structs.fields(kind)
    }


def bare(annotation: Any) -> Any:
    """Return a type without its annotations."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union; another type is its own only member."""
    return get_args(annotation) if get_origin(annotation) in {Union, UnionType} else (annotation,)


def without_unset(annotation: Any) -> Any:
    """Return the type of a key that may be absent, for where it is present."""
    left = tuple(kind for kind in alternatives(annotation) if kind is not UnsetType)
    return Union[left] if UnsetType in alternatives(annotation) else annotation  # noqa: UP007 -- of a tuple


def child_pointer(pointer: str, key: str) -> str:
    """Return the JSON pointer (RFC 6901) of a key of an object.

    >>> child_pointer("/groups/0", "E|E")
    '/groups/0/E|E'
    """
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


_JSON_NAMES: Final[Mapping[type, str]] = {
    NoneType: "null",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "text",
    list: "an array",
    dict: "an object",
}


def _name_of(value: object) -> str:
    return _JSON_NAMES[type(value)]
