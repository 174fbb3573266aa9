# Everything from a bare checkout with Python 3.11 or newer: `make setup` comes first by itself.
# pip's own variables (PIP_INDEX_URL, PIP_FIND_LINKS, PIP_CERT ...) hold, since nothing here sets an address.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
BUILD_TOOLS := hatchling editables setuptools wheel

.DEFAULT_GOAL := help
.PHONY: help setup demo test check jar docs clean

help: ## What there is
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv and install exactly what constraints.txt names
	@:

# The build tools are installed first and the project built with them, so that nothing unpinned is fetched.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make: $(PYTHON) is not there or older than 3.11; install Python 3.11 or newer, or name one: make setup PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: $(PYTHON) cannot make virtual environments; install what it lacks (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "Installing into $(VENV), which takes a minute or two ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt $(BUILD_TOOLS)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev,kafka,postgres]'
	@touch $@

demo: setup ## Watch a word count take the right size, about two minutes
	$(BIN)/penstock demo

test: setup ## All tests; those that need a broker are skipped where Maven is missing
	$(BIN)/python -m pytest

check: ## What CI runs: tests, style, types, doors between rooms
	./.ci/run

jar: setup ## Build the jar from jvm/ (needs a JDK and Maven)
	$(BIN)/python jvm/build.py

docs: setup ## Write the pages that are generated from the code
	$(BIN)/python -m penstock.app.settings_doc > docs/settings.md
	$(BIN)/python -m penstock.app.lifecycles_doc > docs/lifecycles.md

clean: ## Forget the environment and what tools kept
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
