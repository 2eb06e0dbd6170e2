"""fastai's Learner on a toy (fastai 2.8.12): `python fastai_fit.py SLEEP_S`."""

from __future__ import annotations

import sys
import tempfile

import torch
from clock import Clock
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.learner import Learner
from fastai.metrics import mae

SLEEP_S = float(sys.argv[1])
clock = Clock(SLEEP_S, warmup=2)


class Ticks(Callback):  # type: ignore[misc]
    """Sleep in every batch and clock the epochs: without a terminal, fastai prints no batches."""

    def before_batch(self) -> None:
        """Sleep as long as told."""
        clock.sleep()

    def after_epoch(self) -> None:
        """An epoch ends, its validation too."""
        clock.step()


def batches(count: int) -> torch.utils.data.DataLoader[tuple[torch.Tensor, ...]]:
    """Return `count` batches of 4 random samples."""
    data = torch.utils.data.TensorDataset(torch.randn(count * 4, 8), torch.randn(count * 4, 1))
    return torch.utils.data.DataLoader(data, 4)


with tempfile.TemporaryDirectory() as folder:
    model, loss = torch.nn.Linear(8, 1), torch.nn.functional.mse_loss
    loaders = DataLoaders(batches(8), batches(2))
    Learner(loaders, model, loss, metrics=mae, path=folder, cbs=[Ticks()]).fit(14)
clock.tell()
