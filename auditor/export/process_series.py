"""Series of the auditor's process: ``biasmeter_build_info`` and ``process_*``."""

import platform
from importlib.metadata import version

from prometheus_client import Gauge
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry


def process_registry() -> CollectorRegistry:
    """Return a registry with the series of this process."""
    registry = CollectorRegistry()
    labels = {"version": version("biasmeter"), "python": platform.python_version()}
    about = Gauge("biasmeter_build_info", "Version of Biasmeter and of Python; always 1.", labels, registry=registry)
    about.labels(**labels).set(1)
    ProcessCollector(registry=registry)
    return registry
