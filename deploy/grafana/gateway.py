"""Build the panels of the gateway: requests, errors, times, tokens, hosts, deployments, and captured exchanges."""

from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries

from deploy.grafana.panels import COUNT, SHARE, lines
from deploy.grafana.queries import over_time, quantile, rate

_REQUESTS = "biasmeter_requests_total"
_ERRORS = "biasmeter_upstream_errors_total"
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
            (
                "Answers per second by deployment and origin. Do not add up origins: probe, replay, judge and peer "
                "are traffic of the audit and count against no client's limit."
            ),
            "reqps",
            [over_time("A", rate(_REQUESTS, "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "Errors of deployments",
            (
                "Requests per second that a deployment failed, by kind: error status, time-out, refused connection,"
                " error inside a stream, incomplete stream. Clients may not notice, because the gateway retries and"
                " uses fallbacks."
            ),
            "reqps",
            [over_time("A", failed, f"{_WHO} {{{{error_type}}}}")],
            width=8,
        ),
        lines(
            "Server errors that clients get",
            (
                "Share of answers with status 5xx by route, after retries and fallbacks. A stream that breaks after"
                " its first byte has status 200; it counts as an error of the deployment."
            ),
            SHARE,
            [over_time("A", share, "{{route}} {{origin}}")],
            width=8,
        ).min(0),
    ]


def times() -> list[Timeseries]:
    """Draw how long answers take, and what the gateway adds."""
    overhead = [
        over_time(ref, quantile(share, "biasmeter_overhead_seconds", "origin"), f"{{{{origin}}}} {name}")
        for ref, share, name in (("A", 0.5, "median"), ("B", 0.99, "99 %"))
    ]
    return [
        lines(
            "Duration, 95 %",
            (
                "Time from the request's head to the end of the answer; 95 % of the requests took no longer. "
                "Computed from buckets, so it is only as exact as the bucket width."
            ),
            "s",
            [over_time("A", quantile(0.95, "biasmeter_request_duration_seconds", "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "Time to first token, 95 %",
            "Streams only: time from the request's head to the first byte of the answer.",
            "s",
            [over_time("A", quantile(0.95, "biasmeter_time_to_first_token_seconds", "deployment, origin"), _WHO)],
            width=8,
        ),
        lines(
            "The gateway's own time",
            (
                "Total time minus the time spent waiting for the deployment. A slow client counts here, because the"
                " gateway waits for it."
            ),
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
            "Tokens per second as the deployments report them. Answers without a usage report are not included.",
            "tokens/s",
            [
                over_time(
                    "A",
                    rate("biasmeter_tokens_total", "deployment, origin, type"),
                    f"{_WHO} {{{{type}}}}",
                )
            ],
        ),
        lines(
            "In flight",
            "Requests being answered at the moment of the scrape.",
            COUNT,
            [over_time("A", "sum by (origin) (biasmeter_in_flight)", "{{origin}}")],
        ).min(0),
    ]


def health() -> list[Timeseries]:
    """Draw which processes answer, and which deployments are asked."""
    return [
        lines(
            "Processes that answer",
            ("1: the process answered the last scrape. 0: it did not, and applications or the audit may be affected."),
            COUNT,
            [over_time("A", 'max by (job, instance) (up{job=~"biasmeter-.+"})', "{{job}} {{instance}}")],
        )
        .min(0)
        .max(1),
        lines(
            "Deployments that are not asked",
            (
                "0: the deployment gets requests. 1: it gets single requests as a trial. 2: it gets none, because "
                "it failed too often. Each host decides on its own; the worst one is shown."
            ),
            COUNT,
            [over_time("A", "max by (deployment) (biasmeter_deployment_state)", "{{deployment}}")],
        )
        .min(0)
        .max(2),
    ]


def copies() -> list[Timeseries]:
    """Draw what becomes of the copies for the audit."""
    return [
        lines(
            "Capture",
            (
                "Requests per second with a known model, by what happened to the copy for the audit. not_sampled "
                "and capture_off are configured; pass_through: an endpoint that is never copied. dropped_*: lost "
                "for the audit, and not at random."
            ),
            "reqps",
            [over_time("A", rate("biasmeter_capture_total", "outcome"), "{{outcome}}")],
            width=8,
        ),
        lines(
            "Waiting for the store",
            "Captured bytes that are not in PostgreSQL yet, by host. Clients never wait for them.",
            "bytes",
            [over_time("A", "max by (instance) (biasmeter_spool_bytes)", "{{instance}}")],
            width=8,
        ).min(0),
        lines(
            "Oldest copy, and age of the keys",
            (
                "Age of the oldest record that waits in the spool (0 if none waits), and time since the store last "
                "confirmed the client keys. Both are a few seconds while the store answers."
            ),
            "s",
            [
                over_time(
                    "A",
                    "max by (instance) (biasmeter_spool_oldest_seconds or 0 * biasmeter_spool_bytes)",
                    "{{instance}} oldest copy",
                ),
                over_time("B", "max by (instance) (biasmeter_key_snapshot_age_seconds)", "{{instance}} keys"),
            ],
            width=8,
        ).min(0),
    ]
