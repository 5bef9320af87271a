# Each target with a `##` is one that people use; `make` alone lists them.
# Variables: CONTEXT=name  use that context of your kubeconfig instead of the testbed (demo)
#            IMAGES=prefix where such a cluster pulls images from, if they can't be loaded (demo)
#            SEED=number   the seed of random tests (test, campaign)
#            TESTS=path    only these tests (test, campaign)
#            FULL=1        all rounds at full size, into docs/benchmarks.md: about an hour (bench)
.DEFAULT_GOAL := help
.PHONY: help demo up down deploy env test unit api e2e campaign bench check vet format image crds docs lock venv clean
MAKEFLAGS += --no-print-directory
PY := .venv/bin/python
STATE := $(or $(TESTBED_STATE),$(CURDIR)/.testbed)
BIN := $(or $(TESTBED_BIN),$(CURDIR)/.testbed/bin)
export CONTEXT IMAGES SEED TESTS

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: venv ## a cluster, moorage in it, a Collector that answers: the whole product in one go
	@$(PY) -m dev.demo

up: venv ## start the testbed, a Kubernetes of your own (minutes the first time, then seconds)
	@$(PY) -m dev.up

down: ## take the testbeds away; binaries and caches stay
	@testbed/testbed down
	@for state in build/testbed/*-[0-9]/; do [ ! -d "$$state" ] || testbed/testbed --state "$$state" down; done

deploy: venv ## build and load the images and install moorage, from this tree
	@$(PY) -m dev.deploy all

env: ## print the shell lines that put kubectl, helm and moorage of this tree on the PATH
	@echo 'export KUBECONFIG="$(STATE)/kubeconfig" PATH="$(BIN):$(CURDIR)/.venv/bin:$$PATH"'

test: venv ## all tests: unit, api, testbed, e2e (as root; testbeds of their own)
	@$(PY) -m dev.test

unit: venv ## the tests that need nothing
	@$(PY) -m dev.test unit

api: venv ## the tests that need an API server
	@$(PY) -m dev.test api

e2e: venv ## the tests that need a whole cluster
	@$(PY) -m dev.test e2e

campaign: venv ## the long random tests, whole
	@$(PY) -m dev.test --campaign

bench: venv ## moorage beside its peers, on one API server (as root; FULL=1 for the table)
	@PYTHONPATH=src:. $(PY) -m benchmarks $(if $(FULL),--full)

check: venv ## format, lint, types, import directions, generated files
	@$(PY) -m dev.check

vet: venv ## go vet over all Go modules, which builds them
	@$(PY) -m dev.check vet

format: venv ## write the source as the checks want it
	@.venv/bin/ruff format --quiet . && .venv/bin/ruff check --quiet --fix .

image: venv ## build the images as archives in build/images
	@$(PY) -m dev.deploy images

crds: venv ## write the CustomResourceDefinitions and the dialects into the chart
	@.venv/bin/moorage crds --into charts/moorage/files/crds
	@$(PY) -m dev.values

docs: venv ## write the generated pages: docs/reasons.md and docs/api.md
	@$(PY) -m dev.docs

lock: venv ## pin the requirements anew, with hashes
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --extra fast pyproject.toml -o requirements/runtime.txt
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --extra fast --extra tracing --constraint requirements/runtime.txt pyproject.toml -o requirements/tracing.txt
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --extra fast --group dev pyproject.toml -o requirements/dev.txt
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --constraint requirements/runtime.txt requirements/agent.in -o requirements/agent.txt
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  requirements/benchmarks.in -o requirements/benchmarks.txt
	@.venv/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --constraint requirements/dev.txt requirements/runner.in -o requirements/runner.txt

venv: ## the Python environment in .venv
	@dev/venv

clean: down ## remove all that is built here
	@rm -rf build .venv .testbed .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
