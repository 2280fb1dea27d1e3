"""Libraries that take long to import, for modules of tests that every run collects and few use."""

import importlib
import importlib.util
import sys
from types import ModuleType


def imported_later(name: str) -> ModuleType:
    """Return a module that is imported when something of it is first used, not when the tests are collected."""
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
