"""Read the configuration again on SIGHUP: the new one replaces the old as a whole, or not at all."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from auditor.config.models import Config
from auditor.config.network import Address
from auditor.config.values import Section, show
from auditor.errors import AuditError, UsageError


def on_hangup(reload: Callable[[], None], end: Callable[[], None]) -> None:
    """Call ``reload`` on SIGHUP, or ``end`` if it comes because the terminal of this process has closed."""
    from_terminal = os.isatty(0)

    def hang_up() -> None:
        # A closed terminal is not a terminal any more.
        if from_terminal and not os.isatty(0):
            end()
        else:
            reload()

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)


def reread(current: Config, read: Callable[[], Config]) -> Config:
    """Read the configuration again.

    Raises
    ------
    UsageError
        The configuration is wrong or unchanged, or a change needs a restart. The message is one line.
    """
    try:
        new = read()
    except AuditError as error:
        raise UsageError("; ".join(str(error).splitlines())) from None
    if fixed := find_fixed(current, new):
        raise UsageError(f"{', '.join(fixed)}: changing this needs a restart")
    if new == current:
        raise UsageError("the configuration has not changed")
    return new


#: Keys that running processes cannot change: sockets, processes, files and the store.
_FIXED: Final = ("data_dir", "store", "gateway.listen", "gateway.workers", "auditor")


def find_fixed(old: Config, new: Config) -> tuple[str, ...]:
    """Return the keys that differ and need a restart."""
    return tuple(key for key in _differing(old, new) if any(f"{key}.".startswith(f"{fixed}.") for fixed in _FIXED))


def describe(old: Config, new: Config) -> str:
    """Describe the differences in one line: deployments and routes by name, others by key, without values."""
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
        if sections and not isinstance(before, Address):  # an address is one value in the file
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
