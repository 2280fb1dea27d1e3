"""Define what the choice of templates does to a rate: variance components, contrasts and rates by template."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from auditor.documents.base import Count, Document, Interval, Missing, Reason
from auditor.documents.estimates import BoundedEntry, By, Flags
from auditor.domain.condition import Factor


class ComponentEntry(Document):
    """One part of the variance of a single response."""

    variance: Annotated[float, Meta(ge=0, description="An estimate below 0 is written as 0.")]
    sd: Annotated[float, Meta(ge=0, description="Its root: how much the rate differs, as a share of 1.")]
    sd_interval: Annotated[Interval, Meta(description="95 %; of `template` only.")] | UnsetType = UNSET


class TemplateContrast(BoundedEntry):
    """A level's rate less that of the baseline level; 95 % over statements and templates."""

    factor: Factor
    level: str
    baseline: str
    fixed: Annotated[Interval, Meta(description="The interval for these templates alone.")] | UnsetType = UNSET
    n_templates: Count
    n_templates_baseline: Count
    flags: Flags


class TemplateRate(BoundedEntry):
    """The rate of one template; 95 % over statements."""

    template: str
    n: Count
    n_statements: Count


class ConditionTemplates(Document):
    """The templates of one condition."""

    condition: By
    n_templates: Count
    sd: Annotated[float | Missing, Meta(description="Of the true rates of templates under this condition.")]
    templates: Annotated[
        Sequence[TemplateRate], Meta(description="Those with 15 statements or more, by rate; of all rows together.")
    ]
    n_left_out: Annotated[Count, Meta(description="Templates with fewer statements.")]


class GeneralizabilityKey(Document):
    """What variance components are of."""

    by: By
    rubric: str
    outcome: str


class GeneralizabilityEntry(GeneralizabilityKey):
    """How far a rate depends on the statements and on the templates that were drawn."""

    base: str
    n: Count
    n_statements: Count
    n_templates: Count
    n_conditions: Annotated[
        Count, Meta(description="Conditions with two templates or more; the components are theirs.")
    ]
    components: Annotated[
        Mapping[str, ComponentEntry],
        Meta(
            description="By factor: statement (what a statement has under all conditions), statement:condition, "
            "template (within a condition), statement:template, deployment and its interactions, residual."
        ),
    ]
    template_logit_sd: Annotated[
        BoundedEntry | Missing, Meta(description="SD of templates on the logit scale, from the components.")
    ]
    contrasts: Sequence[TemplateContrast]
    conditions: Sequence[ConditionTemplates]
    flags: Flags


class MissingGeneralizability(GeneralizabilityKey):
    """Variance components that cannot be had."""

    missing: Reason
