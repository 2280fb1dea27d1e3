"""Measure the bias of deployed language models, in front of production traffic."""

from importlib.metadata import version

__version__ = version("biasmeter")
