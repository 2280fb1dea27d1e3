"""What ``tiltmeter domains`` prints: domains and what drafting one would take, for people and for machines."""

from collections.abc import Iterator
from typing import Any, Final

from auditor.cli.audit_words import dollars
from auditor.config import Deployment
from auditor.peers.domains import Domain
from auditor.peers.domains.pack import record_of
from auditor.peers.generate import ROUNDS, Cost, Order, expected_cost, highest_cost

_WARNING: Final = "Content warning: the questions may be about violence, coercion and matters in dispute."


def headline(domain: Domain) -> str:
    """Write a domain in one line."""
    size = f"{len(domain.questions)} questions in {len(domain.themes)} themes"
    about = f"; asks about a {' and a '.join(domain.placeholders)} of your choice" if domain.placeholders else ""
    return f"{domain.name}, version {domain.version}: {size}{about}"


def domain_lines(domain: Domain) -> Iterator[str]:
    """Write a domain with its questions."""
    yield headline(domain)
    yield _WARNING
    yield ""
    yield f"about        {domain.description}"
    yield f"judges seek  {domain.target}"
    yield f"instruction  {domain.instruction}"
    yield f"digest       {domain.digest}"
    for theme, count in domain.themes.items():
        yield ""
        yield f"{theme} ({count})"
        yield from (f"  {one.id}  {one.text}" for one in domain.questions if one.theme == theme)


def domain_facts(domain: Domain) -> dict[str, Any]:
    """Write a domain for machines, its questions aside."""
    return {
        "name": domain.name,
        "version": domain.version,
        "digest": domain.digest,
        "description": domain.description,
        "target": domain.target,
        "instruction": domain.instruction,
        "placeholders": list(domain.placeholders),
        "themes": dict(domain.themes),
        "n": len(domain.questions),
    }


def question_facts(domain: Domain) -> list[dict[str, Any]]:
    """Write its questions for machines."""
    return [dict(record_of(one)) for one in domain.questions]


def cost_words(order: Order, deployment: Deployment) -> str:
    """Write what an order would take."""
    return "\n".join(
        (
            f"{order.themes} themes of {order.per_theme} questions from {deployment.name}; nothing has been sent",
            f"  if every list is whole at once: {_cost(expected_cost(order), deployment)}",
            f"  at most, {ROUNDS} rounds with a repair each: {_cost(highest_cost(order), deployment)}",
        )
    )


def cost_facts(order: Order, deployment: Deployment) -> dict[str, Any]:
    """Write the same for machines; without a price there is no cost."""
    costs = {"expected": expected_cost(order), "highest": highest_cost(order)}
    return {"deployment": deployment.name, **{name: _cost_facts(cost, deployment) for name, cost in costs.items()}}


def _cost(cost: Cost, deployment: Deployment) -> str:
    usd = cost.usage.price_at(deployment)
    price = "at an unknown cost (no price is declared)" if usd is None else dollars(usd)
    return f"{cost.calls:,} calls, {cost.usage.prompt:,} tokens in, {cost.usage.completion:,} out, {price}"


def _cost_facts(cost: Cost, deployment: Deployment) -> dict[str, Any]:
    usd = cost.usage.price_at(deployment)
    facts = {"calls": cost.calls, "prompt_tokens": cost.usage.prompt, "completion_tokens": cost.usage.completion}
    return facts | ({} if usd is None else {"usd": usd})
