# Two commands for a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Each sets up the environment in .venv by itself, from requirements.lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := .demo
MEGABYTES ?= 1000
MEASURED ?= --peers --growth 100,300,1000,3000

.PHONY: demo test lint types lock docs picture bench clean

demo: $(READY)
	@BIN=$(BIN) DEMO=$(DEMO) sh sample_sessions/demo.sh

test: lint types $(READY)
	$(BIN)/python -m pytest -n auto

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## what is generated from the code: tables of README and schema/README.md, answers in tests/answers
	$(BIN)/python -m tests.documents --write
	$(BIN)/python -m tests.snapshots --write

picture: $(READY)  ## docs/terminal.svg, from real commands
	$(BIN)/python docs/terminal.py

bench: $(READY)  ## the tables of docs/performance.md; an hour, or minutes with MEASURED= and fewer MEGABYTES
	$(BIN)/python -m benchmarks $(MEGABYTES) $(MEASURED)
	$(BIN)/python -m benchmarks.start

lock:  ## needs uv: writes the versions and hashes of everything that is installed
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --quiet --upgrade --output-file requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "agtrace needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q agtrace indexer schema
	@touch $(READY)

clean:
	rm -rf $(VENV) $(DEMO) .bench
