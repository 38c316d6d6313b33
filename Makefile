# `make run` trains the quickstart plan; `make test` is the whole gate. Both set up .venv first, once.

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check -qq install --constraint constraints.txt
TORCH := $(shell sed -n '/^torch==/p' constraints.txt)

# The first Python of at least 3.11 that can make a virtual environment.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# One thread a process: ranks and test workers share the cores, and waiting threads would spin on them.
export OMP_NUM_THREADS ?= 1
export OMP_WAIT_POLICY ?= PASSIVE

PYTEST := $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: run test test-fast test-slow fuzz lint bench bench-language vscode reference clean help

run: $(VENV)/.run ## train a small model on the source code of Python's library, two minutes
	@$(BIN)/forgeplan run plans/quickstart.forge

test: lint ## style, types, import rules, and all tests that take less than minutes
	$(PYTEST) -n 2 --dist worksteal -m "not slow and not ranks"
	$(PYTEST) -m "ranks and not slow"

test-fast: lint ## the same without runs of several processes
	$(PYTEST) -n 2 --dist worksteal -m "not slow and not ranks" --ignore tests/faults

test-slow: $(VENV)/.dev ## what takes minutes: the quickstart in a fresh clone, long fuzzing
	$(PYTEST) -m slow

fuzz: $(VENV)/.dev ## a million plans changed at random; COUNT=N for another number, FIRST=N to begin elsewhere
	$(BIN)/python -m tests.dsl.fuzzing $(or $(COUNT),1000000) --first $(or $(FIRST),0)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev ## a training step beside a bare PyTorch loop
	$(BIN)/python -m benchmarks.step

bench-language: $(VENV)/.dev ## lines a second, milliseconds of a compilation
	$(BIN)/python -m benchmarks.language
	$(BIN)/python -m benchmarks.compilation
	$(BIN)/python -m benchmarks.editor

# The sources are staged where what npm installs may lie; with that in place nothing is fetched any more.
VSCODE := build/vscode
VSIX   := build/forgeplan-$(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml).vsix

vscode: $(VSIX) ## the extension for VS Code as build/forgeplan-VERSION.vsix; needs npm, and the network once

$(VSIX): $(VSCODE)/node_modules/.installed $(wildcard grammar/vscode/* grammar/vscode/snippets/*) grammar/forge.tmLanguage.json
	cp -R grammar/vscode/. grammar/forge.tmLanguage.json LICENSE $(VSCODE)
	cd $(VSCODE) && npm run --silent bundle
	cd $(VSCODE) && npm run --silent package -- --out ../../$@

$(VSCODE)/node_modules/.installed: grammar/vscode/package.json grammar/vscode/installed.js
	@command -v npm > /dev/null || { echo "make vscode needs Node.js 20 or newer with npm" >&2; exit 2; }
	@mkdir -p $(VSCODE) && cp $^ $(VSCODE)
	cd $(VSCODE) && { node installed.js || npm install --ignore-scripts --no-package-lock --no-audit --no-fund --silent; }
	@touch $@

reference: $(VENV)/.dev ## write the pages and schemas that are made from the code, and the lists of names, anew
	$(BIN)/python -m tests.surface.surface
	$(BIN)/python -m forgeplan.editors

clean: ## remove the environment and caches; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-16s %s\n' "$$name" "$$what"; done

# Torch first and by itself, so that no other package decides its build.
$(VENV)/.run: constraints.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "forgeplan needs Python 3.11 or newer with venv; say which: make PYTHON=..." >&2; exit 2; }
	@echo "setting up $(VENV) with $(PYTHON): about a gigabyte with torch, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) $(TORCH)
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "adding what tests need"
	@$(PIP) --editable '.[dev]'
	@touch $@
