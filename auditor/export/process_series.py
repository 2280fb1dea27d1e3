"""Series of the auditor's process: ``biasmeter_build_info``, ``process_*``, the codings that it has stored, held days.

In OpenMetrics each series of codings has an exemplar: the exchange coded last, with its trace.
"""

import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from prometheus_client import Counter, Gauge, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from auditor.domain.coding import Coding
from auditor.export.codings import endorses, trace_id

#: Of the whole process, as its jobs are started anew by each reload.
CODINGS: Final = Counter(
    "biasmeter_codings",
    "Codings that this process has stored, by whether a layer endorses: yes, no or unknown.",
    ("deployment", "endorsed"),
    registry=None,
)
HELD_DAYS: Final = Gauge(
    "biasmeter_retention_held_days",
    "Days that are due by PostgreSQL's clock, and are kept until somebody confirms their removal.",
    ("lifetime",),
    registry=None,
)
_ENDORSED: Final = {True: "yes", False: "no", None: "unknown"}
_END: Final = b"# EOF\n"


def process_registry() -> CollectorRegistry:
    """Return a registry with the series of this process."""
    # A second series for each counter, which nothing here uses.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    labels = {"version": version("biasmeter"), "python": platform.python_version()}
    about = Gauge("biasmeter_build_info", "Version of Biasmeter and of Python; always 1.", labels, registry=registry)
    about.labels(**labels).set(1)
    ProcessCollector(registry=registry)
    registry.register(CODINGS)
    registry.register(HELD_DAYS)
    return registry


def count_coding(coding: Coding, facts: Mapping[str, Any]) -> None:
    """Count a stored coding of the exchange with these facts."""
    labels = (
        layer_coding.label if layer_coding is not None else None
        for layer_coding in (coding.selection, coding.elaboration)
    )
    exemplar = {"trace_id": trace_id(facts).hex(), "exchange_id": str(coding.exchange_id)}
    CODINGS.labels(coding.key.deployment, _ENDORSED[endorses(*labels)]).inc(exemplar=exemplar)


def metrics_page(registry: CollectorRegistry, gauges: bytes, accept: str) -> tuple[bytes, str]:
    """Return all series and their content type, in the format that a scraper accepts.

    Parameters
    ----------
    gauges
        Rendered gauges; these have the same lines in Prometheus' text format and in OpenMetrics.
    accept
        The header ``Accept`` of the request.
    """
    write, kind = choose_encoder(accept)
    page = write(registry)
    if page.endswith(_END):
        return page.removesuffix(_END) + gauges + _END, kind
    return page + gauges, kind
