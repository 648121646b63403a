# Start with `make demo` and `make test`; `make help` lists all commands.
# Everything runs in .venv, which .ci/environment.py creates (with another Python: make PYTHON=python3.12 ...). Most
# commands also run on another Airflow, in a separate environment: make test RELEASE=3.0 (.ci/airflow-releases.txt lists
# the releases).
SHELL := /bin/sh
.DEFAULT_GOAL := help

ROOT := $(CURDIR)
OTHERS := $(shell awk '/^[0-9]/ {print $$1}' .ci/airflow-releases.txt | sed '$$d')
RELEASE ?=
PYTHONS := $(shell awk -v one=$(RELEASE) '/^[0-9]/ && (one == "" || one == $$1) {$$1 = $$2 = $$3 = ""; found = $$0} END {print found}' .ci/airflow-releases.txt)
ENVIRONMENT ?= .venv$(RELEASE:%=-%)
VENV_PYTHON := "$(ROOT)/$(ENVIRONMENT)/bin/python"
PYTHON_CLUSTER := "$(ROOT)/.venv-cluster/bin/python"
PYTHON_STORAGE := "$(ROOT)/.venv-storage/bin/python"
# If the caller's environment forbids bytecode files, each new process would compile Airflow again.
export PYTHONDONTWRITEBYTECODE :=
# Temporary files stay inside the project folder too.
IN_PROJECT := mkdir -p "$(ROOT)/.cache/tmp" && TMPDIR="$(ROOT)/.cache/tmp"
# Runs pytest. In .ci/run, failed tests run once more, alone.
PYTEST := "$(ROOT)/.ci/pytest_again.py"
# One more than there are cores, because tests also wait. Each further worker would collect all tests once more.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Tests on a running Airflow wait most of their time.
WAITING_WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 2)
REPEAT ?= 1
EXAMPLES ?= 300
ARGS ?=
OUTAGES := tests/airflow/outages
WHOLE_AIRFLOW := tests/airflow tests/browser tests/cluster tests/storage
# These have the same result on all releases.
NEWEST_ONLY := tests/pure/ci tests/pure/contract tests/tasks/notifiers tests/tasks/recipes tests/tasks/sandbox
FAST := $(WHOLE_AIRFLOW:%=--ignore=%) $(if $(RELEASE),$(NEWEST_ONLY:%=--ignore=%))
# tests/conftest.py says which tests are exhaustive. ARGS selects from all tests. What does not import Airflow is tested on
# another release by test-all only.
WITHOUT_AIRFLOW := tests/pure/charts tests/pure/client tests/pure/files tests/pure/messages tests/played/chat tests/played/client tests/wire
QUICK := $(if $(ARGS),,-m "not exhaustive" $(if $(RELEASE),$(WITHOUT_AIRFLOW:%=--ignore=%)))

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([^:]+):.*## */  make \1\t/' | expand -t 24

.PHONY: demo
demo: $(ENVIRONMENT) ## run the example pipeline in Airflow, with the sandbox as the service (ARGS=NAME: another example)
	@$(IN_PROJECT) $(VENV_PYTHON) -m airflow_provider_platform.sandbox.demo $(ARGS)

.PHONY: ui
ui: $(ENVIRONMENT) ## start Airflow's UI and the sandbox, with the runs of the demo
	@$(IN_PROJECT) $(VENV_PYTHON) -m airflow_provider_platform.sandbox.demo.airflow_ui

