"""Generate the published JSON Schemas from the documents' classes: ``python -m auditor.schemas docs``.

With ``--check`` nothing is written, and the exit status is 1 where a committed schema is not what is generated.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from auditor.documents.analysis import AnalysisDocument
from auditor.documents.base import Document, HasFields
from auditor.documents.chain_head import ChainHeadDocument
from auditor.documents.codec import alternatives, bare, is_class, struct_fields
from auditor.documents.comparison import ComparisonDocument
from auditor.documents.decisions import DecisionsDocument
from auditor.documents.judges import JudgesDocument, ReliabilityDocument
from auditor.documents.model import ModelDocument
from auditor.documents.peers import PeersDocument
from auditor.period.document import ReportDocument

#: Each document by the name of its schema, ``docs/<name>.schema.json``.
DOCUMENTS: Final[Mapping[str, type[Document]]] = {
    "analysis": AnalysisDocument,
    "chain_head": ChainHeadDocument,
    "decisions": DecisionsDocument,
    "judges": JudgesDocument,
    "model": ModelDocument,
    "peers": PeersDocument,
    "reliability": ReliabilityDocument,
    "replay": ComparisonDocument,
    "report": ReportDocument,
}
_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def file_name(name: str) -> str:
    """Return the file name of a document's schema."""
    return f"{name}.schema.json"


def schema_of(name: str, documents: Mapping[str, type[Document]] = DOCUMENTS) -> dict[str, Any]:
    """Generate the schema of a document. A document inside another one is a reference to that one's schema."""
    kind = documents[name]
    maker = SchemaMaker({each: file_name(other) for other, each in documents.items() if other != name})
    body = maker.body(kind)
    title = get_args(struct_fields(kind)["schema"][0])[0]
    return (
        {"$schema": _DIALECT, "$id": file_name(name), "title": title}
        | body
        | {"$defs": dict(sorted(maker.defs.items()))}
    )


def schema_bytes(name: str) -> bytes:
    """Return the content of a document's schema file."""
    return (json.dumps(schema_of(name), indent=1, ensure_ascii=False) + "\n").encode()


class SchemaMaker:
    """Makes the schemas of types, and collects those of the classes that they name.

    Parameters
    ----------
    published
        Classes with a schema elsewhere, each with its address.
    place
        Path of ``defs`` in the document, as references name it.
    """

    def __init__(self, published: Mapping[type[Struct], str], place: str = "#/$defs/") -> None:
        self.defs: dict[str, Any] = {}
        self._published = published
        self._place = place

    def body(self, kind: type[Struct], *, is_open: bool = False) -> dict[str, Any]:
        """Return the schema of an object; an open one may have further keys."""
        fields = struct_fields(kind)
        return {
            "description": " ".join((kind.__doc__ or "").split()),
            "type": "object",
            "properties": {key: self.schema(annotation) for key, (annotation, _) in fields.items()},
            "required": sorted(key for key, (_, is_required) in fields.items() if is_required),
            "additionalProperties": is_open,
        }

    def schema(self, annotation: Any) -> dict[str, Any]:
        """Return the schema of a type; classes are references."""
        for each in get_args(annotation)[1:]:
            if isinstance(each, HasFields):
                return self._reference(each.kind, is_open=True)
        kind, words = bare(annotation), _words(annotation)
        members = alternatives(kind)
        if len(members) > 1 and any(map(_has_class, members)):
            return {"anyOf": [self.schema(each) for each in members]} | words
        if is_class(kind):
            return self._reference(kind) | words
        if _has_class(kind):
            item = self.schema(get_args(kind)[-1])
            if get_origin(kind) is Mapping:
                return {"type": "object", "additionalProperties": item} | words
            return {"type": "array", "items": item} | words
        return msgspec.json.schema(annotation)

    def _reference(self, kind: type[Struct], *, is_open: bool = False) -> dict[str, Any]:
        if kind in self._published:
            return {"$ref": self._published[kind]}
        if kind.__name__ not in self.defs:
            self.defs[kind.__name__] = {}  # stands for it while it is made: a class may contain itself
            self.defs[kind.__name__] = self.body(kind, is_open=is_open)
        return {"$ref": f"{self._place}{kind.__name__}"}


def _has_class(annotation: Any) -> bool:
    is_marked = is_class(annotation) or isinstance(annotation, HasFields)
    return is_marked or any(_has_class(each) for each in get_args(annotation))


def _words(annotation: Any) -> dict[str, Any]:
    """Return what annotations of an array, an object or a union add to its schema."""
    metas = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    out: dict[str, Any] = {}
    for meta in metas:
        if isinstance(meta, Meta):
            out |= {"description": meta.description} if meta.description else {}
            out |= {"minItems": meta.min_length} if meta.min_length else {}
    return out


def main(arguments: Sequence[str]) -> int:
    """Write the schemas into a folder, or check that they are there as generated."""
    check = "--check" in arguments
    (folder,) = (Path(each) for each in arguments if each != "--check")
    stale = [name for name in DOCUMENTS if not _is_current(folder, name)]
    for name in stale:
        if not check:
            (folder / file_name(name)).write_bytes(schema_bytes(name))
        sys.stderr.write(f"{folder / file_name(name)}: {'differs: run make schemas' if check else 'written'}\n")
    return 1 if check and stale else 0


def _is_current(folder: Path, name: str) -> bool:
    path = folder / file_name(name)
    return path.exists() and path.read_bytes() == schema_bytes(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
