"""Build the panels of one deployment: rates by layer and condition, the effect of the prompt, and uncoded responses."""

from grafana_foundation_sdk.builders.bargauge import Panel as BarGauge
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.builders.xychart import Panel as XYChart

from deploy.grafana.links import answers, to_answers_of_condition, uncoded_answers
from deploy.grafana.panels import COUNT, SHARE, bands, bars, estimates, plane, table, with_interval
from deploy.grafana.queries import CHOSEN, THIS, estimate, latest, over_time

_FULL_UNION = ('layer="union"', 'base="full"', THIS)
#: One factor's level (task=CTO) or one cell of the grid (CTO/others/none/skeptical): these have one window each.
_CONDITIONS = 'condition=~".+[=/].+"'
_REPLAYED = (THIS, 'origin="$origin"')


def layers_over_time() -> Timeseries:
    """Draw the four layers' rates on the eligible base."""
    description = (
        "Of the responses with both layers coded, the share that endorses in the selection (sel), in the "
        "elaboration (elab), in both (cor) and in either (union). The table beside has the intervals.\n\n"
        "sel and elab show what an audit of one layer would miss. These are not rates of real traffic: "
        "statements and conditions are chosen for the audit."
    )
    series = estimate("biasmeter_ber", "layer", 'base="eligible"', CHOSEN, THIS)
    shown = estimates("BER by layer, eligible base", description, [over_time("A", series, "{{layer}}")]).min(0)
    return shown.links([answers()])


def layers_now() -> Table:
    """Show the layers' rates on both bases, with their intervals."""
    description = (
        "Rates count one of two sets of responses; do not compare them. eligible: both layers coded. full: "
        "all responses, where an abstention counts as no endorsement (union), or all responses with that "
        "layer (sel, elab). 95 % intervals over statements."
    )
    columns = with_interval("BER", "biasmeter_ber", "layer, base", CHOSEN, THIS)
    shown = table("BER by layer and base", description, ("layer", "base"), columns, width=12)
    return shown.links([answers()])


def reliability() -> Timeseries:
    """Draw the share of endorsing responses that endorse in one layer only."""
    description = (
        "Of the responses that endorse, the share that endorses in one layer only. An audit of one layer "
        "could miss these. It is IR divided by BER union, and absent if nothing endorses."
    )
    drawn = [("one layer", "biasmeter_one_layer_share", [CHOSEN, THIS])]
    shown = bands("One-layer share", description, "deployment", drawn, width=12).min(0).max(1)
    return shown.links([answers()])


def reliability_map() -> XYChart:
    """Put every condition at its IR and DNI."""
    description = (
        "This deployment by its IR (horizontal) and DNI (vertical) under each condition: levels of one "
        "factor and cells of all four, longest window. If points are far apart, a result for one prompt "
        "says little about another. The table below has the intervals. Cells have fewer answers than "
        "levels."
    )
    chosen = (THIS, _CONDITIONS, 'origin="$origin"')
    across = ("IR", estimate("biasmeter_ir", "condition", *chosen))
    return plane(
        "Reliability map by condition",
        description,
        "condition",
        across,
        ("DNI", estimate("biasmeter_dni", "condition", *chosen)),
    )


def conditions() -> Table:
    """Show every condition's estimates, with intervals."""
    by = "condition"
    columns = [
        *with_interval("BER union", "biasmeter_ber", by, *_FULL_UNION, _CONDITIONS, 'origin="$origin"'),
        *with_interval("IR", "biasmeter_ir", by, THIS, _CONDITIONS, 'origin="$origin"'),
        *with_interval("DNI", "biasmeter_dni", by, THIS, _CONDITIONS, 'origin="$origin"'),
        ("coverage", estimate("biasmeter_coverage", by, THIS, _CONDITIONS, 'origin="$origin"'), SHARE),
    ]
    description = (
        "Only probes have conditions, because the plan assigns them. Longest window only. task=CTO has all "
        "probes of that task. CTO/others/none/skeptical is one cell. BJ/self/none/neutral is the baseline. "
        "BER union is on the full base. Free-response tasks have no selection, so they have no IR and no "
        "DNI.\n\n"
        "A number does not hold for another condition. Of many conditions, some are extreme by chance."
    )
    shown = table("By condition", description, (by,), columns)
    return shown.override_by_name("condition", to_answers_of_condition())


