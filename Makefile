# Two commands do everything: `make demo` and `make test`. The rest is for contributors.

PYTHON ?= python3
VENV ?= .venv
# Pinned so that `pip` does not take the newest, several gigabytes large CUDA build on a machine
# without a GPU. With another torch (>= 2.9) already wanted: make demo TORCH="torch==2.12.0".
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
export KERNELARC_HOME ?= $(CURDIR)/.kernelarc

.PHONY: help demo test test-slow coverage fuzz selftest lint test-wheel conformance setup clean

help:  ## What can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

setup: $(VENV)/.ready  ## Virtual environment with everything that the demo needs

$(VENV)/.python:
	@echo "==> virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	  || { echo "KernelArc needs Python 3.11 to 3.13: make demo PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.ready: $(VENV)/.python pyproject.toml
	@command -v g++ >/dev/null || echo "note: g++ is missing; C++ kernels cannot be compiled and nothing can be timed (apt install g++)"
	@echo "==> installing torch (CPU) and KernelArc; a minute or two the first time"
	@$(PIP) install $(TORCH) numpy
	@$(PIP) install -e '.[cpu]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "==> installing the test tools and Triton (for its interpreter)"
	@$(PIP) install -e '.[cpu,triton,dev]'
	@touch $@

demo: $(VENV)/.ready  ## Four agents improve two kernels on this machine, with a report at the end
	@$(BIN)/kernelarc doctor --no-start --json > /dev/null || { $(BIN)/kernelarc doctor --no-start; exit 3; }
	@echo "==> four agents, two problems, about three and a half minutes"
	@$(BIN)/kernelarc run rmsnorm softmax --agents 4 --attempts 8 --minutes 3.2 --seed 1

test: $(VENV)/.ready-dev  ## The test suite, about five minutes
	@echo "==> tests; the slow ones (kill -9 of runs, every template, foreign clients): make test-slow"
	@$(BIN)/python -m pytest tests -m "not slow"

test-slow: $(VENV)/.ready-dev  ## The tests that take minutes each
	@$(BIN)/python -m pytest tests -m slow

coverage: export COVERAGE_FILE = $(CURDIR)/build/coverage/data
coverage: $(VENV)/.ready-dev  ## The test suite, and the share of the guard's statements that it runs
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/coverage run -m pytest tests -m "not slow"
	@echo "==> statements of the guard (a file of a process that a test killed may be unreadable)"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

fuzz: $(VENV)/.ready-dev  ## Hostile files, sources and tool arguments, for ten minutes
	@$(BIN)/python -m pytest tests -k fuzz --hypothesis-profile=fuzz

selftest: $(VENV)/.ready-dev  ## Adversarial and honest samples against this host's guard, three minutes
	@echo "==> selftest"
	@$(BIN)/kernelarc selftest

lint: $(VENV)/.ready-dev  ## Style, types and import rules
	@echo "==> lint"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test-wheel: $(VENV)/.ready-dev  ## Build the wheel, install it alone, test it without the sources
	@echo "==> wheel"
	@bash tests/wheel.sh $(BIN)

conformance: $(VENV)/.ready-dev  ## The public MCP conformance suite against the real server (needs npx)
	@bash tests/conformance/run.sh $(BIN)/python

clean:  ## Remove the environment, the demo's data and build products
	rm -rf $(VENV) .kernelarc build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
