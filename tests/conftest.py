"""What every room of tests may ask for: fixtures live in plugin modules beside this file."""

import os

# As the commands do it, and before anything imports numpy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["llamacpp", "postgres", "stores"]