.PHONY: test
test: $(ENVIRONMENT) ## run the quick tests of every layer (ARGS="-k chat" selects from all tests)
	@$(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n $(WORKERS) --dist worksteal $(FAST) $(QUICK) $(ARGS)

.PHONY: test-all
test-all: $(ENVIRONMENT) ## run the quick tests and the tests that `make test` leaves out
	@$(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n $(WORKERS) --dist worksteal $(FAST) $(ARGS)

.PHONY: test-rest
test-rest: $(ENVIRONMENT) ## run only the tests that `make test` leaves out
	@$(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n $(WORKERS) --dist worksteal $(FAST) -m exhaustive $(ARGS)

.PHONY: $(OTHERS:%=test-%)
$(OTHERS:%=test-%): test-%:
	@$(MAKE) --no-print-directory test-all RELEASE=$*

.PHONY: test-matrix
test-matrix: ## run the unit, integration and demo tests and the demo on every Airflow and Python in .ci/airflow-releases.txt
	@.ci/run-matrix

.PHONY: test-machine
test-machine: .venv ## run the state machine tests with many examples (EXAMPLES=5000 for more)
	@$(IN_PROJECT) MACHINE_EXAMPLES=$(EXAMPLES) $(VENV_PYTHON) $(PYTEST) -n 0 -rP $(ARGS) tests/played/machine

.PHONY: test-system
test-system: $(ENVIRONMENT) ## run the tests that need a complete running Airflow (REPEAT=3 runs them three times)
	@for i in $$(seq $(REPEAT)); do \
	  echo "system tests, round $$i of $(REPEAT)"; \
	  $(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n $(WAITING_WORKERS) --dist worksteal --ignore=$(OUTAGES) $(ARGS) tests/airflow || exit 1; \
	done

.PHONY: test-outages
test-outages: $(ENVIRONMENT) ## run the system tests that kill Airflow's triggerer or API server, on an Airflow of their own
	@$(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n 0 $(ARGS) $(OUTAGES)

.PHONY: test-browser
test-browser: $(ENVIRONMENT) ## run the browser tests: the connection form, the examples, the sandbox's pages
	@$(IN_PROJECT) $(VENV_PYTHON) $(PYTEST) -n 0 $(ARGS) tests/browser

.PHONY: pictures
pictures: .venv ## take the documentation's pictures again, in a browser
	@$(IN_PROJECT) PICTURES="$(ROOT)/docs/pictures" $(VENV_PYTHON) $(PYTEST) -n 0 $(ARGS) tests/browser/test_demo_ui.py

.PHONY: test-cluster
test-cluster: .venv-cluster ## run the tests on a cluster of Celery, Redis and PostgreSQL (ARGS="--rounds=10" runs them ten times)
	@sh .ci/cluster-servers.sh
	@$(IN_PROJECT) exec $(PYTHON_CLUSTER) $(PYTEST) -n 0 -m cluster $(ARGS) tests/cluster

.PHONY: test-notifiers
test-notifiers: $(ENVIRONMENT) ## test messages with the notifiers of the Slack and Apprise providers
	@cmp -s .ci/notifiers.txt .cache/notifiers/installed.txt || { rm -rf .cache/notifiers && \
	  $(IN_PROJECT) $(VENV_PYTHON) -m pip install --quiet --no-deps --target .cache/notifiers -r .ci/notifiers.txt && \
	  cp .ci/notifiers.txt .cache/notifiers/installed.txt; }
	@$(IN_PROJECT) PYTHONPATH="$(ROOT)/.cache/notifiers" $(VENV_PYTHON) $(PYTEST) -n 0 $(ARGS) tests/tasks/notifiers

.PHONY: test-storage
test-storage: .venv-storage ## test writing files to an object store, with a local S3 server
	@$(IN_PROJECT) $(PYTHON_STORAGE) $(PYTEST) -n 0 $(ARGS) tests/storage

.PHONY: lint
lint: $(ENVIRONMENT) ## check style, format and import directions, and whether generated pages are current
	@$(VENV_PYTHON) -m ruff check . && $(VENV_PYTHON) -m ruff format --check .
	@"$(ROOT)/$(ENVIRONMENT)/bin/lint-imports" --no-logo
	@$(VENV_PYTHON) .ci/operations_page.py --check && $(VENV_PYTHON) .ci/reference_pages.py --check

.PHONY: types
types: $(ENVIRONMENT) ## check the types with mypy in strict mode
	@$(VENV_PYTHON) -m mypy

.PHONY: dist
dist: .venv .venv-docs ## build the wheel and the source distribution, and test them in an empty environment
	@$(IN_PROJECT) "$(ROOT)/.venv/bin/python" .ci/dist.py $(ARGS)

.PHONY: bench
bench: $(ENVIRONMENT) ## run the benchmarks (ARGS=NAME: one of them)
	@$(IN_PROJECT) $(VENV_PYTHON) -m benchmarks $(ARGS)

.PHONY: operations
operations: $(ENVIRONMENT) ## write docs/operations.md from the table of operations
	@$(VENV_PYTHON) .ci/operations_page.py

.PHONY: reference
reference: $(ENVIRONMENT) ## write docs/reference from the code of the operators, sensors, decorators and notifiers
	@$(VENV_PYTHON) .ci/reference_pages.py

.PHONY: xcoms
xcoms: $(ENVIRONMENT) ## record docs/reference/xcoms.json from the example DAGs, then write docs/reference
	@$(IN_PROJECT) $(VENV_PYTHON) .ci/reference_xcoms.py
	@$(MAKE) --no-print-directory reference

.PHONY: docs
docs: .venv-docs ## build the documentation into build/docs and check it; a broken link is an error
	@rm -rf build/docs
	@$(IN_PROJECT) "$(ROOT)/.venv-docs/bin/python" -m sphinx -b html -c docs -W --keep-going -q -j auto . build/docs
	@$(IN_PROJECT) "$(ROOT)/.venv-docs/bin/python" .ci/check_site.py
	@echo "The documentation is at $(ROOT)/build/docs/index.html"

.PHONY: constraints
constraints: $(ENVIRONMENT) ## resolve the versions in the constraints files again
	@sh .ci/constraints.sh "$(ROOT)/$(ENVIRONMENT)/bin/uv"

.PHONY: clean
clean: ## remove all files that these commands create
	rm -rf .venv .venv-* .cache .demo .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: $(ENVIRONMENT)
$(ENVIRONMENT):
	@python=$$(sh .ci/find-python.sh $(PYTHONS)) && \
	  "$$python" .ci/environment.py $@ constraints$(RELEASE:%=-%).txt $(if $(RELEASE),test,dev)

.PHONY: .venv-docs
.venv-docs:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv-docs constraints-docs.txt docs,dist

.PHONY: .venv-cluster
.venv-cluster:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv-cluster constraints-cluster.txt cluster

.PHONY: .venv-storage
.venv-storage:
	@python=$$(sh .ci/find-python.sh) && "$$python" .ci/environment.py .venv-storage constraints-storage.txt storage
