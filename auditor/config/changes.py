"""What differs between two configurations, and what of it a reload cannot change."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.config.models import Config
from auditor.config.network import Address
from auditor.config.values import Section, show

#: What running processes hold on to: sockets, processes, files and the store.
_FIXED: Final = ("data_dir", "store", "gateway.listen", "gateway.workers", "gateway.upstream", "auditor")


def find_fixed(old: Config, new: Config) -> tuple[str, ...]:
    """Name the keys that differ and that only a restart can change."""
    return tuple(key for key in _differing(old, new) if any(f"{key}.".startswith(f"{fixed}.") for fixed in _FIXED))


def describe(old: Config, new: Config) -> str:
    """Say what differs in one line: deployments and routes by name, anything else by its key, never a value."""
    named = [
        *_describe_named("deployments", _by_name(old.deployments, "name"), _by_name(new.deployments, "name")),
        *_describe_named("routes", _by_name(old.routes, "model"), _by_name(new.routes, "model")),
    ]
    others = [key for key in _differing(old, new) if key not in {"deployments", "routes"}]
    return "; ".join([*named, *([f"changed: {', '.join(others)}"] if others else [])])


def _differing(old: Section, new: Section, above: str = "") -> Iterator[str]:
    for name in type(old).model_fields:
        before, after = getattr(old, name), getattr(new, name)
        sections = isinstance(before, Section) and isinstance(after, Section)
        if sections and not isinstance(before, Address):  # which is one value in the file
            yield from _differing(before, after, f"{above}{name}.")
        elif before != after:
            yield f"{above}{name}"


def _by_name(sections: Iterable[Section], key: str) -> dict[str, Any]:
    return {getattr(section, key): section for section in sections}


def _describe_named(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    parts = {
        "added": [name for name in new if name not in old],
        "removed": [name for name in old if name not in new],
        "changed": [name for name in new if name in old and new[name] != old[name]],
    }
    for verb, names in parts.items():
        if names:
            yield f"{what} {verb}: {', '.join(map(show, names))}"
