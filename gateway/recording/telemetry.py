"""The gateway's Prometheus series, and their text format.

Label values are names of the configuration and fixed codes, never text of a request. Users build dashboards on these
names, so they do not change.
"""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from gateway import snapshot
from gateway.recording import spool
from gateway.recording.counters import CAPACITY, Counters, Key, read_all

States = Callable[[], Iterable[tuple[str, int]]]  #: deployments, and how their breakers stand

_COUNTERS = {
    "biasmeter_requests": (("endpoint", "route", "deployment", "origin", "status"), "Requests answered."),
    "biasmeter_tokens": (("deployment", "origin", "type"), "Tokens that the deployment reported."),
    "biasmeter_upstream_errors": (("deployment", "origin", "error_type"), "Requests that a deployment failed."),
    "biasmeter_capture": (("outcome",), "Requests to a known model, by what became of their copy."),
    "biasmeter_spool_quarantined_bytes": ((), "Damaged bytes set aside from the spool."),
    "biasmeter_spool_quarantine_dropped_bytes": ((), "Damaged bytes that the full quarantine did not take or keep."),
}
_GAUGES = {
    "biasmeter_in_flight": (("origin",), "Requests being answered now."),
    "biasmeter_deployment_state": (
        ("deployment",),
        "Whether the deployment is asked: 0 yes, 1 with one request as a trial, 2 no.",
    ),
    "biasmeter_spool_bytes": ((), "Captured bytes not yet in the store."),
    "biasmeter_spool_oldest_seconds": ((), "Age of the oldest record in the spool."),
    "biasmeter_key_snapshot_age_seconds": ((), "Since the store last confirmed the client keys."),
}
_SLOW = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
_FAST = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)
_PARTS = tuple(str(bucket) for bucket in range(len(_SLOW) + 1))
_HISTOGRAMS = {
    "biasmeter_request_duration_seconds": (
        ("route", "deployment", "origin"),
        _SLOW,
        "From the request's head to the end of the answer.",
    ),
    "biasmeter_time_to_first_token_seconds": (
        ("route", "deployment", "origin"),
        _SLOW,
        "From the request's head to the first byte of a streamed answer.",
    ),
    "biasmeter_overhead_seconds": (("origin",), _FAST, "Total time less the time spent waiting for the deployment."),
}

_EDGES_US = {name: tuple(round(edge * 1e6) for edge in edges) for name, (_, edges, _) in _HISTOGRAMS.items()}


class Histogram:
    """One histogram of durations. Buckets are stored separately, and summed when they are exported.

    The places of its series are looked up at their first use only.
    """

    __slots__ = ("_counters", "_edges_us", "_key", "_places", "_sum", "_values")

    def __init__(self, counters: Counters, name: str, labels: tuple[str, ...]) -> None:
        self._counters, self._values = counters, counters.values
        self._key = (name, *labels)
        self._edges_us = _EDGES_US[name]
        self._places: list[int | None] = [None] * (len(self._edges_us) + 1)
        self._sum = counters.place((*self._key, "sum_us"))

    def observe(self, us: int) -> None:
        """Add one duration, in microseconds."""
        values, places = self._values, self._places
        bucket = bisect_left(self._edges_us, us)
        place = places[bucket]
        if place is None:
            place = places[bucket] = self._counters.place((*self._key, _PARTS[bucket]))
        values[place] += 1
        values[self._sum] += us


class ExchangeSeries:
    """The series in which the exchanges of one endpoint, route, deployment and origin are counted."""

    __slots__ = ("_counters", "_duration", "_first_token", "_labels", "_overhead", "_places", "_values")

    def __init__(self, counters: Counters, endpoint: str, route: str, deployment: str, origin: str) -> None:
        self._counters, self._values = counters, counters.values
        self._labels = endpoint, route, deployment, origin
        self._duration = Histogram(counters, "biasmeter_request_duration_seconds", self._labels[1:])
        self._overhead = Histogram(counters, "biasmeter_overhead_seconds", (origin,))
        self._first_token: Histogram | None = None
        self._places: dict[int | str, int] = {}

    def count(
        self,
        status: int,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        total_us: int,
        upstream_us: int,
        first_byte_us: int | None,
    ) -> None:
        """Count one exchange; ``first_byte_us`` only of a stream."""
        values, places = self._values, self._places
        values[places.get(status) or self._requests(status)] += 1
        if prompt_tokens is not None:
            values[places.get("prompt") or self._tokens("prompt")] += prompt_tokens
        if completion_tokens is not None:
            values[places.get("completion") or self._tokens("completion")] += completion_tokens
        self._duration.observe(total_us)
        self._overhead.observe(total_us - upstream_us)
        if first_byte_us is not None:
            if self._first_token is None:
                name = "biasmeter_time_to_first_token_seconds"
                self._first_token = Histogram(self._counters, name, self._labels[1:])
            self._first_token.observe(first_byte_us)

    def _requests(self, status: int) -> int:
        self._places[status] = place = self._counters.place(("biasmeter_requests", *self._labels, str(status)))
        return place

    def _tokens(self, kind: str) -> int:
        _, _, deployment, origin = self._labels
        self._places[kind] = place = self._counters.place(("biasmeter_tokens", deployment, origin, kind))
        return place


