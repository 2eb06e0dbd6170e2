"""A loop of accelerate's own examples (accelerate 1.15.0): `python accelerate_loop.py SLEEP_S`.

As in huggingface/transformers' run_glue_no_trainer.py: one bar over all epochs, updated by hand,
shown by the main process alone; evaluation between epochs has no bar.
"""

from __future__ import annotations

import sys
import time

import torch
from accelerate import Accelerator
from clock import Clock
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm

SLEEP_S = float(sys.argv[1])
EPOCHS, STEPS = 3, 50
clock = Clock(SLEEP_S, warmup=2)
accelerator = Accelerator()
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = TensorDataset(torch.randn(STEPS * 4, 8), torch.randn(STEPS * 4, 1))
model, optimizer, batches = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=4))
progress_bar = tqdm(range(EPOCHS * STEPS), disable=not accelerator.is_local_main_process)
for epoch in range(EPOCHS):
    for x, y in batches:
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        clock.sleep()
        progress_bar.update(1)
        clock.step()
    clock.pause()
    time.sleep(0.3)  # evaluation
    accelerator.print(f"epoch {epoch}: {{'accuracy': {0.5 + epoch / 10:.4f}}}")
clock.tell()
