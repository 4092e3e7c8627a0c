# Everything stays inside this folder: .venv, .tools, node_modules. `make clean-all` forgets it.
# Needs make and Python 3.11 or newer; the rest is fetched once, and only when the machine lacks it.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# The first Python that is new enough; `make PYTHON=/path/to/python3.12 ...` overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
    $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)

uv := .tools/bin/uv
run := .venv/bin
say := @printf '>> %s\n'

# Spark is half a gigabyte: whoever has fetched it once (make spark) keeps it.
extras := --extra demo --extra cli --extra blob --extra eventhubs $(if $(wildcard .tools/spark.done),--extra spark)

export UV_PYTHON_DOWNLOADS := never
export UV_LINK_MODE ?= copy

.PHONY: help
help: ## show this list
	@echo 'eventproc: make <target>'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- the workshop ---------------------------------------------------------------------------------

.PHONY: venv
venv: .venv/.done ## the virtual environment with everything the code and its tests need

$(uv): bootstrap/uv.py
	@test -n "$(PYTHON)" || { echo 'eventproc: no Python 3.11 or newer found. Install one, or say which: make PYTHON=/path/to/python3.12' >&2; exit 1; }
	$(say) 'uv'
	@$(PYTHON) bootstrap/uv.py $@

.venv/.done: pyproject.toml uv.lock | $(uv)
	$(say) 'Python packages (.venv)'
	@$(uv) sync --quiet --frozen --python "$(PYTHON)" $(extras)
	@touch $@
