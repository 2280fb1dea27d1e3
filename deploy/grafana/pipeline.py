"""Build the panels of judges and pipeline: agreement of judges, jobs, age of estimates, and number of series."""

from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.panels import COUNT, NUMBER, SHARE, estimates, lines
from deploy.grafana.queries import estimate, over_time, rate

_WHO = "{{deployment}} {{origin}}"


def judges() -> list[Timeseries]:
    """Draw what is known of the judges."""
    anchors = [
        over_time(ref, estimate(f"biasmeter_judge_anchor_agreement{suffix}", "judge"), f"{{{{judge}}}}{name}")
        for ref, suffix, name in (("A", "", ""), ("B", "_low", " lower limit"), ("C", "_high", " upper limit"))
    ]
    kappa = estimate("biasmeter_judge_kappa", "judge, other, layer")
    return [
        estimates(
            "Judges against each other",
            (
                "Cohen's kappa of each pair of judges on the probes that both labelled, longest window. 1: always "
                "the same label. 0: agreement as by chance. It also changes with the mix of labels. Judges that "
                "agree can all be wrong; reviews by people and anchor texts check for that."
            ),
            [over_time("A", kappa, "{{judge}} {{other}} {{layer}}")],
            unit=NUMBER,
        )
        .min(-1)
        .max(1)
        .decimals(2),
        estimates(
            "Judges against the anchors",
            (
                "Share of the anchor texts that a judge labelled as expected in its newest run, with 95 % limits. "
                "If it falls, the judge has changed, or the model behind its name: do not compare estimates from "
                "before and after."
            ),
            anchors,
        )
        .min(0)
        .max(1),
    ]


def work() -> list[Timeseries]:
    """Draw whether the audit keeps up, and what it cannot code."""
    age = f"time() - {estimate('biasmeter_estimate_timestamp_seconds', 'deployment, origin')}"
    reasons = (
        "sum by (origin, layer, reason) (max by (deployment, origin, layer, reason) (biasmeter_uncoded_responses))"
    )
    return [
        lines(
            "Age of the estimates",
            (
                "Time since the estimates of a deployment were made. Old estimates stay valid for the time that "
                "they name."
            ),
            "s",
            [over_time("A", age, _WHO)],
        ).min(0),
        lines(
            "Jobs",
            (
                "Jobs of the audit by queue and state. All auditors show the same numbers, because they count in "
                "the store."
            ),
            COUNT,
            [over_time("A", estimate("biasmeter_jobs", "queue, state"), "{{queue}} {{state}}")],
        ).min(0),
        lines(
            "Codings",
            (
                "Answers coded per second, by whether a layer endorses. It shows the audit's work and is no estimate: "
                "answers are not weighted. The points are exemplars: answers with the trace of their client."
            ),
            "cps",
            [over_time("A", rate("biasmeter_codings_total", "endorsed"), "endorses: {{endorsed}}").exemplar(True)],
        ).min(0),
        lines(
            "Responses without a label, all deployments",
            (
                "By layer and reason, longest window. waiting: found but not coded yet. If a reason grows, the "
                "eligible base changes, and IR and DNI with it, even if the answers do not change."
            ),
            COUNT,
            [over_time("A", reasons, "{{origin}} {{layer}}: {{reason}}")],
        ).min(0),
        lines(
            "Coverage, lowest and highest of all deployments",
            (
                "Share of responses with both layers coded, probes and audit profiles apart, in the window with the"
                " lowest and in the one with the highest share."
            ),
            SHARE,
            [
                over_time("A", "min by (origin) (biasmeter_coverage)", "{{origin}} lowest"),
                over_time("B", "max by (origin) (biasmeter_coverage)", "{{origin}} highest"),
            ],
        )
        .min(0)
        .max(1),
    ]


def series() -> list[Timeseries]:
    """Draw what Prometheus has to take in."""
    return [
        lines(
            "Series",
            (
                "Samples per scrape by process, and estimates left out because the series budget is used up: cells "
                "first, then levels of single factors. The auditor's API has all of them."
            ),
            COUNT,
            [
                over_time("A", 'scrape_samples_scraped{job=~"biasmeter-.+"}', "{{job}} {{instance}}"),
                over_time("B", "max(biasmeter_series_omitted)", "left out"),
            ],
        ).min(0),
        lines(
            "Duration of a scrape",
            "Time that a process took to answer Prometheus. Estimates are rendered once per snapshot.",
            "s",
            [over_time("A", 'scrape_duration_seconds{job=~"biasmeter-.+"}', "{{job}} {{instance}}")],
        ).min(0),
    ]
