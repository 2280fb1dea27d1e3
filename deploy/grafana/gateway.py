"""The gateway at work: requests, errors, times, tokens, hosts, deployments that are asked, copies kept and lost."""

from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.panels import COUNT, SHARE, lines
from deploy.grafana.queries import over_time, quantile, rate

_REQUESTS = "tiltmeter_requests_total"
_ERRORS = "tiltmeter_upstream_errors_total"
_SERVER_ERROR = 'status=~"5.."'
_WHO = "{{deployment}} {{origin}}"


def requests() -> list[Timeseries]:
    """Draw requests, what of them failed, and what is under way."""
    failed = (
        f"{rate(_ERRORS, 'deployment, origin, error_type')} "
        f"or on (deployment, origin) 0 * {rate(_REQUESTS, 'deployment, origin')}"
    )
    share = (
        f"({rate(_REQUESTS, 'route, origin', _SERVER_ERROR)} "
        f"or 0 * {rate(_REQUESTS, 'route, origin')}) / {rate(_REQUESTS, 'route, origin')}"
    )
    return [
        lines(
            "Requests",
            "Answers a second, by deployment and origin. Origins are never added up: probe, replay, judge and peer are "
            "the audit's own traffic, and count against no client's limit.",
            "reqps",
            [over_time("A", rate(_REQUESTS, "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "Errors of deployments",
            "Requests a second that a deployment failed, by kind: error statuses, time-outs, refused connections, "
            "errors inside streams, streams cut short. Clients may not have seen them: retries and fallbacks answer.",
            "reqps",
            [over_time("A", failed, f"{_WHO} {{{{error_type}}}}")],
            width=8,
        ),
        lines(
            "Server errors to whoever asked",
            "Share of answers with status 5xx, after retries and fallbacks, by route. A stream that breaks after its "
            "first byte has status 200 and is counted among the deployments' errors.",
            SHARE,
            [over_time("A", share, "{{route}} {{origin}}")],
            width=8,
        ).min(0),
    ]


def times() -> list[Timeseries]:
    """Draw how long answers take, and what the gateway adds."""
    overhead = [
        over_time(ref, quantile(share, "tiltmeter_overhead_seconds", "origin"), f"{{{{origin}}}} {name}")
        for ref, share, name in (("A", 0.5, "median"), ("B", 0.99, "99 %"))
    ]
    return [
        lines(
            "Duration, 95 %",
            "From the request's head to the end of the answer: 95 % of the requests took no longer. From buckets, so "
            "exact only to the width of a bucket.",
            "s",
            [over_time("A", quantile(0.95, "tiltmeter_request_duration_seconds", "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "Time to first token, 95 %",
            "Streams only: from the request's head to the first byte of the answer.",
            "s",
            [over_time("A", quantile(0.95, "tiltmeter_time_to_first_token_seconds", "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "The gateway's own time",
            "Total time less the time spent waiting for the deployment. A slow reader counts here: the gateway waits "
            "for it too.",
            "s",
            overhead,
            width=8,
        ),
    ]


def usage() -> list[Timeseries]:
    """Draw tokens, and requests under way."""
    return [
        lines(
            "Tokens",
            "Tokens a second as the deployments report them. Answers without a usage report are missing here.",
            "tokens/s",
            [
                over_time(
                    "A",
                    rate("tiltmeter_tokens_total", "deployment, origin, type"),
                    f"{_WHO} {{{{type}}}}",
                )
            ],
        ),
        lines(
            "In flight",
            "Requests being answered at the moment of the scrape.",
            COUNT,
            [over_time("A", "sum by (origin) (tiltmeter_in_flight)", "{{origin}}")],
        ).min(0),
    ]


def health() -> list[Timeseries]:
    """Draw which processes answer, and which deployments are asked."""
    return [
        lines(
            "Processes that answer",
            "1: the last scrape of this process was answered; 0: it was not, and applications or the audit may wait.",
            COUNT,
            [over_time("A", 'max by (job, instance) (up{job=~"tiltmeter-.+"})', "{{job}} {{instance}}")],
        )
        .min(0)
        .max(1),
        lines(
            "Deployments that are not asked",
            "0: asked; 1: asked with one request as a trial; 2: not asked, because it failed too often. The worst host "
            "is shown: each has breakers of its own.",
            COUNT,
            [over_time("A", "max by (deployment) (tiltmeter_deployment_state)", "{{deployment}}")],
        )
        .min(0)
        .max(2),
    ]


def copies() -> list[Timeseries]:
    """Draw what becomes of the copies for the audit."""
    return [
        lines(
            "Capture",
            "Requests a second with a known model, by what became of their copy. not_sampled and capture_off were "
            "asked for. dropped_*: lost for the audit, and not at random.",
            "reqps",
            [over_time("A", rate("tiltmeter_capture_total", "outcome"), "{{outcome}}")],
            width=8,
        ),
        lines(
            "Waiting for the store",
            "Captured bytes that have not reached PostgreSQL, by host. Clients never wait for them.",
            "bytes",
            [over_time("A", "max by (instance) (tiltmeter_spool_bytes)", "{{instance}}")],
            width=8,
        ).min(0),
        lines(
            "Oldest copy, and age of the keys",
            "Age of the oldest record that waits (0 where none waits), and time since the store last confirmed the "
            "client keys. Both stay at seconds while the store answers.",
            "s",
            [
                over_time(
                    "A",
                    "max by (instance) (tiltmeter_spool_oldest_seconds or 0 * tiltmeter_spool_bytes)",
                    "{{instance}} oldest copy",
                ),
                over_time("B", "max by (instance) (tiltmeter_key_snapshot_age_seconds)", "{{instance}} keys"),
            ],
            width=8,
        ).min(0),
    ]
