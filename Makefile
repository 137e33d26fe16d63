# The developer's whole interface; .ci/run calls the same targets. `make` lists them.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
FIELD_READY := .venv/field/.ready
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help demo test check bench test-strace corpus diagrams lock format clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): requirements/dev.txt pyproject.toml
	@echo "setting up .venv with $(PYTHON) (once)"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY) ## a plain retry wrapper and the coordinator through eight lost replies, live
	@$(BIN)/counterfoil demo

test: $(READY) ## every test that needs registry packages only
	$(BIN)/pytest -n $(JOBS) -m "not strace"

test-strace: $(READY) ## tests that count and break system calls; installs strace
	@command -v strace >/dev/null || { apt-get update -qq && apt-get install -y -qq strace; }
	$(BIN)/pytest -m strace

check: $(READY) ## style, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(READY) ## speed, as ratios in one run
	@$(BIN)/python -m bench.run

corpus: $(READY) ## write the shipped corpora anew, byte for byte the same
	@$(BIN)/python -m counterfoil.conformance.generate

$(FIELD_READY): requirements/field.txt | $(READY)
	@echo "setting up .venv/field (once)"
	@$(PYTHON) -m venv .venv/field
	@.venv/field/bin/python -m pip install --quiet --require-hashes -r requirements/field.txt
	@touch $@

.PHONY: field-zombie
field-zombie: $(READY) $(FIELD_READY) ## other people's libraries through core and zombie; ~8 minutes
	@$(BIN)/python -m bench.field.run

diagrams: $(READY) ## draw docs/lifecycle.svg anew from the tables
	@$(BIN)/python docs/draw_lifecycle.py

format: $(READY) ## apply the formatter and the safe fixes
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## pin requirements anew, with hashes and without an address
	@$(PYTHON) -m venv .venv/lock && .venv/lock/bin/python -m pip install --quiet pip-tools
	@cd requirements && for name in run dev field; do ../.venv/lock/bin/pip-compile --quiet --upgrade \
	  --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host \
	  --strip-extras --no-header --output-file $$name.txt $$name.in; done

clean: ## remove what the targets made
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-trails
