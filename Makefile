# Everything from a bare clone: the first target that needs the environment builds it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow soak hostile browser bench bench-check studies lint format docs clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[test,lint,docs]'
	touch $@

demo: .venv/installed
	$(BIN)/pliant demo --out runs/demo

test: .venv/installed .venv/browser
	$(BIN)/ruff check .
	$(BIN)/python -m pytest

test-slow: .venv/installed
	$(BIN)/python -m pytest -m slow

# Chromium for the tests of the editor, where Debian's can be installed; they are skipped elsewhere.
browser: .venv/browser

.venv/browser: .venv/installed
	@if command -v chromium || command -v chromium-browser || command -v google-chrome; then \
		touch $@; \
	else \
		sudo=$$([ "$$(id -u)" = 0 ] || echo "sudo -n"); \
		echo "installing chromium for the browser tests ..."; \
		if $$sudo apt-get install -y -qq chromium >/dev/null 2>&1 \
			|| { $$sudo apt-get update -qq >/dev/null 2>&1 \
				&& $$sudo apt-get install -y -qq chromium >/dev/null 2>&1; }; then touch $@; \
		else echo "*** NO CHROMIUM: the browser tests will be SKIPPED ***" >&2; fi; \
	fi

# Random ordinary scenes with nothing but defaults; a part of them is in make test.
soak: .venv/installed
	$(BIN)/python -m pytest -m slow tests/whole/test_soak.py

# Thousands of bad inputs; a tenth of them is in make test.
hostile: .venv/installed
	$(BIN)/python -m pytest -m slow tests/whole/test_hostile.py

bench: .venv/installed
	$(BIN)/python benchmarks/run.py

bench-check: .venv/installed
	$(BIN)/python benchmarks/run.py --check

studies: .venv/installed
	$(BIN)/python benchmarks/studies.py
	$(BIN)/python benchmarks/bias.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/pyright

# What `make lint` would complain of and can be put right by itself.
format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: .venv/installed
	$(BIN)/python -m mkdocs build --quiet

clean:
	rm -rf .venv runs build dist
