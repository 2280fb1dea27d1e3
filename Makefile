# The few verbs of this project. `make demo` and `make test` need only python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test check bench bench-trees measurements embed constraints clean

help:
	@echo "make demo    the whole product on this machine, against simulated deployments"
	@echo "make test    install into .venv and run the test suite"
	@echo "make embed   torch beside it, for the tests of embeddings"
	@echo "make check   ruff, mypy, import contracts"
	@echo "make bench   what a request and an event cost, beside nginx (PEERS=all: and other gateways)"
	@echo "make bench-trees TREES='before=DIR after=DIR'   the same of two checkouts, in instructions"
	@echo "make measurements   the other long ones: soaks, simulations, throughput (hours)"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A stamp a purpose: installed again only when what is to be installed has changed.
$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e ".[demo]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e ".[demo,dev]"
	@touch $@

# torch and sentence-transformers: several hundred megabytes. Tests that need them skip where they are missing.
$(VENV)/embed.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[embed]"
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/tiltmeter demo

embed: $(VENV)/embed.stamp

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q -m "not bench" $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m benchmarks.hot_path $(if $(PEERS),--peers $(PEERS)) $(BENCH_ARGS)

bench-trees: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m benchmarks.hot_path.trees $(TREES) $(BENCH_ARGS)

measurements: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q -m bench $(PYTEST_ARGS)

# Needs uv. The CPU build of torch draws no CUDA packages, so they are left out.
constraints:
	echo "torch==2.13.0" | uv pip compile --universal --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --python-version 3.11 pyproject.toml --extra audit --extra embed --extra embedded --extra dev -c - \
	  | grep -vE '^(nvidia|cuda|triton)' > constraints.txt.new
	mv constraints.txt.new constraints.txt

clean:
	rm -rf $(VENV) build dist *.egg-info
