# Start with `make demo` and `make test`. Each command makes the environment it needs, .venv, with .ci/environment.sh. With
# RELEASE=3.0, a command uses that Airflow, in .venv-3.0 (.ci/airflow-releases.txt lists the releases).
SHELL := /bin/sh
.DEFAULT_GOAL := help

RELEASE ?=
ENVIRONMENT ?= .venv$(RELEASE:%=-%)
PYTHON_HERE := "$(CURDIR)/$(ENVIRONMENT)/bin/python"
# If the caller's environment forbids bytecode files, each new process would compile Airflow again.
export PYTHONDONTWRITEBYTECODE :=
# Temporary files stay inside the project folder too.
RUN := mkdir -p "$(CURDIR)/.cache/tmp" && TMPDIR="$(CURDIR)/.cache/tmp"
pytest = $(RUN) "$(CURDIR)/$(1)/bin/python" -m pytest
PYTEST = $(call pytest,$(ENVIRONMENT))
# Two for each core, because tests wait for half of their time.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell expr $(CORES) \* 2)
EXAMPLES ?= 300
ARGS ?=
# What needs more than Python, and what does not depend on the release of Airflow.
OTHER_PROGRAMS := tests/airflow tests/browser tests/cluster tests/storage
NEWEST_ONLY := tests/pure/ci tests/pure/contract tests/played/chat tests/played/client tests/wire tests/tasks/notifiers tests/tasks/recipes tests/tasks/sandbox
TESTS := tests $(OTHER_PROGRAMS:%=--ignore=%) $(if $(RELEASE),$(NEWEST_ONLY:%=--ignore=%))
# `make test` leaves out whole folders, which it does not even read, and the tests that are marked. `make test-rest` runs these.
LEFT_OUT := tests/pure/ci tests/tasks/recipes tests/tasks/sandbox
QUICK := $(LEFT_OUT:%=--ignore=%) -m "not exhaustive"

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([^:]+):.*## */  make \1\t/' | expand -t 18
	@echo "  make test-all RELEASE=3.0    any command on another release of Airflow"
	@echo "CONTRIBUTING.md lists the others."

.PHONY: demo
demo: $(ENVIRONMENT) ## run the example pipeline in Airflow, with the sandbox as the service (ARGS=NAME: another example)
	@$(RUN) $(PYTHON_HERE) -m airflow_provider_platform.sandbox.demo $(ARGS)

.PHONY: ui
ui: $(ENVIRONMENT) ## start Airflow's UI and the sandbox, with the runs of the demo
	@$(RUN) $(PYTHON_HERE) -m airflow_provider_platform.sandbox.demo.airflow_ui

.PHONY: test
test: $(ENVIRONMENT) ## run the quick tests of every layer (ARGS="-k chat": select from all tests)
	@echo "The tests take about two minutes on two idle cores, and several minutes on a busy machine."
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(TESTS) $(if $(ARGS),$(ARGS),$(QUICK))

.PHONY: test-all
test-all: $(ENVIRONMENT) ## run all tests that need only Python
	@echo "All tests take several minutes, and longer on a busy machine."
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(TESTS) $(ARGS)

.PHONY: test-rest
test-rest: $(ENVIRONMENT)
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(LEFT_OUT)
	@$(PYTEST) -n $(WORKERS) --dist worksteal $(TESTS) $(LEFT_OUT:%=--ignore=%) -m exhaustive

.PHONY: test-airflow
test-airflow: $(ENVIRONMENT)
	@$(PYTEST) -n $(WORKERS) --dist worksteal --ignore=tests/airflow/outages tests/airflow $(ARGS)

.PHONY: test-outages
test-outages: $(ENVIRONMENT)
	@$(PYTEST) -n 0 tests/airflow/outages $(ARGS)

.PHONY: test-browser
test-browser: $(ENVIRONMENT)
	@$(PYTEST) -n 0 tests/browser $(ARGS)

.PHONY: test-machine
test-machine: $(ENVIRONMENT)
	@MACHINE_EXAMPLES=$(EXAMPLES) && export MACHINE_EXAMPLES && $(PYTEST) -n 0 -rP tests/played/machine $(ARGS)

