"""The published schemas are what the documents' classes generate, and say as much as the classes do."""

import json
from typing import Literal

import msgspec
import pytest
from msgspec import UNSET
from support.documents.sample_document import SAMPLE, SampleDocument
from support.lazy_imports import ImportedLater
from support.paths import DOCS

from auditor.documents.base import Document
from auditor.documents.codec import canonical_bytes
from auditor.schemas import DOCUMENTS, main, schema_of

jsonschema = ImportedLater("jsonschema")


def test_the_committed_schemas_are_the_generated_ones():
    assert main([str(DOCS), "--check"]) == 0, "run make schemas"


def test_a_stale_schema_is_found_and_written(tmp_path):
    assert main([str(tmp_path), "--check"]) == bool(DOCUMENTS)
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--check"]) == 0


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_a_schema_is_a_schema(name):
    jsonschema.Draft202012Validator.check_schema(schema_of(name))


def test_a_schema_says_what_the_classes_say():
    schema = schema_of("sample", {"sample": SampleDocument})
    assert schema["title"] == "sample/1"
    assert schema["required"] == ["from", "rows", "schema"]
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["RateEntry"]["required"] == ["value"]
    assert schema["$defs"]["RowEntry"]["properties"]["flags"]["description"] == "What to mind."
    document = json.loads(canonical_bytes(SAMPLE))
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(document)
    for spoil in (
        {"rows": []},
        {"rows": [{"name": "b"}]},
        {"rows": [document["rows"][0] | {"m": 4}]},
        {"rows": [document["rows"][0] | {"rates": {"a": {"value": 1.5}}}]},
        {"rows": [document["rows"][0] | {"rates": {"a": {"value": 1.0, "interval": [1.0]}}}]},
        {"schema": "sample/2"},
    ):
        assert not validator.is_valid(document | spoil), spoil


def test_a_document_inside_another_one_is_a_reference_to_its_schema():
    class WholeDocument(Document):
        """A document with another one inside."""

        schema: Literal["whole/1"]
        inside: SampleDocument | None

    schema = schema_of("whole", {"whole": WholeDocument, "sample": SampleDocument})
    assert schema["properties"]["inside"]["anyOf"] == [{"$ref": "sample.schema.json"}, {"type": "null"}]
    assert schema["$defs"] == {}


@pytest.mark.parametrize("kind", DOCUMENTS.values())
def test_a_key_is_written_or_left_out_by_its_type(kind):
    """A default other than UNSET would hide a key that a reader needs."""
    for each in _classes(kind):
        defaults = {f.default for f in msgspec.structs.fields(each)} | {
            f.default_factory for f in msgspec.structs.fields(each)
        }
        assert defaults <= {msgspec.NODEFAULT, UNSET}, each


def _classes(kind, seen=None):
    seen = set() if seen is None else seen
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind in seen:
            return seen
        seen.add(kind)
        inside = [field.type for field in msgspec.structs.fields(kind)]
    else:
        inside = getattr(kind, "__args__", ())
    for each in inside:
        _classes(each, seen)
    return seen
