# Words for daily use. `make setup PYTHON=python3.12` chooses another Python.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install -qq --constraint constraints.txt

# One thread a program, because pytest starts a program per core and timings need quiet.
ONE_THREAD := OMP_NUM_THREADS=1

stop = { echo "make setup: $(1)" >&2; exit 1; }

.PHONY: help setup demo test check format bench

help:
	@echo "make setup   install everything into .venv"
	@echo "make demo    from real text to a scored translation model (examples/quickstart)"
	@echo "make test    all tests"
	@echo "make check   lint, format and types, without changing a file"
	@echo "make format  lint fixes and formatting"
	@echo "make bench   speed and memory beside fairseq's own transformer"

setup: $(INSTALLED)

# .venv gets its pip from $(PYTHON)'s, so that Debian's python3-venv need not be there.
# fairseq is compiled against the torch, numpy and cython of .venv: in pip's isolated build it
# would download torch a second time.
# torchaudio, which fairseq declares, serves its speech models only. The version that pip finds
# does not load beside this torch and breaks every package that imports it when it is there.
$(INSTALLED): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	    $(call stop,Python 3.11 or newer is needed: make setup PYTHON=/path/to/python3.11)
	@$(PYTHON) -m pip --version >/dev/null 2>&1 || \
	    $(call stop,pip is missing: apt-get install python3-pip)
	@c++ --version >/dev/null 2>&1 || \
	    $(call stop,a C++ compiler is missing: apt-get install g++)
	@test -f "`$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))'`/Python.h" || \
	    $(call stop,the headers of Python are missing: apt-get install python3-dev)
	@echo "setup 1/4: .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv --without-pip .venv
	@$(PYTHON) -m pip --python $(BIN)/python install -qq pip 'setuptools<81' wheel
	@echo "setup 2/4: torch"
	@$(INSTALL) torch cython numpy
	@echo "setup 3/4: fairseq (compiles for about 3 minutes the first time)"
	@$(INSTALL) --no-build-isolation fairseq-fixed
	@echo "setup 4/4: fairseq_rope and its tools"
	@$(INSTALL) --no-build-isolation --editable '.[dev,export,floater,plot]'
	@$(PIP) --quiet uninstall --yes torchaudio
	@touch $@

demo: setup
	@$(BIN)/python -m examples.quickstart.demo

test: setup
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(ONE_THREAD) $(BIN)/python -m benchmarks.training
	$(ONE_THREAD) $(BIN)/python -m benchmarks.generation
	$(ONE_THREAD) $(BIN)/python -m benchmarks.long_source
	$(ONE_THREAD) $(BIN)/python -m benchmarks.long_sequences
