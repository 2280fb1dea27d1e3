"""Measure the bias of deployed language models, in front of production traffic.

The functions are the commands of the same name over data frames: `code`, `analyze`, `peers`; `open` reads the store.
They need the extra ``audit``, and data frames the extra ``frames``.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from biasmeter.library import Analysis, CodedRows, Figure, PeerResult, analyze, code, peers
    from biasmeter.stored import Store, open  # noqa: A004 -- biasmeter.open(config)

__version__ = version("biasmeter")

#: Where each public name is. They are imported when they are used: the gateway loads none of their libraries.
_MODULES = {
    "Analysis": "library",
    "CodedRows": "library",
    "Figure": "library",
    "PeerResult": "library",
    "Store": "stored",
    "analyze": "library",
    "code": "library",
    "open": "stored",
    "peers": "library",
}
__all__ = ["Analysis", "CodedRows", "Figure", "PeerResult", "Store", "analyze", "code", "open", "peers"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'biasmeter' has no attribute {name!r}")
    return getattr(import_module(f"biasmeter.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
