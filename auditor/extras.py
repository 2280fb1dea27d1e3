"""Name the optional part of the installation (the extra) that a module belongs to.

A gateway host installs the base alone. A command that needs more ends there with one line instead of a traceback.
"""

import re
from importlib.metadata import requires
from typing import Final

_REQUIREMENT: Final = re.compile(r"(?P<distribution>[\w.-]+)[^;]*;.*\bextra == ['\"](?P<extra>[\w-]+)['\"]")
#: Extras of people who change the project; what they have in common with others is named by the others.
_OF_DEVELOPERS: Final = frozenset({"dev", "docs", "sbom"})
#: Distributions whose module has another name.
_MODULES: Final = {"opentelemetry_proto": "opentelemetry"}


def missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return a sentence about the module that was not found and the extra to install; None if no extra has it."""
    module = (error.name or "").partition(".")[0]
    extra = _extras().get(module)
    if extra is None:
        return None
    return f"{module}, which is not installed; run: pip install 'biasmeter[{extra}]'"


def _extras() -> dict[str, str]:
    """Map each module that an extra installs to the first such extra in the order of their names."""
    extras: dict[str, str] = {}
    for requirement in requires("biasmeter") or ():
        parts = _REQUIREMENT.match(requirement)
        if parts is not None and parts["extra"] not in _OF_DEVELOPERS:
            distribution = parts["distribution"].replace("-", "_").lower()
            extras.setdefault(_MODULES.get(distribution, distribution), parts["extra"])
    return extras
