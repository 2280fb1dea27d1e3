"""The published schemas of the documents (docs/*.schema.json), as validators."""

import json
from collections.abc import Iterator
from typing import Any

from referencing import Registry, Resource
from support.lazy_imports import ImportedLater
from support.paths import DOCS

jsonschema = ImportedLater("jsonschema")


def validator(name: str) -> Any:
    """A validator of documents of `name`, as in docs/`name`.schema.json."""
    schemas = {path.name: json.loads(path.read_text()) for path in DOCS.glob("*.schema.json")}
    registry: Registry[Any] = Registry().with_resources(
        (key, Resource.from_contents(schema)) for key, schema in schemas.items()
    )
    return jsonschema.Draft202012Validator(schemas[f"{name}.schema.json"], registry=registry)


def complaints(name: str, document: object) -> Iterator[str]:
    """What is not as the schema has it."""
    for error in validator(name).iter_errors(document):
        deepest = jsonschema.exceptions.best_match([error])
        yield f"{deepest.json_path}: {deepest.message[:200]}"
