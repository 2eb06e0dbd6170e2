"""Lightning's Trainer on a toy (lightning 2.6.6): `python lightning_fit.py FORM SLEEP_S`.

FORM: `default` (its own choice of a bar), `tqdm`, `rich`, or `tqdm-no-val`. A sanity check comes
before training, and validation after every epoch, but for the last form.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import lightning
import torch
from clock import Clock
from lightning.pytorch.callbacks import Callback, RichProgressBar, TQDMProgressBar
from torch.utils.data import DataLoader, TensorDataset

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
BARS: dict[str, list[Callback]] = {
    "default": [],
    "tqdm": [TQDMProgressBar()],
    "tqdm-no-val": [TQDMProgressBar()],
    "rich": [RichProgressBar()],
}
clock = Clock(SLEEP_S, warmup=2)


class Toy(lightning.LightningModule):
    """A linear layer that sleeps: in training as long as told, in validation 15 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        """The loss, which the bar shows."""
        clock.sleep()
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        """The loss of validation."""
        time.sleep(0.015)
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
        self.log("val_loss", loss, prog_bar=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Plain descent."""
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class Ticks(Callback):
    """Tells the clock of every batch of training."""

    def on_train_batch_end(self, *_: object, **__: object) -> None:
        """A step ends."""
        clock.step()

    def on_validation_start(self, *_: object) -> None:
        """Validation is no step."""
        clock.pause()

    def on_train_epoch_start(self, *_: object) -> None:
        """Nor is the change of epochs."""
        clock.pause()


def batches(count: int) -> DataLoader[Any]:
    """Return `count` batches of 4 random samples."""
    return DataLoader(TensorDataset(torch.randn(count * 4, 8), torch.randn(count * 4, 1)), 4)


with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        callbacks=[*BARS[FORM], Ticks()],
    )
    trainer.fit(Toy(), batches(40), None if FORM == "tqdm-no-val" else batches(20))
clock.tell()
