"""Judges and pipeline: agreement among judges and with frozen texts, jobs, age, and how many series there are."""

from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.panels import COUNT, NUMBER, SHARE, estimates, lines
from deploy.grafana.queries import estimate, over_time

_WHO = "{{deployment}} {{origin}}"


def judges() -> list[Timeseries]:
    """Draw what is known of the judges."""
    anchors = [
        over_time(ref, estimate(f"tiltmeter_judge_anchor_agreement{suffix}", "judge"), f"{{{{judge}}}}{name}")
        for ref, suffix, name in (("A", "", ""), ("B", "_low", " lower limit"), ("C", "_high", " upper limit"))
    ]
    kappa = estimate("tiltmeter_judge_kappa", "judge, other, layer")
    return [
        estimates(
            "Judges against each other",
            "Cohen's kappa of every two judges over the probes that both labelled, longest window. 1: always the same "
            "label; 0: as often as chance. It moves with the mix of labels, with the same judges. Judges that agree "
            "can be wrong together: for that there are people's reviews and the anchors.",
            [over_time("A", kappa, "{{judge}} {{other}} {{layer}}")],
            unit=NUMBER,
        )
        .min(-1)
        .max(1)
        .decimals(2),
        estimates(
            "Judges against the anchors",
            "Of the frozen anchor texts, the share that a judge gives their frozen label in its newest run, with 95 % "
            "limits. A fall says that the judge has changed, or what is behind its name: estimates before and after "
            "are readings of two instruments.",
            anchors,
        )
        .min(0)
        .max(1),
    ]


def work() -> list[Timeseries]:
    """Draw whether the audit keeps up, and what it cannot code."""
    age = f"time() - {estimate('tiltmeter_estimate_timestamp_seconds', 'deployment, origin')}"
    reasons = (
        "sum by (origin, layer, reason) (max by (deployment, origin, layer, reason) (tiltmeter_uncoded_responses))"
    )
    return [
        lines(
            "Age of the estimates",
            "Time since the estimates of a deployment were last made. Old estimates stay right for the time they name.",
            "s",
            [over_time("A", age, _WHO)],
        ).min(0),
        lines(
            "Jobs",
            "Jobs of the audit by queue and state, counted in the store: every auditor shows the same.",
            COUNT,
            [over_time("A", estimate("tiltmeter_jobs", "queue, state"), "{{queue}} {{state}}")],
        ).min(0),
        lines(
            "Responses without a label, all deployments",
            "By layer and reason, longest window. waiting: found and not read yet. A reason that grows moves the "
            "eligible base, and with it IR and DNI, without any change in the answers.",
            COUNT,
            [over_time("A", reasons, "{{origin}} {{layer}}: {{reason}}")],
        ).min(0),
        lines(
            "Coverage, lowest and highest of all deployments",
            "Share of responses with both layers coded, probes and audits apart, in the window that has least of it "
            "and in the one that has most.",
            SHARE,
            [
                over_time("A", "min by (origin) (tiltmeter_coverage)", "{{origin}} lowest"),
                over_time("B", "max by (origin) (tiltmeter_coverage)", "{{origin}} highest"),
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
            "Samples of one scrape, by process, and estimates that the budget left no room for: cells go first, then "
            "levels of single factors. What is left out is on the auditor's page.",
            COUNT,
            [
                over_time("A", 'scrape_samples_scraped{job=~"tiltmeter-.+"}', "{{job}} {{instance}}"),
                over_time("B", "max(tiltmeter_series_omitted)", "left out"),
            ],
        ).min(0),
        lines(
            "Duration of a scrape",
            "How long a process took to answer Prometheus. Estimates are written out once, when they are new.",
            "s",
            [over_time("A", 'scrape_duration_seconds{job=~"tiltmeter-.+"}', "{{job}} {{instance}}")],
        ).min(0),
    ]
