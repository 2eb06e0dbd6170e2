# `make bench` sets up and runs the main job, `make test` sets up and passes the tests that any machine can run.
# `make help` says the rest. What cannot be done here, in a container or without root, is left out and said.
VENV ?= .venv
PYTHON ?= python3
TORCH = $(shell grep -x 'torch==[0-9.]*' requirements.lock)
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
ACTIONLINT = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
LOWEST = $(VENV)-lowest
RELEASE = $(VENV)-release
NAME ?= exp1
export DEBIAN_FRONTEND = noninteractive
# Where the environment forbids bytecode, each of a thousand sessions would compile the house anew.
export PYTHONDONTWRITEBYTECODE =
# setuptools warns of folders that are named like an editable package; this project runs from its folder and installs none.
PIP = PYTHONWARNINGS=ignore $(VENV)/bin/pip
PYTEST = $(VENV)/bin/python -m pytest
# Whole sessions wait for clusters and for their turn at this kernel: more processes than there are cores, a module in each. One that
# hangs is ended, with the place where it hung; in CI each is named as it ends.
SESSIONS = $(PYTEST) -n $$(( $$(nproc) < 6 ? $$(nproc) + 2 : 8 )) --dist=loadscope --no-loadscope-reorder --timeout=1200 $${CI:+-v}
# In CI, as root where there is apt-get, what tests need of the system is installed; elsewhere those tests are skipped with the reason.
INSTALL = if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get update -qq && apt-get install -y -qq --no-install-recommends

.PHONY: bench lint test test-lowest test-machine test-cluster test-all gpu-kit release-check for-machine for-cluster setup help clean

bench: setup  ## the main job: tweak sets × AI training (NAME=exp1, ARGS=--blocks=10)
	@echo "Measuring: about ten minutes on 2 idle cores, longer on a busy machine. Until the first cell begins, frameworks are imported."
	DEEPTWEAK_STARTED_AS=$(VENV)/bin/deeptweak $(VENV)/bin/python -m pytest benchmarks/ --benchmark-save=$(NAME) $(ARGS)

test: $(VENV)/test  ## four minutes on 2 idle cores: no root, no torch, no cluster, nothing is built (ARGS=tests/tweaks: a part)
	$(PYTEST) -n auto --maxprocesses=8 --dist=worksteal --tier=quick $(ARGS)

lint: $(VENV)/lint  ## a minute: ruff, its format, strict mypy, and actionlint where Go is
	@failed=; \
	$(VENV)/bin/ruff check . || failed=1; \
	$(VENV)/bin/ruff format --check . || failed=1; \
	$(VENV)/bin/mypy || failed=1; \
	if command -v actionlint >/dev/null; then actionlint || failed=1; \
	elif command -v go >/dev/null; then go run $(ACTIONLINT) || failed=1; \
	else echo "actionlint did not run: Go is not installed (https://go.dev/dl)."; test -z "$$CI" || failed=1; fi; \
	test -z "$$failed"

test-lowest: $(LOWEST)/test  ## `make test` in an environment of its own with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest -n auto --maxprocesses=8 --dist=worksteal --tier=quick $(ARGS)

test-machine: for-machine  ## as root, on a machine you can spare: this kernel, whole sessions, torch, a browser, a thousand kills
	$(SESSIONS) --tier=machine $(ARGS)

test-cluster: for-cluster  ## a real Kubernetes cluster (the first time it is built: 6 minutes)
	$(SESSIONS) --tier=cluster $(ARGS)

test-all:  ## all three tiers; one that fails does not stop the others
	@failed=; $(MAKE) test || failed=1; $(MAKE) --keep-going for-machine for-cluster || failed=1; \
	$(SESSIONS) --tier=machine --tier=cluster $(ARGS) || failed=1; test -z "$$failed"

