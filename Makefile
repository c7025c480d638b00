# `make demo` and `make test` need only Python >= 3.11 and make; each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test check bench clean help
.DEFAULT_GOAL := help

help: ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "atpgraph needs Python 3.11 or newer: make PYTHON=python3.11"; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing atpgraph into $(VENV)"
	@$(PIP) install -e '.[cqa]'
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	@echo "installing atpgraph and its test tools into $(VENV)"
	@$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	@$(PIP) install -e '.[bench]'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed ## install, then show the main job on generated data
	@$(BIN)/python examples/demo.py

test: $(VENV)/.installed-test ## install, then lint, types and tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest

bench: $(VENV)/.installed-bench ## measure speed, as ratios in one run
	$(BIN)/python benchmarks/cycles.py --output benchmarks/results/cycles.md

clean: ## remove what make made
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache
