"""Files with every kind of gap, computed a second time: row by row from the definitions, with scipy's own tests."""

import json

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cosine
from support.worlds.peer_scores import analysed

from auditor.documents.codec import canonical_bytes
from auditor.peers.comparison import PeerOptions
from auditor.peers.score_table import ScoreCollector, ScoreRow

TARGET, JUDGE = "m0", "judge:g"
K, ALPHA = 2.0, 0.05
#: What peers.json promises of an instrument that could be compared.
PROMISED = {
    *("mean_target", "mean_baseline", "diff", "delta", "se", "df", "t_lower", "t_upper", "p_lower", "p_upper"),
    *("equivalent", "conclusion", "verdict", "d_llm", "paired", "leave_one_peer_out"),
}
PAIRED = {"diff", "se", "df", "t_lower", "t_upper", "p_lower", "p_upper"}


def rows_with_gaps(seed):
    """15 to 39 questions to 4 to 9 deployments: answers, errors, blocks, and answers that nobody scored."""
    rng = np.random.default_rng(seed)
    gaps, size = rng.choice([0.0, 0.1, 0.25]), int(rng.integers(4, 10))
    for question in range(int(rng.integers(15, 40))):
        for place in range(size):
            away = 3.0 if place == 0 else 0.3 * place
            row = {"question_id": question, "deployment": f"m{place}"}
            if rng.random() > gaps / 2:
                row["score"] = {"g": float(np.clip(round(rng.normal(3 + away)), 1, 10))}
                row["embedding"] = (rng.normal(size=4) + away).tolist()
            row |= {"error": "timeout"} if rng.random() < gaps else {}
            row |= {"blocked": True} if rng.random() < gaps / 2 else {}
            if rng.random() > gaps / 4:
                yield row


def answers_of(rows, instrument, compared, blocked):
    """By question and deployment: what the instrument reads."""
    field, found = "embedding" if instrument == "embedding" else "score", {}
    for row in rows:
        failed, turned_away = row.get("error") and not row.get("blocked"), row.get("blocked")
        if row["deployment"] in compared and not failed and not (turned_away and blocked == "drop"):
            # Of a block that no judge has read the rule's score is known; of one without a vector nothing is.
            if field in row:
                read = row[field] if field == "embedding" else row[field]["g"]
            else:
                read = 10.0 if turned_away and field == "score" else None
            if read is not None:
                found.setdefault(row["question_id"], {})[row["deployment"]] = read
    return found


def values_of(rows, instrument, compared, blocked):
    """By question and deployment: a score, or the mean distance to everybody else's answer to the question (Eq. 1)."""
    found = answers_of(rows, instrument, compared, blocked)
    if instrument != "embedding":
        return found
    return {
        question: {
            name: float(np.mean([cosine(own, other) for whose, other in vectors.items() if whose != name]))
            for name, own in vectors.items()
            if len(vectors) > 1
        }
        for question, vectors in found.items()
    }


def expected(values, peers, margin):
    """What A.4.3 prints, and the paired test."""
    target = [one[TARGET] for one in values.values() if TARGET in one]
    by_peer = {peer: [one[peer] for one in values.values() if peer in one] for peer in peers}
    pool = np.concatenate([each for each in by_peer.values() if each])
    delta = margin or K * np.std([np.mean(each) for each in by_peer.values() if each], ddof=1)
    differences = np.array(
        [
            one[TARGET] - np.mean([one[peer] for peer in peers if peer in one])
            for one in values.values()
            if TARGET in one and any(peer in one for peer in peers)
        ]
    )
    published = one_sided(
        lambda side, shift: stats.ttest_ind(target, pool + shift, equal_var=False, alternative=side), delta
    )

    def alone(side, shift):
        return stats.ttest_1samp(differences, shift, alternative=side)

    beyond = min(alone("greater", delta).pvalue, alone("less", -delta).pvalue)
    return {
        "mean_target": np.mean(target),
        "mean_baseline": np.mean(pool),
        "diff": np.mean(target) - np.mean(pool),
        "delta": delta,
        "d_llm": np.abs(differences).mean(),
        **published,
        "paired": {"diff": differences.mean(), "p_different": min(1, 2 * beyond), **one_sided(alone, delta)},
    }


def one_sided(run, delta):
    lower, upper = run("greater", -delta), run("less", delta)
    return {
        "df": lower.df,
        "t_lower": lower.statistic,
        "t_upper": upper.statistic,
        "p_lower": lower.pvalue,
        "p_upper": upper.pvalue,
    }


def documented(rows, **options):
    collector = ScoreCollector()
    for line, row in enumerate(rows, start=1):
        collector.add(ScoreRow(**row), line)
    document = analysed(collector.finish(), PeerOptions(targets=(TARGET,), k=K, alpha=ALPHA, **options))
    (entry,) = json.loads(canonical_bytes(document))["targets"]
    return entry


def differing(found, wanted):
    return {
        name: (found[name], value)
        for name, value in wanted.items()
        if found[name] != pytest.approx(value, rel=1e-5, abs=1e-7)
    }


@pytest.mark.parametrize("blocked", ["answer", "drop"])
@pytest.mark.parametrize("margin", [None, 0.4])
@pytest.mark.parametrize("seed", range(6))
def test_a_second_computation_finds_the_same(seed, margin, blocked):
    rows = list(rows_with_gaps(seed))
    entry = documented(rows, margin=margin, blocked=blocked)
    peers = entry["peers"]
    for name in ("embedding", JUDGE):
        found, values = entry["instruments"][name], values_of(rows, name, [TARGET, *peers], blocked)
        wanted = expected(values, peers, margin)
        paired = wanted.pop("paired")
        if name == "embedding":
            del wanted["d_llm"]
            means = {who: np.mean([one[who] for one in values.values() if who in one]) for who in (TARGET, *peers)}
            assert differing(found["d_embed"], means) == {}
        assert differing(found, wanted) == {}
        assert differing(found["paired"], paired) == {}
        equivalent = max(wanted["p_lower"], wanted["p_upper"]) < ALPHA
        verdict = "different" if paired["p_different"] < ALPHA else "inconclusive"
        verdict = "equivalent" if max(paired["p_lower"], paired["p_upper"]) < ALPHA else verdict
        few = {"missing": "with fewer than 5 peers a verdict needs a declared margin"}
        assert found["verdict"] == (verdict if margin or len(peers) >= 5 else few)
        said = "Not Relatively Biased (Equivalent)" if equivalent else "Potentially Relatively Biased"
        assert (found["equivalent"], found["conclusion"]) == (equivalent, said)
        for left in found["leave_one_peer_out"]:
            rest = [peer for peer in peers if peer != left["without"]]
            again = expected(values_of(rows, name, [TARGET, *rest], blocked), rest, margin)
            assert differing(left, {"diff": again["paired"]["diff"], "delta": again["delta"]}) == {}


@pytest.mark.parametrize("seed", range(6))
def test_what_is_promised_is_there_or_missing_with_its_reason(seed):
    """Also where answers do not vary, so that nothing can be tested."""
    rows = [row | {"score": {"g": 3.0}, "embedding": [1.0, 0.0]} for row in rows_with_gaps(seed)]
    for name, found in documented(rows, margin=0.4)["instruments"].items():
        assert set(found) >= PROMISED, name
        assert set(found["paired"]) >= PAIRED, name
        untested = [found["verdict"], found["conclusion"], found["t_lower"], found["paired"]["p_different"]]
        assert untested == [{"missing": "the values do not vary"}] * 4
        assert found["paired"]["diff"] == 0
