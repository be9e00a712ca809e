# Needs python3 >= 3.10 with venv, and make; uses uv where it is there. `make demo` is the place to begin.
#
#   PYTHON=python3.13   which Python the environment is made of
#   VENV=.venv          where the environment is
#   CODEX=/path/codex   the Codex of the demo (default: `codex` on PATH, else the fake one)
#   JOBS=4              tests that run side by side; PYTEST_ARGS='-m "not real"' chooses among them

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 4
PYTEST_ARGS ?=

UV := $(shell command -v uv)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-old-codex bench soak kill-matrix crowd simulate seen check format constraints install install-real install-browser clean

demo: install ## Two harnesses, one channel, messages both ways
	@$(BIN)/python -m tests.demo $(if $(CODEX),--codex '$(CODEX)')

test: install ## The whole suite; tests of the real binaries are skipped, aloud, without `make install-real`
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

test-old-codex: install ## Join and send with a real Codex from before the queue API, fetched for it (needs npm)
	$(BIN)/python -m pytest tests/real/old_codex.py

bench: install ## Times, against floors measured in the same run
	$(BIN)/python -m tests.bench

growth: install ## A million handled messages: the time of each call, then of removing them (8 minutes, 1 GB)
	$(BIN)/python -m tests.bench.growth

soak: install ## Everything killed at random for MINUTES (10): TROUBLE=stop or lock for other troubles; SEED, WRITE=1
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),10) $(if $(TROUBLE),--trouble $(TROUBLE)) $(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write)

kill-matrix: install ## Processes die at every place, in pairs (PAIRS) and at random (INSTANTS); SEED, WRITE=1
	$(BIN)/python -m tests.crash.kill_matrix --pairs $(or $(PAIRS),100) --instants $(or $(INSTANTS),1000) $(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write)

crowd: install ## Eight servers and eight streamers on one file, killed at random for MINUTES (10); SEED, WRITE=1
	$(BIN)/python -m tests.crash.crowd --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write)

simulate: install ## All of it under a simulated clock: SEED=1 STEPS=10000 replays; SEEDS=20 runs many; ARGS=--planted or --trace
	@$(BIN)/python -m tests.simulation --seed $(or $(SEED),1) --steps $(or $(STEPS),10000) --seeds $(or $(SEEDS),1) $(if $(WRITE),--write) $(ARGS)

seen: install ## `seen` held against the real harnesses' model requests, MESSAGES (200) a side; SEED, WRITE=1 (needs install-real)
	$(BIN)/python -m tests.real.seen_agreement --messages $(or $(MESSAGES),200) $(if $(SEED),--seed $(SEED)) $(if $(WRITE),--write)

check: install ## Format, lint, types, architecture
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

format: install ## Format, and mend what the linter can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

install: $(INSTALLED)

# Hashed packages first, then this folder, so that an edit counts at once. Bytecode is compiled now: without it
# the first start of the MCP server takes longer than Claude Code waits.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("agent-channel needs Python 3.10 or newer; name one: make PYTHON=python3.13")'
ifdef UV
	$(UV) venv --quiet --allow-existing --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python --compile-bytecode --require-hashes -r constraints.txt
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

install-real: ## The pinned real Codex and Claude Code that the tests run, offline (800 MB; needs npm)
	cd tests/real && npm ci --ignore-scripts

install-browser: ## A Chromium for the tests of the live view, from Debian's packages (as root), unless there is one
	@command -v chromium chromium-browser google-chrome >/dev/null \
		|| { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

constraints: ## Lock anew what pyproject.toml asks for (needs uv)
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.10 --generate-hashes --no-annotate \
		--no-header --no-emit-index-url --no-emit-find-links --quiet --upgrade -o constraints.txt

clean:
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
