"""The page of the configuration: every key with its type, default and meaning, from the models."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from auditor.config import Config, format_duration
from auditor.config.json_schema import markdown, meanings

#: Keys that are explained elsewhere, by their section.
PAGES: Final = {
    "gateway": "gateway.md",
    "deployments": "upstreams.md",
    "routes": "routing.md",
    "audits": "probes.md",
    "judges": "judges.md",
    "panel": "judges.md",
    "probes": "probes.md",
    "peers": "peers-live.md",
    "monitor": "monitoring.md",
    "retention": "retention.md",
    "store": "store.md",
    "auditor": "deploy.md",
    "parquet": "scale.md",
    "otel": "opentelemetry.md",
}
_HEAD: Final = """# Configuration

Every key of `biasmeter.yaml`: what it takes and what it means, generated from the code that reads it. `biasmeter init`
writes a first file, and `biasmeter check` checks one. A value may be an environment variable: `${NAME}`, as the whole
value. Durations are `30s`, `5m`, `12h` or `7d`, sizes `512MiB` or `4GiB`. Unknown keys are refused with their line, and
a key with the value `null` is absent. Each key has an anchor: `#gateway.listen`.

**In an editor**: write the JSON Schema with `biasmeter check --print-schema > biasmeter.schema.json` (also
[here](configuration.schema.json)), and begin the file with this line. A language server for YAML then completes,
explains and checks keys.

```yaml
# yaml-language-server: $schema=biasmeter.schema.json
```
"""


def keys(model: type[BaseModel] = Config, path: str = "") -> Iterator[tuple[str, type[BaseModel], FieldInfo]]:
    """Yield each key: its path, such as ``gateway.listen`` or ``routes[].model``, its section's class, and its field.

    The keys of a section come together, those of the sections in it after them.
    """
    names = {field.alias or name: field for name, field in model.model_fields.items()}
    for name, field in names.items():
        yield f"{path}{name}", model, field
    for name, field in names.items():
        for inner, listed in _sections(field.annotation):
            yield from keys(inner, f"{path}{name}[]." if listed else f"{path}{name}.")


def _sections(annotation: Any, *, listed: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation.__name__ != "Address":  # written as one text
            yield annotation, listed
        return
    for inner in get_args(annotation):
        yield from _sections(inner, listed=listed or get_origin(annotation) in {tuple, list})


def page() -> str:
    """Write the page."""
    lines = [_HEAD]
    section: str | None = None
    meaning: dict[str, str] = {}
    for path, model, field in keys():
        holder, _, name = path.rpartition(".")
        if holder != section:
            section, meaning = holder, meanings(model)
            lines += _section(path, model)
        lines.append(f"#### `{path}` {{ #{anchor(path)} }}\n\n{_type(field)}{_default(field)}\n\n{meaning[name]}\n")
    return "\n".join(lines)


def anchor(path: str) -> str:
    """Return the anchor of a key; ``[]`` is left out."""
    return path.replace("[]", "")


def _section(path: str, model: type[BaseModel]) -> list[str]:
    holder = path.rpartition(".")[0]
    title = f"`{holder}`" if holder else "Sections"
    more = PAGES.get(holder.partition(".")[0].removesuffix("[]"))
    text = markdown(model.__doc__ or "") if model is not Config else ""
    return [f"## {title}\n", *([f"{text}\n"] if text else []), *([f"More: [{more}]({more}).\n"] if more else [])]


def _type(field: FieldInfo) -> str:
    words = _quantity(field) or _word(field.annotation)
    bounds = [text for constraint in field.metadata if (text := _bound(constraint))]
    return f"{words}{', ' if bounds else ''}{' and '.join(bounds)}"


def _quantity(field: FieldInfo) -> str | None:
    """Return the word for a number that is written with a unit; None for any other value."""
    if get_origin(field.annotation) in {tuple, list, dict}:
        return None
    checks = f"{field.metadata}{field.annotation}"
    return next((word for name, word in _QUANTITIES.items() if name in checks), None)


def _bound(constraint: Any) -> str:
    signs = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
    return " and ".join(
        f"{words} {getattr(constraint, sign)}" for sign, words in signs.items() if hasattr(constraint, sign)
    )


_QUANTITIES: Final = {"parse_duration": "duration", "parse_size": "size"}
_WORDS: Final = {str: "text", int: "number", float: "number", bool: "`true` or `false`", dict: "mapping"}
_NAMES: Final = {"Address": "`host:port`", "Path": "path", "SecretStr": "secret"}


def _word(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in {tuple, list}:
        return f"list of {_word(inner[0])}"
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in inner)
    if origin is dict or origin is None:
        return _plain(origin or annotation)
    # Alternatives, or a type with its checks.
    inner = inner[:1] if origin is Annotated else inner
    return " or ".join(dict.fromkeys(_word(alternative) for alternative in inner if alternative is not type(None)))


def _plain(kind: Any) -> str:
    name = getattr(kind, "__name__", str(kind))
    return _WORDS.get(kind) or _NAMES.get(name) or ("mapping" if issubclass(kind, BaseModel) else name)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "; needed"
    value = field.default
    if value is PydanticUndefined or value is None or isinstance(value, BaseModel):
        return ""
    if _quantity(field) == "duration":
        return f"; default `{format_duration(value)}`"
    if _quantity(field) == "size":
        return f"; default `{_size(value)}`"
    if value in ((), {}):
        return "; default none"
    write = format_duration if "parse_duration" in str(field.annotation) else str
    shown = "[" + ", ".join(map(write, value)) + "]" if isinstance(value, tuple) else str(value)
    return f"; default `{shown.lower() if isinstance(value, bool) else shown}`"


def _size(count: int) -> str:
    """Return a size in the largest unit of which it is a whole number."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count and count % 1024**power == 0:
            return f"{count // 1024**power}{unit}"
    return str(count)
