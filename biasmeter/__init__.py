"""Measure the bias of deployed language models, in front of production traffic.

The functions are the commands of the same name over data frames: `code`, `analyze`, `regress`, `difference`, `peers`,
`compare`, `replay_plan`;
`open` reads the store. `pool`, `templates`, `design` and `questions` are the instrument; `measure` and `interval` the
numbers alone. They need the extra ``audit``, and data frames the extra ``frames``.
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from auditor.stats.intervals import Interval
    from biasmeter.comparing import ReplayPlan, compare, replay_plan
    from biasmeter.instruments import design, pool, questions, templates
    from biasmeter.library import CodedRows, analyze, code, difference, peers, regress
    from biasmeter.measuring import interval, measure, measures
    from biasmeter.results import Analysis, Comparison, Figure, Model, PeerResult
    from biasmeter.stored import Store, open  # noqa: A004 -- biasmeter.open(config)

__version__ = version("biasmeter")

#: Where each public name is. They are imported when they are used: the gateway loads none of their libraries.
_MODULES = {
    "Analysis": "biasmeter.results",
    "CodedRows": "biasmeter.library",
    "Comparison": "biasmeter.results",
    "Figure": "biasmeter.results",
    "Interval": "auditor.stats.intervals",
    "Model": "biasmeter.results",
    "PeerResult": "biasmeter.results",
    "ReplayPlan": "biasmeter.comparing",
    "Store": "biasmeter.stored",
    "analyze": "biasmeter.library",
    "code": "biasmeter.library",
    "compare": "biasmeter.comparing",
    "design": "biasmeter.instruments",
    "difference": "biasmeter.library",
    "interval": "biasmeter.measuring",
    "measure": "biasmeter.measuring",
    "measures": "biasmeter.measuring",
    "open": "biasmeter.stored",
    "peers": "biasmeter.library",
    "pool": "biasmeter.instruments",
    "questions": "biasmeter.instruments",
    "regress": "biasmeter.library",
    "replay_plan": "biasmeter.comparing",
    "templates": "biasmeter.instruments",
}
__all__ = [
    "Analysis",
    "CodedRows",
    "Comparison",
    "Figure",
    "Interval",
    "Model",
    "PeerResult",
    "ReplayPlan",
    "Store",
    "analyze",
    "code",
    "compare",
    "design",
    "difference",
    "interval",
    "measure",
    "measures",
    "open",
    "peers",
    "pool",
    "questions",
    "regress",
    "replay_plan",
    "templates",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'biasmeter' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
