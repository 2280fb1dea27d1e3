"""Turn groups of deployments, aliases and fallbacks of a LiteLLM file into routes."""

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from auditor.config.litellm.problems import ImportProblems, Left, Severity
from auditor.config.litellm.settings import EVERY, NamedModel, RouterSettings
from auditor.config.litellm.values import LABEL, WEIGHT, fits, plain
from auditor.config.problems import KeyPath
from auditor.config.routes import ANY_MODEL

Route = dict[str, Any]
#: Parameters of a deployment that weigh it, in LiteLLM's order.
_WEIGHTS: Final = ("weight", "rpm", "tpm")


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMember:
    """A deployment of a group: its row, and LiteLLM's parameters, which contain its weight."""

    row: dict[str, Any]
    params: dict[str, Any]
    path: KeyPath


@dataclass(frozen=True, kw_only=True, slots=True)
class LostModel:
    """A name that clients ask for and that has lost a deployment, or all of them, and what was said about that."""

    name: str
    left: Left

    def tell_consequence(self, routes: Container[str]) -> None:
        """Add what happens to requests for the name, now that the routes are known."""
        problem = self.left.problem
        if self.name in routes:
            self.left.severity = Severity.CHANGES
            then = f"the other deployments of {self.name} get its share"
        elif ANY_MODEL in routes:
            then = f"requests for {self.name} fall through to the route *, whose deployments get that name"
        else:
            then = f"requests for {self.name} get 404"
        self.left.problem = replace(problem, message=f"{problem.message}; {then}")


#: The deployments of one ``model_name``.
Group = list[GroupMember]


def build_routes(
    groups: dict[str, Group], settings: RouterSettings, problems: ImportProblems, lost: list[LostModel]
) -> list[Route]:
    """Return the routes, and say what happens to requests for the models that are lost."""
    named = dict(_name_groups(groups, problems, lost))
    routes = {name: {"model": name, "deployments": _weigh(group, problems)} for name, group in named.items()}
    targets = dict(_add_aliases(routes, settings.aliases, problems, lost))
    for model in lost:
        model.tell_consequence(routes)
    for kind, table in settings.fallbacks.items():
        _check_fallbacks(table, routes, problems)
        for name, route in routes.items():
            fallbacks = table.get(name) or table.get(targets.get(name, name)) or table.get(EVERY, [])
            if kept := [
                model
                for model in dict.fromkeys(target.model for target in fallbacks)
                if model in routes and model != name
            ]:
                route[kind] = kept
    return list(routes.values())


def _name_groups(
    groups: dict[str, Group], problems: ImportProblems, lost: list[LostModel]
) -> Iterator[tuple[str, Group]]:
    """Yield the groups with the names of their routes. One pattern, such as ``openai/*``, can be the route ``*``."""
    rest = ANY_MODEL in groups
    for name, group in groups.items():
        if "*" not in name or name == ANY_MODEL:
            yield name, group
            continue
        here = (*group[0].path, "model_name")
        if rest or not name.endswith("/*") or "*" in name[:-1]:
            why = "a route is for one model, or for all that no other route names"
            lost.append(LostModel(name=name, left=problems.leave(here, why, Severity.BREAKS)))
            continue
        rest = True
        problems.leave(
            here,
            f"becomes the route for all other models: clients ask for them without {name[:-1]}, and a name that no "
            f"route has, also a misspelt one, is sent to {group[0].row['name']}",
            Severity.BREAKS,
        )
        yield ANY_MODEL, group


def _weigh(group: Group, problems: ImportProblems) -> list[dict[str, Any]]:
    """Weight deployments by the parameter that all of them have.

    LiteLLM takes the one that the first has, and gives those without it no traffic while the first works. Here they get
    the smallest weight of the others. Where deployments have different parameters, all get the same weight.
    """
    names = [member.row["name"] for member in group]
    used = [key for key in _WEIGHTS if any(member.params.get(key) is not None for member in group)]
    shared = [key for key in used if all(member.params.get(key) is not None for member in group)]
    if len(group) == 1 or not used:
        return [{"name": name} for name in names]
    by = (shared or used)[0]
    here = (*group[0].path, "litellm_params")
    weights = [fits(WEIGHT, value) for member in group if (value := member.params.get(by)) is not None]
    if None in weights or not any(weights) or (not shared and len(used) > 1):
        why = f"{' and '.join(used)} of these deployments give no common weights: all have the same weight"
        problems.leave(here, why)
        return [{"name": name} for name in names]
    least = min(weight for weight in weights if weight)
    if not shared:
        without = ", ".join(name for name, member in zip(names, group, strict=True) if member.params.get(by) is None)
        problems.leave(here, f"{without}: without {by}, so with the smallest of the others, {plain(least)}")
    final_weights = (fits(WEIGHT, member.params.get(by, least)) for member in group)
    return [{"name": name, "weight": plain(weight or 0.0)} for name, weight in zip(names, final_weights, strict=True)]


def _add_aliases(
    routes: dict[str, Route], aliases: dict[str, NamedModel], problems: ImportProblems, lost: list[LostModel]
) -> Iterator[tuple[str, str]]:
    """Add a route for each alias; yield the alias and its model."""
    declared = set(routes)
    for alias, target in aliases.items():
        if target.model not in declared:
            left = problems.leave(target.path, "is an alias of a model that was not carried over", Severity.BREAKS)
            lost.append(LostModel(name=alias, left=left))
        elif alias in routes:
            problems.leave(target.path, "is also the name of a model; the model is used")
        elif fits(LABEL, alias) is None or "*" in alias:
            problems.leave(target.path, "the name is not valid for a model here", Severity.BREAKS)
        else:
            routes[alias] = {
                "model": alias,
                "deployments": [dict(member) for member in routes[target.model]["deployments"]],
            }
            yield alias, target.model


def _every(model: str) -> str:
    return "any model" if model == EVERY else model


def _check_fallbacks(table: dict[str, list[NamedModel]], routes: dict[str, Route], problems: ImportProblems) -> None:
    for model, targets in table.items():
        for target in targets:
            if model not in routes and model != EVERY:
                problems.leave(target.path, "is for a model that was not carried over", Severity.IGNORED)
            elif target.model not in routes:
                problems.leave(
                    target.path,
                    f"names a model that was not carried over: where {_every(model)} fails, it is not asked",
                )
            elif target.model == model:
                problems.leave(target.path, "a route cannot be its own fallback", Severity.IGNORED)
