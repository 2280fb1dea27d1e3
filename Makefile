# The verbs of this project. `make demo` and `make test` need only python3 and make. docs/development.md has what is needed
# less often.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test test-all fuzz costs check docs schemas expected bench measurements

help:
	@echo "make demo    the whole product on this machine, against simulated deployments"
	@echo "make test    install into .venv and run the tests: some minutes; PYTEST_ARGS=tests/unit/metrics selects some"
	@echo "make test-all   also the slow ones: soaks, kills, fleets, every example"
	@echo "make fuzz    new random cases against the gateway, for five minutes"
	@echo "make costs   the tests, and what each costs"
	@echo "make check   ruff, mypy, import contracts, names"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make schemas docs/*.schema.json, generated from auditor/documents"
	@echo "make expected   renew the numbers and bytes that tests expect"
	@echo "make bench   what a request and an event cost, beside nginx (PEERS=all: and other gateways)"
	@echo "make measurements   the other long ones: soaks, simulations, throughput (hours)"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A stamp a purpose: installed again only when what is to be installed has changed.
$(VENV)/demo.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e ".[demo]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e ".[demo,dev]"
	$(BIN)/python -m compileall -q auditor biasmeter gateway replay
	@touch $@

demo: $(VENV)/demo.stamp
	$(BIN)/biasmeter demo

# As many processes as cores, each with whole files. Every run draws the same examples.
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder -m

# Unit, integration and system tests: minutes.
test: $(VENV)/dev.stamp
	$(PYTEST) "not bench and not slow" $(PYTEST_ARGS)

# All of them, with every example of the properties; ends with what the tests cost. Twice as many processes, because the
# slow ones wait for others most of their time.
test-all: $(VENV)/dev.stamp
	$(PYTEST) "not bench" -n $(shell expr 2 \* $(JOBS)) --hypothesis-profile=full --costs $(PYTEST_ARGS)

# New random examples of the gateway's properties, again and again for so many seconds; the first failure ends it.
FUZZ_SECONDS ?= 300
fuzz: $(VENV)/dev.stamp
	end=$$(($$(date +%s) + $(FUZZ_SECONDS))); while [ $$(date +%s) -lt $$end ]; do \
	$(PYTEST) "hypothesis and not bench" --hypothesis-profile=random tests/unit/gateway tests/integration/gateway \
	|| exit 1; done

# What each test and file of `make test` costs, in CPU and wall-clock seconds.
costs: $(VENV)/dev.stamp
	$(PYTEST) "not bench and not slow" --costs $(PYTEST_ARGS)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/unit/architecture/test_names.py

# The documentation, with every link checked. Its theme tells of its own future at each start; it is pinned here.
docs: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

schemas: $(VENV)/dev.stamp
	$(BIN)/python -m auditor.schemas docs

# The numbers that tests/system/golden/test_golden.py expects, and the bytes that
# tests/integration/gateway/test_recorded_exchanges.py expects, after an intended change.
expected: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.golden expect
	PYTHONPATH=tests $(BIN)/python -m integration.gateway.test_recorded_exchanges

bench: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m bench.hot_path $(if $(PEERS),--peers $(PEERS)) $(BENCH_ARGS)

measurements: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q -m bench $(PYTEST_ARGS)