for-machine: $(VENV)/dev
	@for name in chromium google-chrome chromium-browser; do if command -v $$name >/dev/null; then exit 0; fi; done; \
	$(INSTALL) chromium; fi
	@if command -v perf >/dev/null && command -v top >/dev/null; then exit 0; fi; \
	$(INSTALL) procps && { apt-get install -y -qq --no-install-recommends linux-perf || \
	    apt-get install -y -qq --no-install-recommends linux-tools-common "linux-tools-$$(uname -r)"; }; fi

# KUBECONFIG's cluster, kind's, or one of this machine: its Go programs are built once, in the user's cache.
for-cluster: $(VENV)/dev
	@if [ -z "$$KUBECONFIG" ] && ! $(VENV)/bin/python -m tests.cluster.rig can 2>/dev/null; then $(INSTALL) \
	    containerd runc containernetworking-plugins busybox-static iptables iproute2 openssl; fi; fi
	@if [ -n "$$KUBECONFIG" ]; then exit 0; fi; $(VENV)/bin/python -m tests.cluster.rig build --if-possible

# TAG is what a release job was started by. Nothing here reads the clone but the build: the wheel runs where there is none.
release-check:  ## build wheel and sdist into dist/, and try the wheel in a fresh environment (TAG=v0.1.0: must be the version)
	rm -rf dist $(RELEASE)
	$(PYTHON) -m venv $(RELEASE)/build
	$(RELEASE)/build/bin/pip install --quiet build
	$(RELEASE)/build/bin/python -m build --outdir dist
	$(PYTHON) -m venv $(RELEASE)/fresh
	$(RELEASE)/fresh/bin/pip install --quiet dist/*.whl
	sh .github/release_check.sh $(RELEASE)/fresh $(TAG)

# Versions are this project's: what tests/gpu/day.sh runs there is then what is run here. All of it is pure Python.
gpu-kit: $(VENV)/bin/python  ## wheels in .gpu-kit/ for a GPU machine without a network (tests/gpu/day.sh)
	$(PIP) download --quiet --no-deps --only-binary=:all: --dest .gpu-kit pluggy iniconfig execnet py-cpuinfo \
	    $(shell grep -Ex '(pytest|pytest-benchmark|pytest-timeout|pytest-xdist|nvidia-ml-py)==.*' requirements.lock)

setup: $(VENV)/bench  ## what `make bench` needs

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No venv module: apt-get install python3-venv, or your distribution's equivalent." >&2; exit 1; }
	$(PIP) install --quiet --upgrade pip

# Light: nothing is compiled beforehand, since most of it is never imported.
$(VENV)/test: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "Installing what the tests need into $(VENV): one to three minutes."
	$(PIP) install --quiet --no-compile -c requirements.lock --editable '.[test]'
	touch $@

# pip always takes the newest version that a range allows.
$(LOWEST)/test: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test]'
	touch $@

$(VENV)/lint: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(PIP) install --quiet --no-compile -c requirements.lock --editable '.[test,lint]'
	touch $@

# Where no NVIDIA GPU answers, torch's CPU build is a twentieth of the size; where its index cannot be reached, the usual one serves.
$(VENV)/bench: pyproject.toml requirements.lock | $(VENV)/bin/python
	@echo "Installing what the main job needs into $(VENV): one to five minutes, torch first."
	if ! nvidia-smi -L >/dev/null 2>&1 && \
	    $(PYTHON) -c 'import urllib.request as u; u.urlopen("$(TORCH_CPU_INDEX)/torch/", timeout=10)' 2>/dev/null; \
	then $(PIP) install --quiet --index-url $(TORCH_CPU_INDEX) $(TORCH); fi
	@echo "torch is in place; now the rest."
	$(PIP) install --quiet -c requirements.lock --editable '.[studies,kubernetes,workloads,monitors]'
	touch $@

$(VENV)/dev: $(VENV)/bench
	$(PIP) install --quiet -c requirements.lock --editable '.[workloads,monitors,test,dev]'
	touch $@

help:  ## this
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 16

clean:  ## remove the environment; saved runs stay
	rm -rf $(VENV) $(LOWEST) $(RELEASE) dist .benchmarks/scratch
