"""resnet_train is ResNet-50, of the sizes that it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures import workloads
from fixtures.targets._process import run
from fixtures.terms import Order

# 25,557,032 parameters: torchvision's table of models.
PARAMETERS = 25_557_032


@pytest.mark.needs("torch")
def test_it_is_resnet_50_on_images_of_the_size_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Smallest sizes: two images of 32 x 32, whose last feature map is a single pixel."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    small = workloads.case("resnet_train", image_size=32, batch_size=2)
    assert small.id == "resnet_train:batch_size=2:image_size=32"
    done = run(Order(small, steps=2, warmup_steps=0, seed=3, scratch=tmp_path))
    assert done.error is None, done.last_lines
    assert [step.samples for step in done.steps] == [2, 2]
    assert (done.facts["parameters"], done.facts["trainable_parameters"]) == (
        PARAMETERS,
        PARAMETERS,
    )
    assert done.facts["omp_wait_policy"] == "passive", "threads that wait do not spin"


def test_imagenets_sizes_can_be_asked_for() -> None:
    known = workloads.load("resnet_train:image_size=224:batch_size=64")
    assert (known.id, known.params["batch_size"], known.params["image_size"]) == (
        "resnet_train:batch_size=64:image_size=224",
        64,
        224,
    )
    assert workloads.of(known).cell_s() > workloads.of("resnet_train").cell_s()
