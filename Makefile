# The few verbs of this project. `make demo` and `make test` need only python3 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

.PHONY: help demo test test-all costs coverage docs check fuzz faults golden expected notebook structure bench bench-trees measurements schemas embed ray constraints requirements sbom clean

help:
	@echo "make demo    the whole product on this machine, against simulated deployments"
	@echo "make test    install into .venv and run the tests: some minutes"
	@echo "make test-all   also the slow ones: soaks, kills, fleets, every example"
	@echo "make costs   the tests, and what each costs"
	@echo "make coverage   lines of the product that the tests run"
	@echo "make fuzz    the tests of properties with new random examples"
	@echo "make faults  the fault suite at full length (ten minutes); writes docs/reliability.md"
	@echo "make golden OUT=DIR   record what the main commands write"
	@echo "make notebook   execute docs/biasmeter.ipynb and keep its outputs"
	@echo "make expected   renew the numbers and bytes that tests expect"
	@echo "make structure   measure modules, functions and imports"
	@echo "make embed   torch beside it, for the tests of embeddings"
	@echo "make ray     Ray beside it, for the tests of bulk work"
	@echo "make check   ruff, mypy, import contracts, names"
	@echo "make sbom    build/sbom-*.json: what each image contains, as CycloneDX"
	@echo "make docs    the documentation as a site, in build/site"
	@echo "make schemas docs/*.schema.json, generated from auditor/documents"
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
	$(BIN)/python -m compileall -q auditor biasmeter gateway replay
	@touch $@

# torch and sentence-transformers: several hundred megabytes. Tests that need them skip where they are missing.
$(VENV)/embed.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[embed]"
	@touch $@

# Ray: 80 megabytes, and a minute of tests that start it.
$(VENV)/ray.stamp: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[ray]"
	@touch $@

# The documentation, with every link checked. Its theme tells of its own future at each start; it is pinned here.
docs: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[docs]"
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

demo: $(VENV)/demo.stamp
	$(BIN)/biasmeter demo

embed: $(VENV)/embed.stamp

ray: $(VENV)/ray.stamp

# As many processes as cores, each with whole files. Every run draws the same examples.
PYTEST_OPTIONS := -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder -m
PYTEST := $(BIN)/python $(PYTEST_OPTIONS)

# Unit, integration and system tests: minutes. PYTEST_ARGS="tests/unit/metrics" selects some.
test: $(VENV)/dev.stamp
	$(PYTEST) "not bench and not slow" $(PYTEST_ARGS)

# All of them, with every example of the properties; ends with what the tests cost. Twice as many processes, because the
# slow ones wait for others most of their time.
test-all: $(VENV)/dev.stamp
	$(PYTEST) "not bench" -n $(shell expr 2 \* $(JOBS)) --hypothesis-profile=full --costs $(PYTEST_ARGS)

# The tests of properties again, with examples that no run has drawn before. A failure prints how to repeat it.
fuzz: $(VENV)/dev.stamp
	$(PYTEST) "hypothesis and not bench" --hypothesis-profile=random $(PYTEST_ARGS)

# What each test and file of `make test` costs, in CPU and wall-clock seconds.
costs: $(VENV)/dev.stamp
	$(PYTEST) "not bench and not slow" --costs $(PYTEST_ARGS)

# Lines of the product that the tests run, in all processes. LANE="not bench" counts the slow ones too.
LANE ?= not bench and not slow
coverage: $(VENV)/dev.stamp
	$(BIN)/coverage erase
	-$(BIN)/coverage run $(PYTEST_OPTIONS) "$(LANE)" $(PYTEST_ARGS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --skip-covered --skip-empty --sort=miss --precision=2 | tail -40

# docs/reliability.md. Disks of its own need the right to mount; without it those scenarios are left out.
faults: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.faults.report docs/reliability.md

# What the main commands write, into OUT; compare two with `PYTHONPATH=tests python -m support.golden compare DIR DIR`.
golden: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.golden record $(or $(OUT),golden-outputs)

# The numbers that tests/system/golden/test_golden.py expects, and the bytes that
# tests/integration/gateway/test_recorded_exchanges.py expects, after an intended change.
expected: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.golden expect
	PYTHONPATH=tests $(BIN)/python -m integration.gateway.test_recorded_exchanges

notebook: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.notebook

# The numbers of docs/architecture.md.
structure: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m support.architecture.structure $(TREES)

check: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m pytest -q tests/unit/architecture/test_names.py

schemas: $(VENV)/dev.stamp
	$(BIN)/python -m auditor.schemas docs

bench: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m bench.hot_path $(if $(PEERS),--peers $(PEERS)) $(BENCH_ARGS)

bench-trees: $(VENV)/dev.stamp
	PYTHONPATH=tests $(BIN)/python -m bench.hot_path.trees $(TREES) $(BENCH_ARGS)

measurements: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -q -m bench $(PYTEST_ARGS)

# Needs uv. The CPU build of torch draws no CUDA packages, so they are left out.
constraints:
	echo "torch==2.13.0" | uv pip compile --universal --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	  --python-version 3.11 pyproject.toml --extra audit --extra embed --extra embedded --extra ray --extra docs --extra sbom --extra dev -c - \
	  | grep -vE '^(nvidia|cuda|triton)' > constraints.txt.new
	mv constraints.txt.new constraints.txt
	$(MAKE) requirements

# What the images install, with hashes. pip accepts no hashes in a constraints file of an editable installation (a folder
# has no hash), so these are files of their own, made from constraints.txt. Needs uv.
HASHED := uv pip compile --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
  --no-emit-find-links --python-version 3.11 -q -c constraints.txt
requirements:
	$(HASHED) pyproject.toml -o deploy/docker/requirements-gateway.txt
	$(HASHED) pyproject.toml --extra audit -o deploy/docker/requirements-auditor.txt
	printf 'hatchling\nhatch-fancy-pypi-readme\n' | $(HASHED) - -o deploy/docker/requirements-build.txt

# A bill of materials of each image, as CycloneDX.
sbom: $(VENV)/dev.stamp
	$(PIP) install -c constraints.txt -e ".[sbom]"
	mkdir -p build
	for image in gateway auditor; do $(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
	  -o build/sbom-$$image.json deploy/docker/requirements-$$image.txt || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info
