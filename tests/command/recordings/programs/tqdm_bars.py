"""Loops under tqdm bars of every form (tqdm 4.70.1): `python tqdm_bars.py FORM SLEEP_S`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable

from clock import Clock
from tqdm import tqdm, trange

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
STEPS = 120
clock = Clock(SLEEP_S * (20 if FORM == "very-fast" else 1))


def step() -> None:
    """Sleep as long as told, and tell the clock."""
    clock.sleep()
    clock.step()


def loop(bar: Iterable[int]) -> None:
    """Take a step for each of the bar's, and stop the clock."""
    for _ in bar:
        step()
    clock.pause()


def nested() -> None:
    """An outer bar of epochs, an inner of batches that is wiped."""
    for epoch in trange(4, desc="epochs"):
        loop(trange(STEPS // 4, desc=f"epoch {epoch}", leave=False))


def epochs() -> None:
    """One bar after another, one for each epoch."""
    for epoch in range(4):
        loop(trange(STEPS // 4, desc=f"Epoch {epoch + 1}/4"))


def validated() -> None:
    """A bar of training, then one of validation with a count and a speed of its own."""
    for _ in range(3):
        loop(trange(STEPS // 3, desc="train"))
        for _ in trange(25, desc="val"):
            time.sleep(0.011)


def ranks() -> None:
    """Two processes with a bar each into the same pipe; the second takes as long."""
    command = [sys.executable, __file__, "rank1", str(SLEEP_S)]
    with subprocess.Popen(command, env={"PYTHONUNBUFFERED": "1"}):
        loop(trange(STEPS, desc="rank0"))


def very_fast() -> None:
    """Thousands of steps between two redraws.

    The clock sleeps once for 20 of them: a sleep as short as a step is longer than told.
    """
    for number in trange(STEPS * 100):
        if number % 20 == 0:
            clock.sleep()
        clock.step()


def written() -> None:
    """Lines between redraws, by tqdm.write."""
    for number in trange(STEPS):
        step()
        if number % 10 == 9:
            tqdm.write(f"loss {3.0 / (number + 1):.4f}")


def updated() -> None:
    """A bar of samples: each step updates it by its batch of 32; a postfix tells the loss."""
    with tqdm(total=STEPS * 32, unit="samples", desc="train") as bar:
        for number in range(STEPS):
            step()
            bar.update(32)
            bar.set_postfix(loss=f"{3.0 / (number + 1):.3f}", lr="1.0e-04")


def postfix() -> None:
    """A loss after the bar, set in every step without a redraw."""
    bar = trange(STEPS, desc="Epoch 0")
    for number in bar:
        step()
        bar.set_postfix(loss=3.0 / (number + 1), acc=number / STEPS, refresh=False)


FORMS = {
    "default": lambda: loop(tqdm(range(STEPS))),
    "desc": lambda: loop(tqdm(range(STEPS), desc="Training")),
    "unit-scale": lambda: loop(tqdm(range(1500), unit_scale=True)),
    "no-total": lambda: loop(tqdm(iter(range(STEPS)))),
    "seconds": lambda: loop(tqdm(range(6))),
    "nested": nested,
    "epochs": epochs,
    "validated": validated,
    "ranks": ranks,
    "rank1": lambda: loop(trange(STEPS, desc="rank1")),
    "very-fast": very_fast,
    "mininterval-0": lambda: loop(tqdm(range(STEPS), mininterval=0)),
    "written": written,
    "stdout": lambda: loop(tqdm(range(STEPS), file=sys.stdout)),
    "updated": updated,
    "postfix": postfix,
    "ascii": lambda: loop(tqdm(range(STEPS), ascii=True, ncols=60, mininterval=1)),
}
FORMS[FORM]()
if FORM != "rank1":
    clock.tell()