def tasks_over_time() -> Timeseries:
    """Draw the union rate of each task."""
    description = (
        "Union rate on the full base for each task, longest window. The task itself changes the rate: never"
        " compare deployments that were asked with different tasks."
    )
    series = estimate("biasmeter_ber", "condition", *_FULL_UNION, 'condition=~"task=.+"', 'origin="$origin"')
    shown = estimates("BER union by task", description, [over_time("A", series, "{{condition}}")]).min(0)
    return shown.links([answers()])


def prompt_range() -> Table:
    """Show how far the rate moves between the levels of one factor."""
    description = (
        "Probes only. Highest minus lowest union rate (full base) over the levels of a factor. The interval"
        " accounts for the choice of the extremes. A range of 40 points over tasks means that the rate of "
        "one task says little about another. The range grows with the number of levels."
    )
    columns = with_interval("range", "biasmeter_ber_range", "over", *_FULL_UNION)
    return table("Range across prompts", description, ("over",), columns, width=12)


def variance_share() -> BarGauge:
    """Show which share of the variance between responses each factor explains."""
    description = (
        "Probes only. Eta squared: the share of the variance between responses that the factor explains. It"
        " depends on which conditions were asked and how often, so do not compare different plans."
    )
    series = estimate("biasmeter_variance_share", "factor", THIS)
    return bars("Share of variance by factor", description, SHARE, [latest("A", series, "{{factor}}")]).max(1)


def exposure() -> Table:
    """Show how much replays and comparisons change this deployment's scores."""
    by = "metric, route, task, replay"
    columns = [
        *with_interval("range", "biasmeter_exposure_range", by, *_REPLAYED),
        *with_interval("lowest", "biasmeter_exposure", by, *_REPLAYED, 'bound="lowest"'),
        *with_interval("highest", "biasmeter_exposure", by, *_REPLAYED, 'bound="highest"'),
    ]
    description = (
        "Result of the latest replay or comparison: the lowest and the highest score that the same "
        "questions gave with different prompts, and the range between them. The 95 % intervals account for "
        "the choice of the extremes. task is the original task of the probes. The panel beside names the "
        "prompt of each score.\n\n"
        "A wide range means that the score depends on the prompt as well as on the deployment. It does not "
        "show which score is right. It grows with the number of prompts that were tried."
    )
    return table("Exposure: range of the scores over prompts", description, tuple(by.split(", ")), columns)


def exposed_by() -> BarGauge:
    """Name the sides that gave the lowest and the highest score."""
    description = (
        "Lowest and highest score of the latest replay, and the prompt that gave it (label side): a task, a "
        "route or the value of a tag. Another one may have the true lowest or highest score. The table beside has the "
        "intervals."
    )
    series = estimate("biasmeter_exposure", "metric, route, task, bound, side", *_REPLAYED)
    shown = latest("A", series, "{{metric}} {{route}}{{task}} {{bound}}: {{side}}")
    return bars("Exposure: prompts of the lowest and the highest score", description, SHARE, [shown])


def exposure_age() -> BarGauge:
    """Show how old what replays came to is."""
    description = (
        "Time since the latest replay or comparison. Its results do not follow later changes: after a new "
        "release, run a new replay."
    )
    age = f"time() - {estimate('biasmeter_exposure_timestamp_seconds', 'origin, route', *_REPLAYED)}"
    return bars("Exposure: age of the latest replay", description, "s", [latest("A", age, "{{origin}} {{route}}")])


def coverage() -> Timeseries:
    """Draw which share of its responses has both layers, and what else there is."""
    description = (
        "Share of all responses with both layers coded, for each window. IR, DNI and rates on the eligible "
        "base describe only this share. If the windows differ, abstention has changed, and these rates may "
        "have changed with it."
    )
    series = estimate("biasmeter_coverage", "window", 'origin="$origin"', 'condition="$condition"', THIS)
    shown = estimates("Coverage by window", description, [over_time("A", series, "{{window}}")]).min(0).max(1)
    return shown.links([uncoded_answers()])


def uncoded() -> BarGauge:
    """Show why responses have no label."""
    description = (
        "Responses without a label, by layer and reason, longest window. no_selection_layer, no_elaboration"
        " and no_claim are structural: there was nothing to code. The others are failures. The bounds in "
        "the report show how much they could change each number."
    )
    series = estimate("biasmeter_uncoded_responses", "layer, reason", THIS, 'origin="$origin"')
    counted = latest("A", series, "{{layer}}: {{reason}}")
    shown = bars("Not coded, and why", description, COUNT, [counted]).decimals(0)
    return shown.links([uncoded_answers()])
