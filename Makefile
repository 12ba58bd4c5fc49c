# Everything that one does here, by name. Nothing is needed beforehand but Python 3.10 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(shell grep '^torch==' constraints.txt)
UV := $(BIN)/uv pip install --python $(BIN)/python --constraint constraints.txt \
      --compile-bytecode --editable
# Slower, and knows of the mirrors and certificates in pip's own settings.
PIP := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt \
      --editable
# Two workers, for the machine with two cores that the time limit of .ci/run is set for. Groups
# (--dist loadgroup) are what makes each run of a script happen once.
PYTEST_ARGS ?= -n 2 --dist loadgroup

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types corpus rules bench clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv with all that development needs

demo: $(VENV)/.demo ## measure a training on real photographs and print the report
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/hotlap demo build/demo

# What fails beside other tests gets one more chance, alone: on two cores that are full, a thread of
# a test can wait for a second. Whatever had need of that is printed, and is worth a look.
test: $(VENV)/.dev ## run all tests (PYTEST_ARGS='-k phases' for some)
	$(BIN)/python -m pytest $(PYTEST_ARGS) || { [ $$? -eq 1 ] \
	  && echo "The tests that failed above are run again, one by one:" \
	  && $(BIN)/python -m pytest --last-failed --last-failed-no-failures none -v; }

lint: $(VENV)/.dev ## check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## check the types, strictly
	$(BIN)/mypy

rules: $(VENV)/.dev ## write docs/rules and docs/knobs from what rules and knobs say of themselves
	cd tests && ../$(BIN)/python -m house.rule_pages
	cd tests && ../$(BIN)/python -m house.knob_pages

corpus: $(VENV)/.dev ## diagnose the scripts of tests/corpus and compare with their labels (hours)
	$(BIN)/python tests/corpus/diagnosed.py $(CORPUS_ARGS)

bench: $(VENV)/.dev ## measure what hotlap itself costs (BENCH_ARGS=--quick for two minutes)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache

# The environment grows in three stages, each remembered by an empty file.

$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "$(PYTHON) is older than 3.10; name another: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make environments; on Debian and Ubuntu:" \
	       "apt-get update && apt-get install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt uv
	touch $@

HOOKS := hatch_build.py $(wildcard src/hotlap/fast/*.[ch])

$(VENV)/.demo: $(VENV)/.torch pyproject.toml $(HOOKS)
	$(UV) '.[demo]' || $(PIP) '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.torch pyproject.toml $(HOOKS)
	$(UV) '.[dev]' || $(PIP) '.[dev]'
	touch $(VENV)/.demo $@
