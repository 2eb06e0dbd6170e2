"""The kernel's code, as NVRTC makes it: compiled, not run. No GPU is needed for it."""

from __future__ import annotations

import pytest

from fixtures.studies.gpu import device
from fixtures.terms import Refused

ARCHITECTURES = ("sm_80", "sm_90")


pytestmark = pytest.mark.needs("nvrtc")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_it_compiles_to_machine_code(architecture: str) -> None:
    """An ELF file with the kernel's name in it."""
    code = device.compiled(architecture)
    assert code.startswith(b"\x7fELF")
    assert device.KERNEL in code


def test_a_gpu_that_the_compiler_does_not_know_is_a_sentence() -> None:
    with pytest.raises(
        Refused,
        match=r"kernel\.cu does not compile for sm_20 with NVRTC \d+\.\d+: .*gpu-architecture",
    ):
        device.compiled("sm_20")
