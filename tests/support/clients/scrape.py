"""What a process shows Prometheus, read as Prometheus reads it."""

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

Labels = tuple[tuple[str, str], ...]  #: names and values, sorted
Series = dict[tuple[str, Labels], float]


async def scrape(url: str) -> str:
    """Fetch `/metrics`."""
    async with aiohttp.ClientSession() as client, client.get(url + "/metrics") as answer:
        assert answer.status == 200, await answer.text()
        return await answer.text()


def parsed(text: str) -> Series:
    """Give every sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def by_label(series: Series, name: str, label: str) -> dict[str, float]:
    """Give the samples of one name that has only one label, by that label's value."""
    return {dict(labels)[label]: value for (found, labels), value in series.items() if found == name}
