# Fineprint: one command for each thing a person does. `make help` lists them.

# A Python 3.11 or newer; the pins of constraints.txt were resolved on 3.11.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
# auto: the CPU build of torch unless this machine has an NVIDIA driver; cpu or gpu: that one.
TORCH ?= auto
PYTEST_ARGS ?=

BIN := .venv/bin
RUNTIME := .venv/.installed-runtime
DEVELOPMENT := .venv/.installed-development
INPUTS := pyproject.toml constraints.txt scripts/install_torch.sh
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help setup run test check lint types imports licences structure fix lock clean

help: ## list these commands
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

setup: $(DEVELOPMENT) ## make .venv with the program and the development tools (again: costs nothing)

run: $(RUNTIME) ## fetch the default model and open the page on http://127.0.0.1:PORT
	$(BIN)/fineprint models pull
	$(BIN)/fineprint serve --sample --port $(PORT)

test: $(DEVELOPMENT) ## every test that needs no GPU; what is skipped says why
	@$(BIN)/fineprint models pull || echo "make test: the default model could not be fetched; tests marked 'model' say so" >&2
	$(BIN)/python -m pytest -m "not gpu and not ocr" $(PYTEST_ARGS)

check: lint types imports licences structure ## what CI checks besides the tests

lint: $(DEVELOPMENT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEVELOPMENT)
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases scripts

imports: $(DEVELOPMENT)
	$(BIN)/lint-imports

licences: $(DEVELOPMENT)
	$(BIN)/python scripts/check_licences.py

structure: $(DEVELOPMENT)
	$(BIN)/python -m pytest -q tests/test_repository.py

fix: $(DEVELOPMENT) ## mend what ruff can mend, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: ## resolve the newest allowed versions in a throw-away environment and write constraints.txt
	sh scripts/lock.sh "$(PYTHON)"

clean: ## remove .venv and the tools' caches; the data folder stays
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# What `make run` needs. The stamp is written last, so an interrupted run starts this again.
$(RUNTIME): $(INPUTS)
	@test -n "$(PYTHON)" || { echo "no python3 found: install Python 3.11 or name one with PYTHON=" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: name a newer one with PYTHON=" >&2; exit 1; }
	@echo "installing torch and the other packages into .venv: one to four minutes, longer where they are far away"
	test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(INSTALL) --upgrade pip
	sh scripts/install_torch.sh $(BIN)/python $(TORCH)
	$(INSTALL) hatchling editables
	$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	@touch $@
