# The two commands of a newcomer are `make demo` and `make test`; `make help` lists the rest.
# Everything runs in .venv, which .ci/environment.py makes (another Python: make PYTHON=python3.12 ...).
SHELL := /bin/sh
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
PYTHON_3_3 := "$(ROOT)/.venv/bin/python"
PYTHON_3_0 := "$(ROOT)/.venv-3.0/bin/python"
PYTHON_CLUSTER := "$(ROOT)/.venv-cluster/bin/python"
# Temporary files stay inside the project folder too.
IN_PROJECT := mkdir -p "$(ROOT)/.cache/tmp" && TMPDIR="$(ROOT)/.cache/tmp"
WORKERS ?= auto
REPEAT ?= 1
ARGS ?=

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([^:]+):.*## */  make \1\t/' | expand -t 24

.PHONY: demo
demo: .venv ## run the example pipeline through Airflow against the sandbox
	@$(IN_PROJECT) $(PYTHON_3_3) -m airflow_provider_platform.sandbox.demo

.PHONY: ui
ui: .venv ## Airflow's UI over the last demo run, with the sandbox behind it
	@$(IN_PROJECT) $(PYTHON_3_3) -m airflow_provider_platform.sandbox.demo.ui

.PHONY: test
test: .venv ## the fast tests (ARGS="-k chat" for some of them)
	@$(IN_PROJECT) $(PYTHON_3_3) -m pytest -n $(WORKERS) --ignore=tests/browser --ignore=tests/cluster --ignore=tests/system $(ARGS)

.PHONY: test-3.0
test-3.0: .venv-3.0 ## the unit tests on Airflow 3.0, the oldest supported release
	@$(IN_PROJECT) $(PYTHON_3_0) -m pytest -n $(WORKERS) $(ARGS) tests/unit tests/demo

.PHONY: test-system
test-system: .venv ## the tests on a whole running Airflow and in a browser (REPEAT=3 repeats them)
	@for i in $$(seq $(REPEAT)); do \
	  echo "system tests, round $$i of $(REPEAT)"; \
	  $(IN_PROJECT) $(PYTHON_3_3) -m pytest -n $(WORKERS) --dist loadgroup $(ARGS) tests/system tests/browser || exit; \
	done

.PHONY: test-cluster
test-cluster: .venv-cluster ## the tests on a cluster: Celery, Redis, PostgreSQL (ARGS="--rounds=10" repeats them)
	@sh .ci/cluster-servers.sh
	@$(IN_PROJECT) exec $(PYTHON_CLUSTER) -m pytest -n 0 -m cluster $(ARGS) tests/cluster

.PHONY: lint
lint: .venv ## ruff: rules and format; whether docs/operations.md is current
	@$(PYTHON_3_3) -m ruff check . && $(PYTHON_3_3) -m ruff format --check .
	@$(PYTHON_3_3) .ci/operations_page.py --check

.PHONY: types
types: .venv ## mypy, strict
	@$(PYTHON_3_3) -m mypy

.PHONY: package
package: .venv ## build the wheel and try it in an environment of its own
	@$(IN_PROJECT) $(PYTHON_3_3) .ci/package.py

.PHONY: bench
bench: .venv ## the benchmarks
	@$(IN_PROJECT) $(PYTHON_3_3) -m benchmarks $(ARGS)

.PHONY: operations
operations: .venv ## write docs/operations.md from the declared operations
	@$(PYTHON_3_3) .ci/operations_page.py

.PHONY: constraints
constraints: .venv ## resolve the constraints files anew
	@sh .ci/constraints.sh "$(ROOT)/.venv/bin/uv"

.PHONY: clean
clean: ## remove everything that these commands made
	rm -rf .venv .venv-3.0 .venv-cluster .cache .demo .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: .venv
.venv:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv constraints.txt dev

.PHONY: .venv-3.0
.venv-3.0:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv-3.0 constraints-3.0.txt test

.PHONY: .venv-cluster
.venv-cluster:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv-cluster constraints-cluster.txt cluster
