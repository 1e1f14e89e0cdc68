# The commands of this repository; `make help` lists them. GNU make and Python 3.11 or newer are all that they need.

PYTHON   ?= python3
VENV     ?= .venv
# The torch to install. Another build: make test TORCH='torch==2.13.0+cu126' PIP_ARGS='--extra-index-url URL'
TORCH    ?= torch==2.13.0
# The project's extras; cpu and gpu exclude each other.
EXTRAS   ?= cpu,lang,dev
PIP_ARGS ?=
# More arguments for pytest, e.g. PYTEST_ARGS='-k order -x', or PYTEST_ARGS='-n 0 --pdb' for one process
PYTEST_ARGS ?=
# Of `make demo`: the numbers of the training, in short bfloat16 where the processor is faster in it; what is cut, and two
# stages at a time: an encoder this small gains nothing from a second thread.
PRECISION ?= $(if $(FULL),,auto)
SHORT := --set budget.tokens=200000 --set prepare.max_documents=375 --set compute.threads=1 --workers 2
# The methods that `make worlds` ranks.
METHODS ?= bm25,crop
# The accessibility checker of the browser tests, which npm brings.
AXE      ?= $(CURDIR)/build/axe/node_modules/axe-core/axe.min.js
# Of `make fuzz`: tries of each fuzzer, the first seed (also that of `make mutants`), and the fuzzers; none for all.
FUZZ ?= 1000
SEED ?= 0
TARGETS ?=
# Of `make bench`: parts of the names of rows; none for all.
ROWS ?=
# Seconds for all slow tests together: then the tests that are running are the last ones, and the run fails.
SLOW_CAP ?= 2700

# Bytecode is kept, also where the environment says otherwise: half of what a short command takes would be compiling.
export PYTHONDONTWRITEBYTECODE :=

