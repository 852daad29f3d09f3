# Everything from a bare clone: the first target that needs the environment builds it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow bench bench-check lint clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@

demo: .venv/installed
	$(BIN)/pliant demo --out runs/demo

test: .venv/installed
	$(BIN)/python -m pytest

test-slow: .venv/installed
	$(BIN)/python -m pytest -m slow

bench: .venv/installed
	$(BIN)/python benchmarks/run.py

bench-check: .venv/installed
	$(BIN)/python benchmarks/run.py --check

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/pyright

clean:
	rm -rf .venv runs build dist
