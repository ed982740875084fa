# Two commands for a fresh machine with Python 3.11+ and make: `make demo` and `make test`.
# Each sets up the environment in .venv by itself, from requirements.lock.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
DEMO := .demo
E2E := .e2e
MEGABYTES ?= 1000
MEASURED ?= --peers --growth 100,300,1000,3000

.PHONY: demo test e2e lint types lock docs thorough health-eval prune-eval secrets picture bench clean

demo: $(READY)
	@BIN=$(BIN) DEMO=$(DEMO) sh sample_sessions/demo.sh

test: lint types $(READY)
	$(BIN)/python -m pytest -n auto

e2e: $(READY) $(E2E)/small/ready $(E2E)/agents/ready  ## the real clients, offline; needs npm and 1.2 GB
	AGTRACE_E2E=1 $(BIN)/python -m pytest -n auto --dist loadscope -m "" tests/e2e
	$(BIN)/python -m tests.investigations

thorough: e2e secrets  ## every test, with more examples of every law, the real clients, all secrets, an hour of the storm; two hours or more
	AGTRACE_THOROUGH=1 $(BIN)/python -m pytest -n auto -m "" -o faulthandler_timeout=7200
	-pip-audit --strict --disable-pip --require-hashes --requirement requirements.lock  # where it is, and has its data

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## what is generated from the code: tables of README and schema/README.md, answers in tests/answers
	$(BIN)/python -m tests.documents --write
	$(BIN)/python -m tests.snapshots --write

health-eval: $(READY)  ## precision and recall of every detector on the sessions of tests/health
	$(BIN)/python -m tests.health

prune-eval: $(READY)  ## what the pruner keeps and loses of the labelled texts of tests/pruning
	$(BIN)/python -m tests.pruning

secrets: $(READY)  ## what comes out of the secrets of tests/secrets, and which near-misses are masked
	$(BIN)/python -m tests.secrets

picture: $(READY)  ## docs/terminal.svg and docs/watch.svg, from real commands; docs/*.png, where Chromium is
	$(BIN)/python docs/terminal.py
	$(BIN)/python docs/report_page.py
	$(BIN)/python docs/watch.py
	$(BIN)/python docs/open_pages.py

bench: $(READY)  ## the tables of docs/performance.md; an hour, or minutes with MEASURED= and fewer MEGABYTES
	$(BIN)/python -m benchmarks $(MEGABYTES) $(MEASURED)
	$(BIN)/python -m benchmarks.start
	$(BIN)/python -m benchmarks.redaction
	$(BIN)/python -m benchmarks.telemetry

lock:  ## needs uv: writes the versions and hashes of everything that is installed
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --quiet --output-file requirements.lock

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "agtrace needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q agtrace indexer schema
	@touch $(READY)

# Packages run no scripts of their own when they are installed: those that Claude Code needs are its `ready`.
$(E2E)/%/ready: tests/e2e/npm/%/package.json tests/e2e/npm/%/package-lock.json
	@command -v npm > /dev/null || { echo "make e2e needs npm"; exit 1; }
	@mkdir -p $(@D) && rm -f $@
	cp $^ $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
	cd $(@D) && PATH="$(CURDIR)/$(E2E)/small/node_modules/.bin:$$PATH" npm run --silent --if-present ready
	@touch $@

$(E2E)/agents/ready: | $(E2E)/small/ready  # whose Node it uses

clean:
	rm -rf $(VENV) $(DEMO) $(E2E) .bench
