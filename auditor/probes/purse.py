"""A run's budget: no call is sent that could overdraw it. Shared by all deployments of the run."""

from dataclasses import dataclass


@dataclass(slots=True)
class Purse:
    """What may be used, and what is used up or set aside for calls under way. ``None`` limits nothing."""

    calls_limit: int | None = None
    usd_limit: float | None = None
    calls: int = 0
    usd: float = 0.0
    _reserved: float = 0.0

    def refuses(self, usd: float) -> str | None:
        """Say which part of the budget is used up, where it does not hold one call of this price."""
        if self.calls_limit is not None and self.calls >= self.calls_limit:
            return f"the budget of {self.calls_limit} calls is used up"
        if self.usd_limit is not None and usd > 0 and self.usd + self._reserved + usd > self.usd_limit:
            return f"the budget of {self.usd_limit:g} USD is used up"
        return None

    def reserve(self, usd: float) -> str | None:
        """Set aside one call of this price, or say as ``refuses`` does why not."""
        refused = self.refuses(usd)
        if refused is None:
            self.calls += 1
            self._reserved += usd
        return refused

    def settle(self, reserved: float, spent: float) -> None:
        """Replace what was set aside for a call by what it cost."""
        self._reserved -= reserved
        self.usd += spent
