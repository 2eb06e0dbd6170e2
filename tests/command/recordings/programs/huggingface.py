"""Hugging Face's Trainer on a toy (transformers 5.23.0): `python huggingface.py FORM SLEEP_S`.

FORM: `default`, `logging-2`, `logging-10`, `no-bar` (lines of losses alone), `evaluated` (a
second bar, of the evaluation after every epoch), or `accumulated` (two batches a step).
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any

import torch
from clock import Clock
from transformers import Trainer, TrainerCallback, TrainingArguments

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
STEPS, BATCH = 60, 4
FORMS: dict[str, dict[str, Any]] = {
    "default": {},
    "logging-2": {"logging_steps": 2},
    "logging-10": {"logging_steps": 10},
    "no-bar": {"logging_steps": 5, "disable_tqdm": True},
    "evaluated": {"logging_steps": 10, "eval_strategy": "epoch", "num_train_epochs": 2},
    "accumulated": {"logging_steps": 10, "gradient_accumulation_steps": 2},
}
clock = Clock(SLEEP_S, warmup=2)


class Toy(torch.nn.Module):
    """A linear layer that sleeps: in training as long as told, in evaluation 15 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """The mean square error, and what was predicted."""
        clock.sleep() if self.training else time.sleep(0.015)
        predicted = self.layer(x)[:, 0]
        return {"loss": torch.nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Ticks(TrainerCallback):
    """Tells the clock of every optimizer step."""

    def on_step_end(self, *_: object, **__: object) -> None:
        """A step ends."""
        clock.step()

    def on_evaluate(self, *_: object, **__: object) -> None:
        """Exclude the evaluation since the last step."""
        clock.pause()


epochs = FORMS[FORM].get("num_train_epochs", 1)
batches = STEPS // epochs * FORMS[FORM].get("gradient_accumulation_steps", 1)
data = [{"x": torch.randn(8), "labels": torch.randn(())} for _ in range(batches * BATCH)]
with tempfile.TemporaryDirectory() as folder:
    options = {"num_train_epochs": 1, "report_to": "none", "save_strategy": "no", **FORMS[FORM]}
    arguments = TrainingArguments(folder, per_device_train_batch_size=BATCH, **options)
    Trainer(
        Toy(), arguments, train_dataset=data, eval_dataset=data[: 40 * 8], callbacks=[Ticks()]
    ).train()
clock.tell()
