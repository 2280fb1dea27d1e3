"""Simulated audits whose templates differ at random: their tallies, and the components that they have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from auditor.counting.conditions import Levels
from auditor.counting.joint import LabelPair
from auditor.counting.tallies import GroupKey, Tallies, TallyBuilder

#: The perspectives and the tones of the one-factor-at-a-time design, with the baseline.
PERSPECTIVES = tuple(
    ("BJ", each, "none", "neutral") for each in ("self", "others", "historical", "institutional", "media", "famous")
)
TONES = tuple(("BJ", "self", "none", each) for each in ("positive", "negative", "skeptical", "indignant", "analytical"))
OAT = (*PERSPECTIVES, *TONES)


@dataclass(frozen=True, kw_only=True)
class TemplateWorld:
    """Logits of selections: standard deviations of statements, templates and the rest, and what conditions add."""

    template: float  #: within a condition
    statement: float = 1.0
    own: float = 0.3  #: of a statement under a condition
    deployment: float = 0.0
    mean: float = -0.9
    conditions: Sequence[Levels] = OAT
    effects: Mapping[Levels, float] = field(default_factory=dict)
    statements: int = 100
    templates: int = 20
    canonical: bool = True  #: the first condition is asked in one template
    rotating: bool = False  #: each statement in one template a condition, instead of all
    deployments: int = 1

    def tallies(self, seed: int) -> Tallies:
        """Ask every deployment once; the elaboration has no label."""
        rng = np.random.default_rng([41, seed])
        builder = TallyBuilder()
        size = (self.statements, self.templates, self.deployments)
        common = self.statement * rng.standard_normal((size[0], 1, 1))
        deployment = self.deployment * rng.standard_normal(size[2])
        outcomes = [
            builder.outcome(
                LabelPair(sel=sel, sel_reason=None, elab="Abstain", elab_reason="no_elaboration"), free=False
            )
            for sel in ("D", "E")
        ]
        for place, condition in enumerate(self.conditions):
            single = self.canonical and place == 0
            statement, template, _ = np.indices((size[0], 1 if single else size[1], size[2]))
            own = common + self.own * rng.standard_normal((size[0], 1, 1))
            wording = self.template * rng.standard_normal((1, template.shape[1], 1))
            p = expit(self.mean + self.effects.get(condition, 0.0) + own + wording + deployment)
            endorsed = rng.random(template.shape) < p
            asked = np.ones(template.shape, dtype=bool)
            if self.rotating and not single:
                asked = template == statement % size[1]
            for k in range(size[2]):
                group = builder.group(_group(f"m{k}", condition))
                for s, t in np.argwhere(asked[:, :, k]).tolist():
                    name = builder.template(f"{'-'.join(condition)}-{t}")
                    cluster = builder.cluster(f"i{s:04d}")
                    builder.add(group, cluster, outcomes[int(endorsed[s, t, k])], template=name)
        return builder.finish()

    def components(self) -> dict[str, float]:
        """Return the main variance components of single responses under one condition without an effect."""
        x, w = np.polynomial.hermite_e.hermegauss(41)
        w = w / w.sum()
        spread = float(np.hypot(self.statement, self.own)), self.template, self.deployment
        p = expit(self.mean + spread[0] * x[:, None, None] + spread[1] * x[:, None] + spread[2] * x)
        mean = float(np.einsum("abc,a,b,c", p, w, w, w))
        within = float(np.einsum("abc,a,b,c", p * (1 - p), w, w, w))
        main = [np.einsum(f"abc,{of}", p, w, w) for of in ("b,c->a", "a,c->b", "a,b->c")]
        variances = [float(w @ (each - mean) ** 2) for each in main]
        names = ("statement", "template", "deployment")
        return {**dict(zip(names, variances, strict=True)), "residual": within}

    def share(self, levels: Sequence[Levels]) -> float:
        """Return the share of the variance that a factor with these levels explains, each level with equal weight."""
        x, w = np.polynomial.hermite_e.hermegauss(61)
        w = w / w.sum()
        spread = np.sqrt(self.statement**2 + self.own**2 + self.template**2 + self.deployment**2)
        means = np.array([w @ expit(self.mean + self.effects.get(each, 0.0) + spread * x) for each in levels])
        return float(means.var() / (means.mean() * (1 - means.mean())))


def _group(deployment: str, condition: Levels) -> GroupKey:
    return GroupKey(deployment=deployment, rubric="statement", claim=None, category=None, condition=condition, extra=())