def forget_gauges(counters: Counters, origins: Iterable[str]) -> None:
    """Set the gauges to 0: a process may continue the counters of one that died."""
    for origin in origins:
        counters.set(("biasmeter_in_flight", origin), 0)


class MetricsPage:
    """Renders the counters of all processes for Prometheus.

    It writes the text format itself, for speed: a worker does this between two requests, with thousands of series.

    Parameters
    ----------
    counters, spool_folder, snapshot_file
        The shared files of the gateway's processes.
    states
        Returns the deployments that were asked so far and the states of their breakers.
    """

    def __init__(self, counters: Path, spool_folder: Path, snapshot_file: Path, states: States = tuple) -> None:
        self._counters = counters
        self._spool = spool_folder
        self._confirmed = snapshot.confirmation(snapshot_file)
        self._states = states

    def render(self) -> bytes:
        """Return the series in Prometheus' text format, version 0.0.4."""
        by_name = _by_name(read_all(self._counters))
        lines: list[str] = []
        for name, (labels, help_text) in _COUNTERS.items():
            lines += _family(f"{name}_total", "counter", help_text, labels, by_name[name])
        for name, (labels, edges, help_text) in _HISTOGRAMS.items():
            lines += _histogram(name, labels, edges, help_text, by_name[name])
        gauges: dict[str, Mapping[Key, float]] = {
            "biasmeter_in_flight": by_name["biasmeter_in_flight"],
            "biasmeter_deployment_state": {(name,): int(state) for name, state in self._states()},
        }
        for name, values in (gauges | dict(self._measured())).items():
            labels, help_text = _GAUGES[name]
            lines += _family(name, "gauge", help_text, labels, values)
        return "\n".join([*lines, ""]).encode()

    def _measured(self) -> Iterator[tuple[str, dict[Key, float]]]:
        """Measure the files of the spool and of the keys; unknown values are left out."""
        backlog = spool.backlog(self._spool)
        yield "biasmeter_spool_bytes", {(): backlog.bytes}
        if backlog.oldest_ms is not None:
            yield "biasmeter_spool_oldest_seconds", {(): max(time.time() - backlog.oldest_ms / 1000, 0)}
        try:
            confirmed = self._confirmed.stat().st_mtime
        except OSError:
            return
        yield "biasmeter_key_snapshot_age_seconds", {(): max(time.time() - confirmed, 0)}


def _by_name(total: Counter[Key]) -> defaultdict[str, dict[Key, int]]:
    by_name: defaultdict[str, dict[Key, int]] = defaultdict(dict)
    for (name, *values), count in total.items():
        by_name[name][tuple(values)] = count
    return by_name


def _family(
    name: str, kind: str, help_text: str, labels: tuple[str, ...], values: Mapping[Key, float]
) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labelled, value in sorted(values.items()):
        shown = f"{{{_labelled(labels, labelled)}}}" if labels else ""
        yield f"{name}{shown} {value}"


def _histogram(
    name: str, labels: tuple[str, ...], edges: tuple[float, ...], help_text: str, counts: Mapping[Key, int]
) -> Iterator[str]:
    by_series: defaultdict[Key, dict[str, int]] = defaultdict(dict)
    for (*values, part), count in counts.items():
        by_series[tuple(values)][part] = count
    yield from _family(name, "histogram", help_text, labels, {})
    shown_edges = [*map(str, edges), "+Inf"]
    for labelled, parts in sorted(by_series.items()):
        shown = _labelled(labels, labelled)
        running = 0
        for part, edge in zip(_PARTS, shown_edges, strict=False):
            running += parts.get(part, 0)
            yield f'{name}_bucket{{{shown},le="{edge}"}} {running}'
        yield f"{name}_count{{{shown}}} {running}"
        yield f"{name}_sum{{{shown}}} {parts.get('sum_us', 0) / 1e6}"


@lru_cache(maxsize=CAPACITY)
def _labelled(labels: tuple[str, ...], values: Key) -> str:
    escaped = (value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for value in values)
    return ",".join(f'{label}="{value}"' for label, value in zip(labels, escaped, strict=True))


def families() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield name, kind, labels and help text of each family that the page can show."""
    for name, (labels, help_text) in _COUNTERS.items():
        yield f"{name}_total", "counter", labels, help_text
    for name, (labels, _, help_text) in _HISTOGRAMS.items():
        yield name, "histogram", labels, help_text
    for name, (labels, help_text) in _GAUGES.items():
        yield name, "gauge", labels, help_text
