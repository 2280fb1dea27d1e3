"""The JSON Schema of ``biasmeter.yaml``, for editors: completion, descriptions, and unknown keys underlined.

An editor checks the text of the file, so the schema also allows what the configuration reads from text: variables,
durations, sizes and addresses. Editors find less than ``biasmeter check``, which also checks names across sections.
"""

import ast
import inspect
import json
from collections.abc import Collection
from itertools import pairwise
from textwrap import dedent
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import override  # in typing from 3.12 on

from auditor.config.audits import ALL
from auditor.config.models import Config

_VARIABLE: Final = {"type": "string", "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"}
#: Classes that are also written as one text, such as an address or a bare name.
_ALSO_TEXT: Final = ("Address", "WeightedDeployment")


def meanings(section: type[BaseModel]) -> dict[str, str]:
    """Return the meaning of each key of a section that has one, by the key's name in the file, as Markdown.

    The string after a field says it. Python drops such strings, so they are read from the source, and only when a
    schema or a page is made: pydantic's ``use_attribute_docstrings`` would read the source at each start.
    """
    (declared,) = ast.parse(dedent(inspect.getsource(section))).body
    assert isinstance(declared, ast.ClassDef)
    texts = {}
    for field, text in pairwise(declared.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(written))):
                texts[section.model_fields[name].alias or name] = markdown(written)
    return texts


def markdown(docstring: str) -> str:
    """Return a docstring of one paragraph as Markdown, in one line."""
    return " ".join(docstring.split()).replace("``", "`")


class _Generator(GenerateJsonSchema):
    """Describe each section and each of its keys."""

    @override
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        section = schema["cls"]
        made = super().model_schema(schema)
        made["description"] = markdown(section.__doc__ or "")
        for key, meaning in meanings(section).items():
            made["properties"][key]["description"] = meaning
        return made


def config_schema() -> dict[str, Any]:
    """Generate the schema."""
    schema: dict[str, Any] = Config.model_json_schema(schema_generator=_Generator)
    definitions = schema.pop("$defs")
    for name in _ALSO_TEXT:
        definitions[name] = {"anyOf": [{"type": "string"}, definitions[name]]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "configuration.schema.json",
        **_as_written(schema),
        "title": "biasmeter.yaml",
        "$defs": {name: _as_written(definition) for name, definition in sorted(definitions.items())},
    }


def config_schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(config_schema(), indent=1, ensure_ascii=False) + "\n"


def _as_written(schema: Any) -> Any:
    """Return a part of the schema for the text of a file, not for the values that are read from it."""
    if isinstance(schema, list):
        return [_as_written(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    needed = schema.get("required", ())
    made = {key: _inner(key, value, needed) for key, value in schema.items() if key not in {"default", "title"}}
    # pydantic's names of bounds that follow a conversion; JSON Schema's are others.
    for ours, theirs in (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum")):
        if ours in made:
            made[theirs] = made.pop(ours)
    return made


def _inner(key: str, value: Any, needed: Collection[str]) -> Any:
    if key == "properties":
        return {name: _property(schema, optional=name not in needed) for name, schema in value.items()}
    return {"anyOf": _alternatives(value)} if key == "items" else _as_written(value)


def _property(schema: dict[str, Any], *, optional: bool) -> dict[str, Any]:
    """Return the schema of a key's value; one that may be absent may also be null."""
    allowed = _alternatives({key: value for key, value in schema.items() if key != "description"})
    if optional:
        allowed.append({"type": "null"})
    simple = {key: value for key, value in schema.items() if isinstance(value, bool | int | float | str)}
    return {"anyOf": allowed, **{key: simple[key] for key in ("default", "description") if key in simple}}


def _alternatives(schema: dict[str, Any]) -> list[dict[str, Any]]:
    allowed = [_as_written(schema), _VARIABLE]
    if any({"ge", "gt"} & part.keys() for part in (schema, *schema.get("anyOf", ()))):  # a duration or a size, or none
        allowed.append({"type": "string", "pattern": r"^\s*\d[\d_]*(\.\d+)?\s*[A-Za-z]*$"})
    if schema.get("items", {}).get("type") == "string":
        allowed.append({"const": ALL})
    return allowed
