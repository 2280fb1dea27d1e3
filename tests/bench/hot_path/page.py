"""The document of a run as a page of Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

from bench.hot_path.report import PROCESSES
from bench.hot_path.scenarios import FURTHER, OPEN_STREAMS, REQUEST_BYTES, STEADY, STREAMS, UNARY

_FAULTS = ["failed", "odd", "others' CPUs"]


def page(found: dict[str, Any]) -> str:
    """Write the tables, and the conditions under which they hold."""
    return "\n".join([
        *_section("Goals", _goals(found)),
        *_section(
            f"One answer: {UNARY.connections} connections, a request of {REQUEST_BYTES} bytes",
            _unary(found, UNARY.name),
        ),
        *_section(f"The same, answered by the deployment after {STEADY.pace_ms} ms", _unary(found, STEADY.name)),
        *_section(
            f"Streams: {STREAMS.connections} at once, {STREAMS.events} events each, {STREAMS.pace_ms} ms apart",
            _streams(found),
        ),
        *_section("One answer, under further loads", _further(found)),
        *_section(f"{OPEN_STREAMS.connections} open streams, and whether answers stay the same", _beside(found)),
        *_section("Behind the hot path", _shipping(found)),
        *_section("Conditions", _conditions(found)),
    ])  # fmt: skip


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]


def _goals(found: dict[str, Any]) -> list[str]:
    rows = []
    for goal in found["goals"]:
        sign = ">=" if goal["at_least"] else "<="
        bounds = [f"{word} {sign} {goal[word]:g}" for word in ("must", "aim") if goal[word] is not None]
        rows.append([goal["what"], _spread(goal["figure"]), ", ".join(bounds), goal["verdict"]])
    return _table(["what", "median (least to most)", "bound", "verdict"], rows)


def _unary(found: dict[str, Any], scenario: str) -> list[str]:
    heads = ["proxy", "CPU µs / request", "of it user", "x nginx", "LiteLLM / it", "requests/s", "p50 / p99 ms"]
    return _table([*heads, *_FAULTS], [
        [*_costs(proxy, scenario), _value(one["per_second"], 0), _waits(one, "whole"), *_faults(one)]
        for proxy in found["proxies"]
        for one in [proxy[scenario]]
        if "missing" not in one["cost_us"]
    ])  # fmt: skip


def _streams(found: dict[str, Any]) -> list[str]:
    heads = ["proxy", "CPU µs / event", "of it user", "x nginx", "LiteLLM / it", "first event later by, p50 / p99 ms"]
    return _table([*heads, *_FAULTS], [
        [*_costs(proxy, STREAMS.name), _waits(one, "added_wait"), *_faults(one)]
        for proxy in found["proxies"]
        for one in [proxy[STREAMS.name]]
        if "missing" not in one["cost_us"]
    ])  # fmt: skip


def _further(found: dict[str, Any]) -> list[str]:
    heads = ["load", "proxy", "CPU µs / request", "of it user", "x nginx", "requests/s", *_FAULTS]
    return _table(heads, [
        [scenario.title, *_costs(proxy, scenario.name)[:4], _value(one["per_second"], 0), *_faults(one)]
        for scenario in FURTHER
        for proxy in found["proxies"]
        for one in [proxy[scenario.name]]
        if "missing" not in one["cost_us"]
    ])  # fmt: skip


def _costs(proxy: dict[str, Any], scenario: str) -> list[str]:
    one = proxy[scenario]
    ratios = [_spread(one["to_nginx"]), _value(one["litellm_to_it"], 0)]
    return [_named(proxy), _spread(one["cost_us"]), _value(one["user_us"]), *ratios]


def _waits(one: dict[str, Any], what: str) -> str:
    return " / ".join(_value(one[f"{what}_{quantile}_us"], 1, 1000) for quantile in ("p50", "p99"))


def _faults(one: dict[str, Any]) -> list[str]:
    return [str(one["failed"]), str(one["odd"]), _value(one["others_cpus"], 2)]


def _beside(found: dict[str, Any]) -> list[str]:
    rows = []
    for proxy in found["proxies"]:
        size = proxy.get("bytes_per_open_stream")
        rows.append([
            _named(proxy),
            "-" if size is None else f"{size / 1000:.1f}",
            f"{proxy['differing']} of {proxy['compared']}",
        ])  # fmt: skip
    return _table(["proxy", "KB per open stream", "answers that differ from the upstream's"], rows)


def _shipping(found: dict[str, Any]) -> list[str]:
    one = found["shipping"]
    captures = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(found["captures"].items()))
    if "missing" in one:
        return [f"Nothing was shipped. The gateway counted: {captures}."]
    heads = ["load", "worker", "parent", "shipper", "PostgreSQL", "worker, parent and shipper x nginx"]
    rows = [
        [scenario, *(f"{each[process]:.1f}" for process in PROCESSES), _spread(each["to_nginx"])]
        for scenario, each in one["each_us"].items()
    ]
    return [
        "CPU µs per exchange, which is a whole stream where there are streams.",
        "",
        *_table(heads, rows),
        "",
        f"{one['exchanges']:,} exchanges, all in the store {one['longest_after_s']} s after a round at the latest.",
        f"The gateway counted: {captures}.",
    ]


def _conditions(found: dict[str, Any]) -> list[str]:
    where = found["conditions"]
    named = ", ".join(f"{name} {where[name]}" for name in ("python", "aiohttp", "uvloop", "msgspec", "kernel"))
    lines = [
        f"- {where['at']}, {where['cpu']}, {where['cpus']} CPUs, {named}; source {where['source']}",
        f"- a call that does nothing takes this Python {where['call_ns']} ns",
        f"- {where['cycles']} cycles of {where['seconds']:g} s a round; medians (least to most) of the rounds in which",
        f"  others used at most {where['quiet_below']} CPUs. `*`: there was no such round, it is of all rounds.",
    ]
    return lines + [f"- not measured: {name}: {reason}" for name, reason in found["missing"].items()]


def _named(proxy: dict[str, Any]) -> str:
    return f"{proxy['name']} {proxy['version']}"


def _value(figure: dict[str, Any], digits: int = 1, per: int = 1) -> str:
    if "missing" in figure:
        return "-"
    return f"{figure['value'] / per:,.{digits}f}{'*' if figure['disturbed'] else ''}"


def _spread(figure: dict[str, Any]) -> str:
    if "missing" in figure:
        return "-"
    digits = 1 if figure["value"] >= 10 else 2
    return f"{_value(figure, digits)} ({figure['low']:,.{digits}f} to {figure['high']:,.{digits}f})"
