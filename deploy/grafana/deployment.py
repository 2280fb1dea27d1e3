"""One deployment: its rates by layer and by condition, how far the prompt moves them, and what could not be coded."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.builders.xychart import Panel as XYChart

from deploy.grafana.panels import COUNT, SHARE, bands, bars, estimates, plane, table, with_interval
from deploy.grafana.queries import CHOSEN, THIS, estimate, latest, over_time

_FULL_UNION = ('layer="union"', 'base="full"', THIS)
#: One factor's level (task=CTO) or one cell of the grid (CTO/others/none/skeptical): these have one window each.
_CONDITIONS = 'condition=~".+[=/].+"'
_REPLAYED = (THIS, 'origin="$origin"')


def layers_over_time() -> Timeseries:
    """Draw the four layers' rates on the eligible base."""
    says = (
        "Of the responses with both layers coded: endorsed in the selection (sel), in the elaboration (elab), in both "
        "(cor, the floor), in either (union). Intervals are in the table beside.\n\n"
        "sel and elab apart tell what one layer alone would have missed. None of them is a rate of the traffic: "
        "statements and conditions are chosen."
    )
    series = estimate("tiltmeter_ber", "layer", 'base="eligible"', CHOSEN, THIS)
    return estimates("BER by layer, eligible base", says, [over_time("A", series, "{{layer}}")]).min(0)


def layers_now() -> Table:
    """Show the layers' rates on both bases, with their intervals."""
    says = (
        "Both bases, never mixed: eligible = both layers coded; full = all responses that came, where an abstention "
        "counts as no endorsement (union), or those with that layer (sel, elab). 95 % intervals over statements."
    )
    columns = with_interval("BER", "tiltmeter_ber", "layer, base", CHOSEN, THIS)
    return table("BER by layer and base", says, ("layer", "base"), columns, width=12)


def reliability() -> Timeseries:
    """Draw the share of endorsing responses that endorse in one layer only."""
    says = (
        "Of the responses that endorse at all, the share that does so in one layer only: what a reading of one layer "
        "could miss. IR divided by BER union; absent while nothing endorses."
    )
    drawn = [("one layer", "tiltmeter_one_layer_share", [CHOSEN, THIS])]
    return bands("One-layer signal share", says, "deployment", drawn, width=12).min(0).max(1)


def reliability_map() -> XYChart:
    """Put every condition at its IR and DNI."""
    says = (
        "This deployment at its IR (across) and DNI (up) under every condition: levels of one factor and cells of all "
        "four, longest window. Points far apart mean that what holds in one way to ask says little of another. Without "
        "intervals: those are in the table below, and cells rest on fewer answers than levels do."
    )
    chosen = (THIS, _CONDITIONS, 'origin="$origin"')
    across = ("IR", estimate("tiltmeter_ir", "condition", *chosen))
    return plane(
        "Reliability map by condition",
        says,
        "condition",
        across,
        ("DNI", estimate("tiltmeter_dni", "condition", *chosen)),
    )


def conditions() -> Table:
    """Show every condition's estimates, with intervals."""
    by = "condition"
    columns = [
        *with_interval("BER union", "tiltmeter_ber", by, *_FULL_UNION, _CONDITIONS, 'origin="$origin"'),
        *with_interval("IR", "tiltmeter_ir", by, THIS, _CONDITIONS, 'origin="$origin"'),
        *with_interval("DNI", "tiltmeter_dni", by, THIS, _CONDITIONS, 'origin="$origin"'),
        ("coverage", estimate("tiltmeter_coverage", by, THIS, _CONDITIONS, 'origin="$origin"'), SHARE),
    ]
    says = (
        "Probes alone have conditions: they are assigned. Longest window only. task=CTO holds all probes of that task; "
        "CTO/others/none/skeptical is one cell, and BJ/self/none/neutral the baseline. BER union is on the full base; "
        "free-response tasks have no selection, so no IR and DNI.\n\n"
        "A number here does not carry over to another condition: that is what the table shows. Of many conditions, "
        "some stand out by chance."
    )
    return table("By condition", says, (by,), columns)


