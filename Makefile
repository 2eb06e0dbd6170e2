# Two commands: `make bench` sets up and runs the main job, `make test` sets up and passes the tests.
# As root (sudo make bench) every kernel setting can be measured; without, those that need no root.
VENV ?= .venv
PYTHON ?= python3
TORCH = $(shell sed -n 's/.*"\(torch==[0-9.]*\)".*/\1/p' pyproject.toml)
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
NAME ?= exp1

.PHONY: bench test setup clean

bench: setup
	$(VENV)/bin/python -m pytest benchmarks/ --benchmark-save=$(NAME) $(ARGS)

test: setup
	$(VENV)/bin/python -m pytest $(ARGS)

setup: $(VENV)/ready

# Where no NVIDIA GPU answers, torch's CPU build is a twentieth of the size; where its index cannot be reached, the usual one serves.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV) || { echo "No venv module: apt-get install python3-venv, or your distribution's equivalent." >&2; exit 1; }
	$(VENV)/bin/pip install --quiet --upgrade pip
	if ! nvidia-smi -L >/dev/null 2>&1 && \
	    $(PYTHON) -c 'import urllib.request as u; u.urlopen("$(TORCH_CPU_INDEX)/torch/", timeout=10)' 2>/dev/null; \
	then $(VENV)/bin/pip install --quiet --index-url $(TORCH_CPU_INDEX) $(TORCH); fi
	$(VENV)/bin/pip install --quiet --editable '.[workloads,test]'
	touch $@

clean:
	rm -rf $(VENV) .benchmarks
