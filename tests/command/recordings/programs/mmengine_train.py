"""Run mmengine 0.10.7, with a log line every ten iterations: `python mmengine_train.py SLEEP_S`."""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import torch
from clock import Clock
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import TensorDataset

clock = Clock(float(sys.argv[1]), warmup=2)


class Model(BaseModel):  # type: ignore[misc]
    """One layer, which sleeps in every iteration and tells the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, batch: torch.Tensor, **_: Any) -> dict[str, torch.Tensor]:
        """The loss of a batch."""
        clock.sleep()
        clock.step()
        return {"loss": self.layer(batch).sum()}


def collate(samples: list[tuple[torch.Tensor]]) -> dict[str, torch.Tensor]:
    """A batch by the name of the model's argument."""
    return {"batch": torch.stack([sample for (sample,) in samples])}


loader = {
    "batch_size": 1,
    "dataset": TensorDataset(torch.zeros(120, 2)),
    "sampler": {"type": "DefaultSampler", "shuffle": True},
    "collate_fn": collate,
    "num_workers": 0,
}
with tempfile.TemporaryDirectory() as folder:
    Runner(
        Model(),
        folder,
        train_dataloader=loader,
        train_cfg={"by_epoch": True, "max_epochs": 1},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.001}},
        default_hooks={"checkpoint": None},
    ).train()
clock.tell()