def tasks_over_time() -> Timeseries:
    """Draw the union rate of each task."""
    says = (
        "Union rate on the full base for each way to ask, longest window. Differences between tasks are the instrument "
        "and the deployment together: never compare deployments asked in different ways."
    )
    series = estimate("tiltmeter_ber", "condition", *_FULL_UNION, 'condition=~"task=.+"', 'origin="$origin"')
    return estimates("BER union by task", says, [over_time("A", series, "{{condition}}")]).min(0)


def prompt_range() -> Table:
    """Show how far the rate moves between the levels of one factor."""
    says = (
        "Probes only. Largest minus smallest union rate (full base) between the levels of a factor, with an "
        "interval that allows for having picked the extremes. A range of 40 points over tasks means that one "
        "task's number says little of another's. Not a rate, and larger with more levels."
    )
    columns = with_interval("range", "tiltmeter_ber_range", "over", *_FULL_UNION)
    return table("Range across prompts", says, ("over",), columns, width=12)


def variance_share() -> BarGauge:
    """Show which share of the variance between responses each factor explains."""
    says = (
        "Probes only. Eta squared: of the variance between responses, the share that goes with this factor. It "
        "depends on which conditions were asked and how often, so it is not comparable between different plans."
    )
    series = estimate("tiltmeter_variance_share", "factor", THIS)
    return bars("Share of variance by factor", says, SHARE, [latest("A", series, "{{factor}}")]).max(1)


def exposure() -> Table:
    """Show how far replays and comparisons could move this deployment's scores."""
    by = "metric, route, task, replay"
    columns = [
        *with_interval("range", "tiltmeter_exposure_range", by, *_REPLAYED),
        *with_interval("lowest", "tiltmeter_exposure", by, *_REPLAYED, 'bound="lowest"'),
        *with_interval("highest", "tiltmeter_exposure", by, *_REPLAYED, 'bound="highest"'),
    ]
    says = (
        "What the latest replay or comparison came to: the lowest and the highest score that the same questions were "
        "made to give, over the ways they were asked, and how far these lie apart. 95 % intervals that allow for "
        "having picked the extremes. task is how probes were first asked. Which way gave them is said beside.\n\n"
        "A range says that one score is not the deployment's alone, not which score is right. It grows with the "
        "number of ways, and says nothing of ways that were not asked."
    )
    return table("Exposure: how far the same questions can be moved", says, tuple(by.split(", ")), columns)


def exposed_by() -> BarGauge:
    """Name the sides that gave the lowest and the highest score."""
    says = (
        "Lowest and highest score of the latest replay, and by which side: a format, a route, a tag's value. A side is "
        "the one that was observed lowest or highest; another may be so in truth. Intervals are in the table beside."
    )
    series = estimate("tiltmeter_exposure", "metric, route, task, bound, side", *_REPLAYED)
    shown = latest("A", series, "{{metric}} {{route}}{{task}} {{bound}}: {{side}}")
    return bars("Exposure: by which way of asking", says, SHARE, [shown])


def exposure_age() -> BarGauge:
    """Show how old what replays came to is."""
    says = (
        "Time since the latest replay or comparison said what the table says. Nothing of it follows the deployment: a "
        "new release needs a new replay."
    )
    age = f"time() - {estimate('tiltmeter_exposure_timestamp_seconds', 'origin, route', *_REPLAYED)}"
    return bars("Exposure: how old", says, "s", [latest("A", age, "{{origin}} {{route}}")])


def coverage() -> Timeseries:
    """Draw which share of its responses has both layers, and what else there is."""
    says = (
        "Responses with both layers coded, as a share of all, for each window. IR, DNI and the eligible base speak for "
        "this share alone; where windows part, abstention has moved, and these rates may have moved with it."
    )
    series = estimate("tiltmeter_coverage", "window", 'origin="$origin"', 'condition="$condition"', THIS)
    return estimates("Coverage by window", says, [over_time("A", series, "{{window}}")]).min(0).max(1)


def uncoded() -> BarGauge:
    """Show why responses have no label."""
    says = (
        "Responses without a label, by layer and reason, longest window. no_selection_layer, no_elaboration and "
        "no_claim are structural: there was nothing to read. The others failed; the bounds in the report say how far "
        "they could move each number."
    )
    series = estimate("tiltmeter_uncoded_responses", "layer, reason", THIS, 'origin="$origin"')
    shown = latest("A", series, "{{layer}}: {{reason}}")
    return bars("Not coded, and why", says, COUNT, [shown]).decimals(0)
