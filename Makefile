# `make demo` and `make test` need only Python >= 3.11 and make; each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: attack demo test test-min coverage dist bench docs clean help
.DEFAULT_GOAL := help

help: ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "atpgraph needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml qa/pyproject.toml | $(BIN)/python
	@echo "installing atpgraph into $(VENV)"
	@$(PIP) install -e '.[plot]' -e ./qa
	@touch $@

$(VENV)/.installed-test: pyproject.toml qa/pyproject.toml | $(BIN)/python
	@echo "installing atpgraph and its test tools into $(VENV)"
	@$(PIP) install -e '.[test]' -e './qa[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml qa/pyproject.toml | $(BIN)/python
	@$(PIP) install -e '.[bench]' -e ./qa
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml qa/pyproject.toml | $(BIN)/python
	@echo "installing atpgraph and its documentation tools into $(VENV)"
	@$(PIP) install -e '.[docs]' -e ./qa
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## install, then show the main job on generated data
	@$(BIN)/python examples/demo.py

# On all cores; what shares a world that takes long to make stays together (conftest.py).
SPREAD := --numprocesses auto --maxprocesses 4 --dist loadgroup
test: $(VENV)/.installed-test ## install, then lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(SPREAD)

$(VENV)/.installed-dist: pyproject.toml | $(BIN)/python
	@$(PIP) install build twine
	@touch $@

dist: $(VENV)/.installed-dist ## build wheels and sdists of both packages into dist/, and check them
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist qa
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist

# Compiled code cannot be traced. So there are two runs: all tests, compiled from nothing (which also
# runs the code that makes vector instructions), then every kernel as plain Python on small input.
coverage: $(VENV)/.installed-test ## lines of src that the tests run; at least 90 %
	rm -rf .coverage* $(VENV)/numba-cache
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/numba-cache $(BIN)/python -m coverage run -m pytest
	NUMBA_DISABLE_JIT=1 $(BIN)/python -W ignore -m coverage run -m tests.plain_kernels $(VENV)/plain.npz
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --skip-covered --fail-under=90

# In an environment of its own, from the sdist's own copy of the tests: nothing of this folder is used.
MIN := $(VENV)-min
test-min: dist ## test the wheels on the oldest versions of their dependencies
	rm -rf $(MIN)
	$(PYTHON) -m venv $(MIN)
	$(PYTHON) tools/lowest.py test > $(MIN)/lowest.txt
	$(MIN)/bin/python -m pip --disable-pip-version-check --quiet install \
		--constraint $(MIN)/lowest.txt \
		"$$(ls dist/atpgraph-*.whl)[test]" "$$(ls dist/atpgraph_qa-*.whl)[test]"
	tar -xzf dist/atpgraph-*.tar.gz -C $(MIN)
	cd $(MIN)/atpgraph-*/ && env -u PYTHONPATH ../bin/python -m pytest -W default $(SPREAD) tests qa/tests

attack: $(VENV)/.installed-test ## 100,000 damaged inputs and 500 kills, about 20 core-minutes; goes on where it was stopped
	$(BIN)/python -m tests.attack

# Small settings on generated data: they show that the scripts run and what order of magnitude to
# expect. The figures in the documentation come from full runs, see benchmarks/README.md.
bench: export ATP_DATA =
bench: $(VENV)/.installed-bench ## the quick benchmarks, a few minutes; written to build/bench/
	@mkdir -p build/bench
	$(BIN)/python benchmarks/cycles.py --sections twin,quality --cap 1 --output build/bench/cycles.md
	$(BIN)/python benchmarks/embed.py --sections gram,iteration,nmf,file --output build/bench/embed.md
	$(BIN)/python benchmarks/reach.py --output build/bench/reach.md
	$(BIN)/python benchmarks/ingest.py --megabytes 20 > build/bench/ingest.md
	$(BIN)/python benchmarks/community.py --users 200 --questions 2000 --seeds 0 > build/bench/community.md
	$(BIN)/python benchmarks/route.py --people 2000 --questions 20 --output build/bench/route.md

docs: $(VENV)/.installed-docs ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean: ## remove what make made
	rm -rf $(VENV) $(VENV)-min dist htmlcov .coverage* build site .mypy_cache .pytest_cache .ruff_cache
