"""What ``tiltmeter findings`` says of findings, from their JSON."""

from collections.abc import Mapping, Sequence
from math import log
from typing import Any

Shown = Mapping[str, Any]


def list_lines(shown: Sequence[Shown]) -> list[str]:
    """Give a line a finding."""
    if not shown:
        return ["nothing is found"]
    return [
        f"{one['id']}  {one['first_seen'][:10]}  {one['level']:<11}  {one['state']:<12}  "
        f"{one['deployment']}  {one['metric']}  {_change(one)}"
        for one in shown
    ]


def finding_lines(shown: Shown) -> list[str]:
    """Tell of one finding: what, by which evidence, against which reference, and what people said."""
    evidence = shown["evidence"]
    promise, reference = evidence["promise"], evidence["reference"]
    speaks = -log(promise["alpha"])
    window = shown["window"]
    heard = [f"{name} {value:.2f}" for name, value in evidence["detectors"].items()]
    shaken = "; its days vary more than statements explain" if reference["shaken"] else ""
    return [
        f"{shown['id']}: {shown['level']}, {shown['state']}",
        f"{shown['deployment']}: {shown['metric']} {_change(shown)}",
        f"over {shown['n']} answers to {shown['n_statements']} statements, {window['since']} to {window['until']}",
        f"log evidence (a detector speaks at {speaks:.2f}): {', '.join(heard)}",
        f"against {reference['n_passes']} passes up to {reference['until']}{shaken}",
        f"after {evidence['n_passes']} passes since",
        *(_event(event) for event in shown["events"]),
    ]


def _change(one: Shown) -> str:
    if "value" not in one:
        return f"{one['evidence']['direction']}, by how much cannot be said"
    return f"{100 * one['value']:+.1f} points ({100 * one['low']:+.1f} to {100 * one['high']:+.1f})"


def _event(event: Shown) -> str:
    parts = [f"{event['at'][:19]}  {event['action']}"]
    parts += [f"by {event['by']}"] if "by" in event else []
    parts += [f"with {event['reference']}"] if "reference" in event else []
    return " ".join(parts) + (f": {event['note']}" if "note" in event else "")
