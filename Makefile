# Two commands do everything on a fresh machine with Python >= 3.11, make and git: `make run` and `make test`.
.PHONY: run test update setup lint

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv

run: setup
	@mkdir -p .better-compute
	@$(BIN)/better-compute dev --sim --fleet examples/fleet.json

test: setup
	@bash tests/run

update: setup
	@$(BIN)/python -m tests.update

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(UV) sync --frozen --quiet --inexact
	@touch $@
