"""The kernel's code, as NVRTC makes it: compiled, not run. No GPU is needed for it."""

from __future__ import annotations

import re

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


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_thread_has_an_element_of_its_own(architecture: str) -> None:
    """A 64-bit index from block number, block size, and thread; one element read, one written."""
    ptx = device.compiled(architecture, "PTX").decode()
    block, size, thread = (
        re.search(rf"mov\.u32\s+(%r\d+), {name}\.x;", ptx)
        for name in (r"%ctaid", r"%ntid", r"%tid")
    )
    assert block
    assert size
    assert thread
    product = re.search(rf"(mul\.wide\.u32|mad\.wide\.u32)\s+(%rd\d+), {block[1]}, {size[1]}", ptx)
    assert product
    assert thread[1] in ptx.partition(thread[0])[2]
    assert (
        len(re.findall(r"ld\.global[.\w]*f32", ptx))
        == len(re.findall(r"st\.global[.\w]*f32", ptx))
        == 1
    )
    assert "atom" not in ptx


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_squaring_is_left_out(architecture: str) -> None:
    """A loop over the number given: a register times itself, and a jump back to before it."""
    ptx = device.compiled(architecture, "PTX").decode()
    squares = [place.start() for place in re.finditer(r"mul\.f32\s+%f\d+, (%f\d+), \1;", ptx)]
    assert squares
    loops = []
    for label in re.finditer(r"^(\$L\w+):", ptx, re.MULTILINE):
        back = [
            jump.start()
            for jump in re.finditer(rf"@%p\d+ bra\s+{re.escape(label[1])};", ptx)
            if jump.start() > label.start()
        ]
        loops += [(label.start(), max(back))] if back else []
    assert any(start < square < end for start, end in loops for square in squares)
    assert re.search(r"ld\.param\.u64\s+%rd\d+, \[square_param_1\]", ptx)


def test_a_gpu_that_the_compiler_does_not_know_is_a_sentence() -> None:
    with pytest.raises(
        Refused,
        match=r"kernel\.cu does not compile for sm_20 with NVRTC \d+\.\d+: .*gpu-architecture",
    ):
        device.compiled("sm_20")
