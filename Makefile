# Two commands on a fresh machine with Python 3.11+ and a Rust toolchain: `make demo` and `make test`.
# Everything goes into .venv and target/; `make clean` takes it away again.

PYTHON ?= python3
VENV ?= .venv
MINUTES ?= 10
LIVES ?= 10000
FIRST ?= 0
KILLS ?= 10000
SEED ?= 0
BIN := $(VENV)/bin
export VIRTUAL_ENV := $(abspath $(VENV))
# The machine's own pip settings stay in force; only its chatter goes.
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-slow lives fuzz fuzz-importers break lint build wheel bench reference docs clean synapse

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: build ## Import two sample chats, let a local model find the tasks, show them with their sources.
	$(BIN)/pip install -q '$(shell sed -nE 's/^local = \["(.*)"\]/\1/p' pyproject.toml)'
	$(BIN)/python examples/demo/run.py

test: build small-model ## Run all tests: Rust, Python, doctests.
	cargo test -q --workspace --features chatproc-core/failpoints
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: build small-model ## Run the long modes too.
	$(BIN)/python -m pytest -m 'slow or not slow' --timeout 3600

.PHONY: small-model
small-model: build
	$(BIN)/python tests/fetch_small_model.py

lives: ## Live LIVES (10000) whole lives of a store by seeds, from FIRST (0) on.
	CHATPROC_LIFE_SEEDS=$(LIVES) CHATPROC_LIFE_FIRST=$(FIRST) \
	cargo test -q --profile lives -p chatproc-core --features failpoints --test life

fuzz: build ## Fuzz the core's entry points and the readers of attachments for MINUTES (10) each.
	rust/chatproc-core/fuzz/run $(MINUTES)
	$(BIN)/python tests/fuzz_readers.py $(MINUTES)

fuzz-importers: build ## Attack the importers with damaged samples for MINUTES (10).
	$(BIN)/python tests/fuzz_importers.py $(MINUTES)

break: build ## Kill and fault a small project KILLS (10000) times, and report; SEED=N begins elsewhere.
	$(BIN)/python -m tests.breaking --kills $(KILLS) --seed $(SEED)

synapse: target/synapse/.ready ## Install a Matrix homeserver, for the tests of that connector.

target/synapse/.ready:
	$(PYTHON) -m venv target/synapse
	target/synapse/bin/python -m pip install -q 'matrix-synapse>=1.163,<2'
	touch $@

lint: build ## Check formats, lints, types and the stub.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -W ignore -m mypy.stubtest chatproc._core

build: $(VENV)/.ready ## Build the package into .venv.
	$(BIN)/maturin develop -q --release

reference: build ## Write the parts of docs/ that are made from the program.
	$(BIN)/python -W ignore -m tests.reference

docs: $(VENV)/.ready ## Build the site of docs/ into target/site; a broken link fails.
	$(BIN)/sphinx-build -q -W --keep-going docs target/site

wheel: $(VENV)/.ready ## Build the wheel and the source distribution into dist/.
	$(BIN)/maturin build -q --release --sdist --out dist

bench: build ## Measure against the goals; BENCH="--generator FILE --baselines FOLDER" adds rows.
	$(BIN)/python benches/goals.py $(BENCH)
	$(BIN)/python benches/imports.py

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q --group dev 'maturin>=1.16,<2'
	touch $@

clean: ## Remove what was built.
	rm -rf $(VENV) target dist
