"""Mark on every panel when a measure reached an alarm level, with its value at that time, and when a release began."""

from typing import Final

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery

from deploy.grafana.panels import SOURCE

_REACHED: Final = "biasmeter:drift_alarm:reached"
_SERIES: Final = "deployment, metric"
#: Marks are asked for at this step: each is what was not there one step before. Over more than 38 days Grafana takes
#: longer steps, and what began between two of them has no mark: the table of levels has it.
_STEP: Final = "5m"


def findings(matchers: str) -> AnnotationQuery:
    """Mark the moments at which alarms began, with value, 95 % limits and number of responses of the chosen window."""
    began = f"{_REACHED}{{{matchers}}} unless {_REACHED}{{{matchers}}} offset {_STEP}"
    carried = [
        _carried("value", 'round(100 * biasmeter:watched:value{window="$window"}, 0.1)'),
        _carried("low", 'round(100 * biasmeter:watched:low{window="$window"}, 0.1)'),
        _carried("high", 'round(100 * biasmeter:watched:high{window="$window"}, 0.1)'),
        _carried("n", 'biasmeter:watched:responses{window="$window"}'),
    ]
    return (
        AnnotationQuery()
        .name("Findings")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("red")
        .expr(" ".join([f'label_replace({began}, "window", "$window", "", "")', *carried]))
        .step(_STEP)
        .title_format("{{deployment}}, {{metric}}: {{level}}")
        .text_format(
            "{{metric}} over {{window}} at that time: {{value}} % (95 % limits {{low}} to {{high}} %, n = "
            "{{n}}). The finding has the change from the reference and what people did about it."
        )
        .tag_keys("deployment,metric,level")
    )


def releases(matchers: str) -> AnnotationQuery:
    """Mark the first day of the reference in force: of a release that was accepted, or of the monitoring."""
    return (
        AnnotationQuery()
        .name("Releases")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("blue")
        # Grafana takes the value as the time of the mark, in milliseconds.
        .expr(f"1000 * max by (deployment) (biasmeter_reference_since_seconds{{{matchers}}})")
        .use_value_for_time(True)
        .step(_STEP)
        .title_format("{{deployment}}: reference begins")
        .text_format(
            "From this day on answers are the reference with which later ones are compared. The deployment's page in "
            "the console has the release and who accepted it."
        )
        .tag_keys("deployment")
    )


def _carried(label: str, shown: str) -> str:
    """Write a value into a label, ``?`` where there is none: of a sample, a mark shows the labels alone."""
    known = f'count_values by ({_SERIES}) ("{label}", {shown})'
    unknown = f'label_replace(group by ({_SERIES}) ({_REACHED}), "{label}", "?", "", "")'
    return f"* on ({_SERIES}) group_left ({label}) ({known} or on ({_SERIES}) {unknown})"