COMMA := ,
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS)
PINS := $(VENV)/constraints.txt
# As many processes as processors, each with one thread; a module's tests keep together, since they share fixtures.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses=auto --maxprocesses=4 --dist=loadscope
# The tests of whatever trains.
TRAINING := $(wildcard tests/methods/[!b]*) tests/bench/training tests/bench/pipeline/stages/test_tune.py tests/golden/test_methods.py
# One stamp per choice of torch and extras, so that another choice installs anew and the same one is instant.
STAMP := $(VENV)/.installed-$(shell printf '%s' '$(TORCH)|$(EXTRAS)' | cksum | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.PHONY: help install demo demo-seeds worlds test test-processors calibration bench test-slow test-gpu test-browser lint types layers docs docs-site counts clean fuzz kills mutants rows five-million signed-plans full-size release

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/make \1|\2/' | awk -F'|' '{printf "%-16s %s\n", $$1, $$2}'

install: $(STAMP) ## make the environment and install the project into it, editable

# The default extras come first, by hash; torch and what it needs have none, since its build is chosen here. Torch comes
# alone, so that nothing else can choose its build; then the pins, with the torch that came.
$(STAMP): pyproject.toml constraints.txt requirements.lock
	@command -v '$(PYTHON)' >/dev/null 2>&1 || { \
	  echo "found no command '$(PYTHON)', expected Python 3.11 or newer; install it, or name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "found $$('$(PYTHON)' --version 2>&1), expected Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	@rm -f $(VENV)/.installed-*
	@echo "making the environment $(VENV)"
	@'$(PYTHON)' -m venv $(VENV)
	@grep -v '^torch==' constraints.txt > $(PINS)
ifeq ($(sort $(filter cpu lang dev,$(subst $(COMMA), ,$(EXTRAS)))),cpu dev lang)
	@echo "installing what requirements.lock pins by version and hash"
	@$(PIP) --require-hashes --no-deps -r requirements.lock
endif
	@echo "installing $(TORCH)"
	@$(PIP) -c $(PINS) '$(TORCH)'
	@$(BIN)/python -c 'from importlib.metadata import version; print("torch==" + version("torch"))' >> $(PINS)
	@echo "installing the project with the extras $(EXTRAS)"
	@$(PIP) -c $(PINS) hatchling editables
	@$(PIP) -c $(PINS) --no-build-isolation -e '.[$(EXTRAS)]'
	@$(BIN)/python -m compileall -q bench leaderboard methods suites # pip compiles whatever is not editable
	@touch $@

demo: $(STAMP) ## the main job in short: BM25 at once, then pretrain, encode, search, score and show; FULL=1 is the README's table
	@$(BIN)/bench run --method bm25 --suite mrtydi --store store --results results
	@$(BIN)/bench run --method bm25,msm --suite mrtydi $(if $(FULL),,$(SHORT)) $(if $(PRECISION),--set train.precision=$(PRECISION)) --store store --results results
	@$(BIN)/bench leaderboard build --results results --out site
	@$(if $(FULL),,echo "a fifth of the tokens and a quarter of the texts: make demo FULL=1 makes the table of the README")

demo-seeds: $(STAMP) ## the demo with three seeds: means, and tests that hold for methods
	@$(BIN)/bench run --method bm25,msm --suite mrtydi --seed 0,1,2 --store store --results results
	@$(BIN)/bench compare bm25 msm msm@init --suite mrtydi --data mini --results results

worlds: $(STAMP) ## rank METHODS under the five settings of the embedded world (bench/data/mini/README.md)
	@for world in $$($(BIN)/python -c 'from bench.data.mini import PRESETS; print(*PRESETS)'); do \
	  $(BIN)/bench run --method $(METHODS) --suite mrtydi,tatoeba --set mini.world=$$world --store store --results results || exit 1; \
	done

test: $(STAMP) ## the tests that take seconds
	@$(PYTEST) $(PYTEST_ARGS)

test-processors: $(STAMP) ## the training tests with the arithmetic of processors without AVX-512, and without AVX2
	@ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=AVX2 $(PYTEST) $(TRAINING) $(PYTEST_ARGS)
	@ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE $(PYTEST) $(TRAINING) $(PYTEST_ARGS)

calibration: $(STAMP) ## how often significance tests are right, by simulation (docs/calibration.md); an hour
	@$(BIN)/python -m experiments.calibration
	@$(BIN)/python -m experiments.races --write

bench: $(STAMP) ## speed compared with other libraries in one process (docs/performance.md); ROWS names some, FULL=1 is larger
	@$(BIN)/python -m experiments.speed $(if $(FULL),--full) $(ROWS)

rows: $(STAMP) ## unpack the committed results into build/rows (experiments/README.md)
	@$(BIN)/python -m experiments.rows

fuzz: $(STAMP) ## damaged input of every kind, FUZZ tries of each fuzzer from SEED on, or of TARGETS alone
	@OMP_NUM_THREADS=1 $(BIN)/python -m tests.fuzz $(FUZZ) $(SEED) $(TARGETS)

mutants: $(STAMP) ## how many of 100 mutations of rules between packages the tests notice, sampled with SEED; at most an hour of two processors
	@$(BIN)/python -m tests.mutants $(SEED)

test-slow: $(STAMP) ## the tests that take minutes
	@bash .ci/slow $(SLOW_CAP) $(BIN)/python $(PYTEST_ARGS)

five-million: $(STAMP) ## five million passages indexed, encoded and searched in 2 GiB, into docs/five-million.json; half an hour
	@OMP_NUM_THREADS=1 BENCH_PASSAGES=5000000 BENCH_RECORD=1 $(BIN)/python -m pytest -m slow tests/system/test_five_million.py $(PYTEST_ARGS)

kills: $(STAMP) ## seven commands killed at random instants, four times as often as by `make test-slow`; minutes
	@BENCH_KILLS=4 $(BIN)/python -m pytest -m slow tests/system/test_killed.py $(PYTEST_ARGS)

full-size: $(STAMP) ## BM25 over five million passages against its plan, and with DATA vectors in float16 (docs/full-size.md); half an hour
	@$(BIN)/python -m experiments.full_size bm25
	@$(if $(DATA),$(BIN)/python -m experiments.full_size float16 '$(DATA)')

signed-plans: $(STAMP) ## resources planned and used by three runs on DATA=FOLDER of official data (docs/signed-plans.md)
	@$(BIN)/python -m experiments.signed_plans $(DATA)

test-gpu: $(STAMP) ## what only a GPU can show (docs/gpu.md); needs one, and EXTRAS=gpu
	@$(BIN)/python -m pytest -m gpu tests/gpu $(PYTEST_ARGS)

test-browser: ## the site in a browser; needs Chromium (Debian: apt-get install chromium) and npm
	@$(MAKE) --no-print-directory install PYTHON='$(PYTHON)' EXTRAS='$(if $(findstring browser,$(EXTRAS)),$(EXTRAS),$(EXTRAS),browser)'
	@test -f '$(AXE)' || { mkdir -p build/axe && npm install --silent --no-audit --no-fund --ignore-scripts --prefix build/axe axe-core@4.14.1; }
	@BENCH_AXE='$(AXE)' $(BIN)/python -m pytest -m browser tests/browser $(PYTEST_ARGS)

lint: $(STAMP) ## style of the code
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(STAMP) ## types, strictly
	@$(BIN)/mypy

layers: $(STAMP) ## who may import whom
	@$(BIN)/lint-imports

docs: $(STAMP) ## draw the flow of stages and the layers into docs/architecture.md, list settings and sources
	@$(BIN)/python docs/flow.py
	@$(BIN)/python docs/counts.py --write
	@$(BIN)/python docs/sources.py

counts: $(STAMP) ## how many settings there are, keys that nothing sets, classes and calls before a stage
	@$(BIN)/python docs/counts.py

docs-site: ## the documentation as a site in build/docs, every link checked
	@$(MAKE) --no-print-directory install PYTHON='$(PYTHON)' EXTRAS='$(if $(findstring docs,$(EXTRAS)),$(EXTRAS),$(EXTRAS),docs)'
	@$(BIN)/python docs/pages.py
	@$(BIN)/zensical build --clean --strict

release: $(STAMP) ## check, build and tag the version of pyproject.toml: wheel, sha256 and notes in dist/ (CONTRIBUTING.md)
	@PYTHON=$(BIN)/python bash .ci/release

clean: ## remove the environment, builds and caches; results and store stay
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find bench methods suites leaderboard tests -name __pycache__ -type d -prune -exec rm -rf {} +
