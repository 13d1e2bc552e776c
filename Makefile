# demo       create .venv, then analyze a recorded Spark run
# demo-flink the same for a recorded Flink stream
# test       create .venv, then run the quick tests that need only Python packages
# test-all   also install the indexer (torch), and run all tests
# dist       build and check sdist and wheel in dist/; `make wheels` builds those of a release (RELEASING.md)
# docs       build the documentation into site/; `make docs-serve` shows it while you write
# lint       check format, style, imports, types and words
# texts      extract the labelled functions' texts and callees from the libraries (downloads about 2 GB), for the tables
# page       build the page's script and style from web/ (Node 20 and npm); commit the result
# pictures   draw the chart and take the pictures of the page in docs/pictures (Debian's chromium)
# table-NAME print a table of docs/classifiers.md: development folds measured languages words noise lengths mistakes front baselines encoder
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: help demo demo-flink test test-all docs docs-serve lint dist wheels bench fuzz hostile indexes labels texts page pictures check-machine

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RECORDING := lab/recordings/demo-q9
STREAM := tests/data/flink/ads-12000.json.gz tests/data/flink/ads-12000.series.gz
LIBRARIES ?= libraries
AGAINST ?= c37e911
LOGS ?= ../shared/real-inputs/spark-eventlog
ENCODER ?= sentence-transformers/all-MiniLM-L6-v2

help:
	@sed -n 's/^# //p' Makefile

demo: $(VENV)/ready
	@$(BIN)/crystalperf analyze $(RECORDING)

demo-flink: $(VENV)/ready
	@$(BIN)/crystalperf analyze $(STREAM)

test: $(VENV)/ready-dev
	@$(BIN)/python -m pytest -q --numprocesses auto --dist loadfile -m "not later"

test-all: $(VENV)/ready-all
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python -m pytest -q

lint: $(VENV)/ready-dev
	@$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python -m tests.words

dist: $(VENV)/ready-dev
	@rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m twine check --strict dist/*

wheels: dist
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	PATH="$(abspath $(BIN)):$$PATH" auditwheel repair --wheel-dir dist dist/*-linux_*.whl
	rm dist/*-linux_*.whl
	CRYSTALPERF_PURE=1 $(BIN)/python -m build --no-isolation --wheel
	$(BIN)/python -m twine check --strict dist/*
	cd dist
	sha256sum -- * > SHA256SUMS

bench: $(VENV)/ready-all
	@$(BIN)/python -m lab.costs.bench --against $(AGAINST)
	if [ -d web/node_modules ]; then npm --prefix web run --silent bench; fi
	if command -v chromium >/dev/null; then $(BIN)/python -m lab.costs.pages; fi
	$(BIN)/python -m lab.costs.growth
	$(BIN)/python -m lab.costs.service --seconds 20 --requests 10000
	if [ -d $(LOGS) ]; then $(BIN)/python -m lab.costs.fleets $(LOGS); fi

hostile: $(VENV)/ready-dev
	@$(BIN)/python -m pytest -q tests/hostile/test_lab_corpus.py
	timeout 600 $(BIN)/python -m lab.damage.fuzz --own --count 6 --seed 52

fuzz: $(VENV)/ready
	@$(BIN)/python -m lab.damage.fuzz

docs: $(VENV)/ready-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

docs-serve: $(VENV)/ready-docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

page: web/node_modules/.package-lock.json
	@cd web
	npm run --silent check
	npm run --silent test
	npm run --silent build

pictures: $(VENV)/ready-all
	@$(BIN)/python -m lab.charts
	$(BIN)/python -m lab.pictures

web/node_modules/.package-lock.json: web/package-lock.json
	@npm --prefix web ci --silent --no-audit --no-fund
	touch $@

indexes: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.prebuilt

labels: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.labels.statistics --write docs/dataset.md
	$(BIN)/python -m lab.score.readings --write docs/dataset.md

texts: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.labels.fetch $(LIBRARIES) --jars $(LIBRARIES)/jars
	$(BIN)/python -m crystalperf.indexer.labels.rebuild $(LIBRARIES) -o $(LIBRARIES)/texts.jsonl
	$(BIN)/python -m crystalperf.indexer.labels.rebuild $(LIBRARIES) --measured -o $(LIBRARIES)/measured.jsonl
	$(BIN)/python -m crystalperf.indexer.labels.called --texts $(LIBRARIES)/texts.jsonl $(LIBRARIES)/measured.jsonl --sources $(LIBRARIES) --jars $(LIBRARIES)/jars -o $(LIBRARIES)/called.jsonl

table-baselines: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.baselines --texts $(LIBRARIES)/texts.jsonl --sources $(LIBRARIES)

table-encoder: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.baselines.encoder --texts $(LIBRARIES)/texts.jsonl --sources $(LIBRARIES) --encoder $(ENCODER)

table-%: $(VENV)/ready-all
	@$(BIN)/python -m crystalperf.indexer.evaluate --texts $(LIBRARIES)/texts.jsonl --measured $(LIBRARIES)/measured.jsonl --called $(LIBRARIES)/called.jsonl --table $*

check-machine:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.11 or newer is needed, and $(PYTHON) was not found: install it, or name it with PYTHON=…" >&2; exit 1; }
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) -c 'import sys; print(*sys.version_info[:2], sep=".")'): name a newer one with PYTHON=…" >&2; exit 1; }
	$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv module is needed and $(PYTHON) lacks it: on Debian and Ubuntu install python3-venv" >&2; exit 1; }

$(VENV)/ready: pyproject.toml setup.py query/simulate/list_schedule.c query/inputs/line_rows.c | check-machine
	@echo "setting up $(VENV) …" >&2
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/ready-dev: pyproject.toml setup.py query/simulate/list_schedule.c query/inputs/line_rows.c | check-machine
	@echo "setting up $(VENV) for the tests …" >&2
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(VENV)/ready $@

$(VENV)/ready-all: pyproject.toml setup.py query/simulate/list_schedule.c query/inputs/line_rows.c | check-machine
	@echo "setting up $(VENV) with the indexer and the lab (torch is large) …" >&2
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,docs,indexer,lab]'
	touch $(VENV)/ready $(VENV)/ready-dev $(VENV)/ready-docs $@

$(VENV)/ready-docs: pyproject.toml | check-machine
	@echo "setting up $(VENV) for the documentation …" >&2
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@
