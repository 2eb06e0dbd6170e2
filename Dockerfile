# One image for both pods of a run on a cluster: the node agent and the workloads. Code, frameworks, nothing else.
#
#   docker build -t registry.example/deeptweak:1 .                                 torch for the CPU
#   docker build -t registry.example/deeptweak:1-cuda --build-arg TORCH_INDEX= .   torch for CUDA
#
# Which program runs is said by the pod: `python -m fixtures.workloads.<name>`, `python -m fixtures.kubernetes.node_agent`.
FROM python:3.11-slim

# The CPU build is a twentieth of the size. Empty: that of pip's own index, which is the CUDA one.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

WORKDIR /opt/deeptweak
ENV PYTHONPATH=/opt/deeptweak PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore HOME=/tmp

# First what changes rarely: the versions are those of requirements.lock, as on every machine.
COPY pyproject.toml hatch_build.py requirements.lock conftest.py README.md LICENSE ./
RUN pip install ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} "$(grep -x 'torch==[0-9.]*' requirements.lock)" \
    && pip install -c requirements.lock '.[kubernetes,studies,workloads]'

COPY control control
COPY deeptweak deeptweak
COPY fixtures fixtures
# A user who may not write here could not keep what Python compiles, and every cell would compile it anew.
RUN python -m compileall -q control fixtures

# A workload only computes. The node agent's pod asks for root itself.
USER 65532:65532
CMD ["python", "-m", "fixtures.workloads.idle", "--steps=20", "--warmup=2", "--seed=1", "--scratch=/tmp"]
