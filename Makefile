# Two commands: `make bench` sets up and runs the main job, `make test` sets up and passes the tests.
# As root (sudo make bench) every kernel setting can be measured; without, those that need no root.
VENV ?= .venv
PYTHON ?= python3
TORCH = $(shell sed -n 's/.*"\(torch==[0-9.]*\)".*/\1/p' pyproject.toml)
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
NAME ?= exp1

.PHONY: bench test setup browser monitors cluster clean

bench: setup
	$(VENV)/bin/python -m pytest benchmarks/ --benchmark-save=$(NAME) $(ARGS)

# In two processes; with a path in ARGS, or as `$(VENV)/bin/python -m pytest`, in one.
test: setup browser monitors cluster
	$(VENV)/bin/python -m tests.side_by_side $(ARGS)

setup: $(VENV)/ready

# Where no NVIDIA GPU answers, torch's CPU build is a twentieth of the size; where its index cannot be reached, the usual one serves.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV) || { echo "No venv module: apt-get install python3-venv, or your distribution's equivalent." >&2; exit 1; }
	$(VENV)/bin/pip install --quiet --upgrade pip
	if ! nvidia-smi -L >/dev/null 2>&1 && \
	    $(PYTHON) -c 'import urllib.request as u; u.urlopen("$(TORCH_CPU_INDEX)/torch/", timeout=10)' 2>/dev/null; \
	then $(VENV)/bin/pip install --quiet --index-url $(TORCH_CPU_INDEX) $(TORCH); fi
	$(VENV)/bin/pip install --quiet --editable '.[workloads,monitors,test]'
	touch $@

# Tests open the report in a browser. In CI, as root where there is apt-get, it is installed; elsewhere those tests are skipped without it.
browser:
	@for name in chromium google-chrome chromium-browser; do if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; \
	else echo "No Chromium: the tests that open the report in a browser are skipped (apt-get install chromium)." >&2; fi

# Tests run monitors of the system for real. In CI, as root where there is apt-get, they are installed; linux-perf is Debian's name, the
# other two are Ubuntu's. Elsewhere those tests are skipped without them.
monitors:
	@if command -v perf >/dev/null && command -v top >/dev/null; then exit 0; fi; \
	if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then export DEBIAN_FRONTEND=noninteractive; apt-get update -qq; \
	    apt-get install -y -qq --no-install-recommends procps; \
	    apt-get install -y -qq --no-install-recommends linux-perf || \
	    apt-get install -y -qq --no-install-recommends linux-tools-common "linux-tools-$$(uname -r)"; \
	else echo "No perf or no top: the tests that run them are skipped (apt-get install linux-perf procps)." >&2; fi

# Tests start a Kubernetes cluster of this machine: Debian's containerd, and Go programs that are built once (6 minutes on 2 cores).
# In CI, as root where there is apt-get, what is missing is installed; elsewhere it is said, and those tests are skipped.
cluster: setup
	@if [ -n "$$CI" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! $(VENV)/bin/python -m tests.cluster.rig can 2>/dev/null; \
	then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	    containerd runc containernetworking-plugins busybox-static iptables iproute2 openssl; fi
	@if [ -n "$$KUBECONFIG" ]; then exit 0; fi; if $(VENV)/bin/python -m tests.cluster.rig can; then $(VENV)/bin/python -m tests.cluster.rig build; fi

clean:
	rm -rf $(VENV) .benchmarks
