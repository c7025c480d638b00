# `make demo` and `make test` need only Python >= 3.11 and make; each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# What the targets install. They share $(VENV), so each has a stamp of its own, and no target
# depends on what another one has installed.
INSTALL_demo := -e '.[plot]' -e ./qa
INSTALL_test := -e '.[test]' -e './qa[test]'
INSTALL_bench := -e '.[bench]' -e ./qa
INSTALL_docs := -e '.[docs]' -e ./qa
INSTALL_dist := build twine
BUILD := hatchling editables
EVERYTHING := '-e .[plot,test,bench,docs]' '-e ./qa[test]' $(INSTALL_dist) $(BUILD)

# Everything that is installed is pinned for each Python version: a commit that passes today passes in
# a year. `make pins` updates the files. For a Python without one, or after `PINS=`, pip takes the newest
# versions. pip reads the second variable from 25.3 on; before, the first applies to builds, too.
MINOR = import sys; print("%d%d" % sys.version_info[:2])
PINS := $(wildcard requirements/py$(shell $(or $(wildcard $(BIN)/python),$(PYTHON)) -c '$(MINOR)').txt)
PINNED := $(if $(PINS),PIP_CONSTRAINT=$(PINS) PIP_BUILD_CONSTRAINT=$(PINS))
# Byte code of what is never imported would take half of the time of an installation.
PIP := -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --no-compile

.PHONY: attack demo test test-min test-newest pins coverage dist bench docs clean help
.NOTPARALLEL: # one pip at a time
.DEFAULT_GOAL := help

help: ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 13

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "atpgraph needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: pyproject.toml qa/pyproject.toml $(PINS) | $(BIN)/python
	@echo "installing what 'make $*' needs into $(VENV), $(if $(PINS),versions of $(PINS),newest versions)"
	@$(PINNED) $(BIN)/python $(INSTALL) $(INSTALL_$*)
	@touch $@

demo: $(VENV)/.installed-demo ## install, then show the main job on generated data
	@$(BIN)/python examples/demo.py

# On all cores. conftest.py keeps together what shares a fixture that takes long, and sets the order.
SPREAD := --numprocesses auto --maxprocesses 4 --dist loadscope --no-loadscope-reorder
test: $(VENV)/.installed-test ## install, then lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(SPREAD)

dist: $(VENV)/.installed-dist ## build wheels and sdists of both packages into dist/, and check them
	rm -rf dist
	$(PINNED) $(BIN)/python -m build --outdir dist .
	$(PINNED) $(BIN)/python -m build --outdir dist qa
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
test-min: dist ## test the wheels on the oldest versions of their dependencies, on Python 3.11
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "the oldest versions need Python 3.11: make test-min PYTHON=python3.11"; exit 1; }
	rm -rf $(MIN)
	$(PYTHON) -m venv $(MIN)
	$(MIN)/bin/python $(INSTALL) --constraint requirements/min.txt \
		"$$(ls dist/atpgraph-*.whl)[test]" "$$(ls dist/atpgraph_qa-*.whl)[test]"
	tar -xzf dist/atpgraph-*.tar.gz -C $(MIN)
	cd $(MIN)/atpgraph-*/ && env -u PYTHONPATH ../bin/python -m pytest -W default $(SPREAD) tests qa/tests

test-newest: ## `make test` without pins, in an environment of its own: what is coming
	rm -rf $(VENV)-newest
	$(MAKE) test PINS= VENV=$(VENV)-newest

pins: ## pin the newest versions that work together, for every Python, and the oldest ones
	rm -rf $(VENV)-pins
	$(PYTHON) -m venv $(VENV)-pins
	$(VENV)-pins/bin/python $(PIP) install uv
	PATH="$(CURDIR)/$(VENV)-pins/bin:$$PATH" $(VENV)-pins/bin/python tools/pins.py $(EVERYTHING)
	rm -rf $(VENV)-pins

attack: $(VENV)/.installed-test ## 100,000 damaged inputs and 500 kills, about 20 core-minutes; goes on where it was stopped
	$(BIN)/python -m tests.attack

# Small settings on generated data: they show that the scripts run and what order of magnitude to
# expect. The figures in the documentation come from full runs, see benchmarks/README.md.
bench: export ATP_DATA =
bench: $(VENV)/.installed-bench ## the quick benchmarks, a few minutes; written to build/bench/
	@mkdir -p build/bench
	$(BIN)/python benchmarks/cycles.py --sections twin,quality --cap 1 --output build/bench/cycles.md
	$(BIN)/python benchmarks/embed.py --sections iteration,nmf,file --output build/bench/embed.md
	$(BIN)/python benchmarks/reach.py --output build/bench/reach.md
	$(BIN)/python benchmarks/ingest.py --megabytes 20 > build/bench/ingest.md
	$(BIN)/python benchmarks/community.py --users 200 --questions 2000 --seeds 0 > build/bench/community.md
	$(BIN)/python benchmarks/route.py --people 2000 --questions 20 --output build/bench/route.md

docs: $(VENV)/.installed-docs ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean: ## remove what make made
	rm -rf $(VENV) $(VENV)-min $(VENV)-newest $(VENV)-pins dist htmlcov .coverage* build site .mypy_cache .pytest_cache .ruff_cache