.PHONY: test-notifiers
test-notifiers: $(ENVIRONMENT)
	@.venv/bin/uv pip install --quiet --no-deps --target .cache/notifiers -r .ci/notifiers.txt
	@PYTHONPATH="$(CURDIR)/.cache/notifiers" && export PYTHONPATH && $(PYTEST) -n 0 tests/tasks/notifiers $(ARGS)

.PHONY: test-cluster
test-cluster: .venv-cluster
	@$(call pytest,$<) -n 0 -m cluster tests/cluster $(ARGS)

.PHONY: test-storage
test-storage: .venv-storage
	@$(call pytest,$<) -n 0 tests/storage $(ARGS)

.PHONY: lint
lint: $(ENVIRONMENT) ## check style, import directions, and whether generated pages are current
	@$(PYTHON_HERE) -m ruff check . && $(PYTHON_HERE) -m ruff format --check .
	@"$(CURDIR)/$(ENVIRONMENT)/bin/lint-imports" --no-logo
	@$(PYTHON_HERE) .ci/operations_page.py --check && $(PYTHON_HERE) .ci/reference_pages.py --check

.PHONY: types
types: $(ENVIRONMENT) ## check the types with mypy in strict mode
	@$(PYTHON_HERE) -m mypy

.PHONY: docs
docs: .venv-docs ## build the documentation into build/docs; a broken link is an error
	@rm -rf build/docs
	@$(RUN) .venv-docs/bin/python -m sphinx -b html -c docs -W --keep-going -q -j auto . build/docs
	@echo "The documentation is at $(CURDIR)/build/docs/index.html"

.PHONY: bench
bench: $(ENVIRONMENT) ## run the benchmarks (ARGS=NAME: one of them)
	@.venv/bin/uv pip install --quiet --no-deps --target .cache/dbt-cloud -r .ci/dbt-cloud.txt
	@$(RUN) $(PYTHON_HERE) -m benchmarks $(ARGS)

.PHONY: dist
dist: .venv .venv-docs ## build the package, and try the wheel in an empty environment
	@rm -rf dist build/installed
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) \
	  .venv-docs/bin/uv build --quiet --build-constraints constraints-docs.txt --out-dir dist .
	@.venv-docs/bin/python -m twine check --strict dist/*
	@.venv-docs/bin/uv venv --quiet --python .venv/bin/python build/installed
	@.venv-docs/bin/uv pip install --quiet --python build/installed/bin/python -c constraints.txt "$$(ls dist/*.whl)[sandbox]" pytest
	@mkdir build/installed/home && cd build/installed/home && export AIRFLOW_HOME="$$PWD" && ../bin/python ../../../.ci/try_installed.py
	@cd build/installed/home && ../bin/python -m airflow_provider_platform.sandbox.demo >demo.log || { cat demo.log; exit 1; }
	@ls dist/*

# What writes generated files.
.PHONY: operations reference xcoms constraints pictures clean
operations: $(ENVIRONMENT)
	@$(PYTHON_HERE) .ci/operations_page.py
reference: $(ENVIRONMENT)
	@$(PYTHON_HERE) .ci/reference_pages.py
xcoms: $(ENVIRONMENT)
	@$(RUN) $(PYTHON_HERE) .ci/reference_xcoms.py
	@$(PYTHON_HERE) .ci/reference_pages.py
constraints: $(ENVIRONMENT)
	@sh .ci/constraints.sh "$(CURDIR)/$(ENVIRONMENT)/bin/uv"
pictures: $(ENVIRONMENT)
	@PICTURES="$(CURDIR)/docs/pictures" && export PICTURES && $(PYTEST) -n 0 tests/browser/test_demo_ui.py $(ARGS)
clean:
	rm -rf .venv .venv-* .cache .demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: $(ENVIRONMENT) .venv-cluster .venv-docs .venv-storage
$(ENVIRONMENT):
	@sh .ci/environment.sh $@ constraints$(RELEASE:%=-%).txt $(if $(RELEASE),test,dev)
.venv-cluster .venv-docs .venv-storage:
	@sh .ci/environment.sh $@ constraints$(@:.venv%=%).txt $(@:.venv-%=%)
