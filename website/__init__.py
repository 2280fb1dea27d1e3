"""The documentation's site: pages that are generated from the code, beside those in ``docs/``."""
