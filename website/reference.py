"""The pages of the series and of the documents."""

from collections.abc import Iterator
from typing import Final

from auditor.export.families import action_family, estimate_families, job_family, silence_family
from auditor.export.process_series import CODINGS, HELD_DAYS, process_registry
from auditor.schemas import DOCUMENTS, file_name
from gateway.recording.telemetry import families

_SERIES: Final = """# Series

What `/metrics` of gateway and auditor export, generated from the code. Labels hold names of the configuration and
fixed codes, never text of requests. An unknown value has no series. Histograms have `_bucket`, `_count` and `_sum`.

| series | kind | labels | meaning |
|---|---|---|---|"""
_SERIES_USED: Final = """
How they are used: [Deploy](deploy.md#prometheus-and-grafana), [Monitoring](monitoring.md).
"""
_DOCUMENTS: Final = """# Documents

The JSON documents that commands write, and their schemas. Each names its schema in `schema`. Unknown values are absent,
or have `missing` with the reason.

| document | content | schema |
|---|---|---|"""
_DOCUMENTS_USED: Final = """
What the numbers mean: [Estimates](estimates.md); the report: [Report](report.md).
"""


def series() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield name, kind, labels and help of each series: the gateway's, then the auditor's."""
    yield from families()
    for family in (*estimate_families([]), job_family({}), silence_family([]), action_family([])):
        labels = family._labelnames  # noqa: SLF001 -- without samples they are nowhere else
        yield family.name, family.type, tuple(labels), family.documentation
    yield f"{CODINGS._name}_total", "counter", CODINGS._labelnames, CODINGS._documentation  # noqa: SLF001 -- as above
    yield HELD_DAYS._name, "gauge", HELD_DAYS._labelnames, HELD_DAYS._documentation  # noqa: SLF001
    for metric in process_registry().collect():
        if metric.name not in {CODINGS._name, HELD_DAYS._name}:  # noqa: SLF001
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            yield name, metric.type, tuple(metric.samples[0].labels), metric.documentation


def series_page() -> str:
    """Write the page of the series."""
    rows = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels) or 'none'} | {text} |"
        for name, kind, labels, text in series()
    ]
    return "\n".join([_SERIES, *rows, _SERIES_USED])


def documents_page() -> str:
    """Write the page of the documents."""
    rows = [
        f"| `{name}` | {(kind.__doc__ or '').strip().splitlines()[0]} | [{file_name(name)}]({file_name(name)}) |"
        for name, kind in DOCUMENTS.items()
    ]
    return "\n".join([_DOCUMENTS, *rows, _DOCUMENTS_USED])
