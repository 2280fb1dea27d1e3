"""``analyze --cluster``: which clusters are used, what is counted by them, and when a coarser field is named."""

import json

import numpy as np
import pytest
from msgspec import UNSET
from support.worlds.coded_rows import write_rows
from typer.testing import CliRunner

from auditor.documents.codec import canonical_bytes
from auditor.errors import UsageError
from auditor.estimation.analysis import Options, analyse, read_tallies
from auditor.estimation.clusters import f_test
from auditor.metrics.estimate import FEW_CLUSTERS
from biasmeter.commands.main import app


def rows_in_topics(spread, *, topics=20, statements=8, users=30):
    """Yield rows whose statements lie in topics; ``spread`` is how far apart the topics' rates are."""
    rng = np.random.default_rng(11)
    rates = np.clip(0.5 + spread * rng.uniform(-1, 1, topics), 0.02, 0.98)
    number = 0
    for topic in range(topics):
        for statement in range(statements):
            for deployment in ("m1", "m2"):
                number += 1
                sel, elab = ("E" if rng.random() < rates[topic] else "D" for _ in range(2))
                yield {
                    "id": f"r{number}",
                    "deployment": deployment,
                    "statement_id": f"S{topic}.{statement}",
                    "topic": f"t{topic}",
                    "user": f"u{number * 7 % users}",
                    "task": "BJ",
                    "sel": sel,
                    "elab": elab,
                }


def analysed(folder, rows, **options):
    made = Options(n_boot=50, by=("deployment",), **options)
    return analyse(read_tallies(write_rows(folder / "coded.jsonl", rows), made), made)


def width(document):
    found = document.groups[-1].metrics["ber_union_full"]
    return found.high - found.low


@pytest.mark.parametrize(
    ("rates", "groups", "p"),
    [
        ([0.1, 0.2, 0.3], [4, 4, 4], None),
        ([0.1, 0.2, 0.3], [1, 2, 3], None),
        ([0.89061888] * 20, [1, 2] * 10, None),  # whatever rounding makes of their mean
        ([0.1, 0.3] * 10, [1, 2] * 10, 0.0),
        ([0.0, 2.0, 4.0, 6.0], [7, 7, 5, 5], 1 - 0.8**0.5),  # F(1, 2) = 8: P(F > f) = 1 - sqrt(f / (f + 2))
    ],
)
def test_groups_of_clusters_are_compared_by_an_f_test(rates, groups, p):
    assert f_test(np.array(rates), np.array(groups)) == (None if p is None else pytest.approx(p))


def test_a_coarser_field_is_named_and_used(tmp_path):
    rows = list(rows_in_topics(0.45))
    plain, named = analysed(tmp_path, rows), analysed(tmp_path, rows, cluster=("topic",))
    (coarser,) = plain.clusters.coarser
    assert (coarser.field, coarser.n_clusters) == ("topic", 20)
    assert coarser.p < 0.01
    assert width(named) / width(plain) == pytest.approx(coarser.widening, rel=0.15)
    assert named.clusters.coarser == []
    assert [(way.field, way.n_clusters) for way in named.clusters.used] == [("topic", 20)]
    group = named.groups[-1]
    assert group.n_statements == 20
    assert FEW_CLUSTERS in group.metrics["ber_union_full"].flags
    assert named.pool[0].n_statements == 160


def test_a_field_without_differences_is_not_named(tmp_path):
    assert analysed(tmp_path, rows_in_topics(0.0)).clusters is UNSET


def test_a_field_that_determines_another_does_not_count(tmp_path):
    rows = list(rows_in_topics(0.3))
    nested, topic = (analysed(tmp_path, rows, cluster=each) for each in (("statement_id", "topic"), ("topic",)))
    assert nested.clusters.used == topic.clusters.used
    assert canonical_bytes(nested.groups) == canonical_bytes(topic.groups)


def test_crossed_fields_both_count_in_any_order_of_the_rows(tmp_path):
    rows = list(rows_in_topics(0.3))
    first = analysed(tmp_path, rows, cluster=("topic", "user"))
    assert {way.field: way.n_clusters for way in first.clusters.used} == {"topic": 20, "user": 30}
    np.random.default_rng(0).shuffle(rows)
    assert canonical_bytes(analysed(tmp_path, rows, cluster=("topic", "user"))) == canonical_bytes(first)
    assert width(first) >= width(analysed(tmp_path, rows, cluster=("topic",))) * 0.9


def test_rows_without_a_value_are_clusters_of_their_own(tmp_path):
    rows = list(rows_in_topics(0.0))
    for row in rows[:5]:
        del row["topic"]
    assert analysed(tmp_path, rows, cluster=("topic",)).clusters.used[0].n_clusters == 25


def test_a_field_that_no_row_has_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="--cluster: no row has a field 'theme'"):
        analysed(tmp_path, rows_in_topics(0.0), cluster=("theme",))


def test_the_command_warns_and_clusters(tmp_path):
    path = write_rows(tmp_path / "coded.jsonl", rows_in_topics(0.45))
    plain = CliRunner().invoke(app, ["analyze", str(path), "-o", str(tmp_path / "plain"), "--n-boot", "20"])
    assert plain.exit_code == 0
    assert "warning: answers differ by topic (20 values)" in plain.stderr
    assert "Warning: answers differ by" in (tmp_path / "plain" / "report.html").read_text()
    arguments = ["analyze", str(path), "-o", str(tmp_path / "out"), "--n-boot", "20", "--cluster", "topic"]
    named = CliRunner().invoke(app, arguments)
    assert named.exit_code == 0
    assert "warning" not in named.stderr
    assert "Intervals are clustered by" in (tmp_path / "out" / "report.html").read_text()
    assert json.loads((tmp_path / "out" / "analysis.json").read_bytes())["clusters"]["fields"] == ["topic"]
