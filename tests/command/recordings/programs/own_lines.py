"""Lines as people write them in their own loops: `python own_lines.py FORM SLEEP_S`.

Those of `nanogpt`, `build-nanogpt` and `llm-c` are in the manner of karpathy's programs of
these names: the time is that of the last step alone.
"""

from __future__ import annotations

import sys
import time

from clock import Clock

FORM, SLEEP_S = sys.argv[1], float(sys.argv[2])
STEPS, TOKENS = 120, 4096


def line(step: int, last_s: float, mean_s: float) -> str | None:
    """Return the line printed after a step, if any, from its time and the mean of the last ten."""
    loss = 3.0 / (step + 1) ** 0.5
    tenth, ms = step % 10 == 0, last_s * 1000
    lines: dict[str, tuple[bool, str]] = {
        "nanogpt": (tenth, f"iter {step}: loss {loss:.4f}, time {ms:.2f}ms, mfu {1.2:.2f}%"),
        "build-nanogpt": (
            True,
            (
                f"step {step:5d} | loss: {loss:.6f} | lr {1e-4:.4e} | norm: {0.5:.4f} | dt: "
                f"{ms:.2f}ms | tok/sec: {TOKENS / last_s:.2f}"
            ),
        ),
        "llm-c": (
            True,
            (
                f"step {step + 1:4d}/{STEPS} | train loss {loss:.6f} | norm {0.5:.4f} "
                f"| lr {1e-4:.2e} | ({ms:.2f} ms | {TOKENS / last_s:.0f} tok/s)"
            ),
        ),
        "seconds-per-it": (True, f"step {step} | loss {loss:.3f} | {last_s:.2f} s/it"),
        "it-per-second": (tenth, f"[{step}/{STEPS}] loss={loss:.3f} {1 / mean_s:.1f} it/s"),
        "ms-per-step": (tenth, f"step {step}: loss={loss:.3f}, {mean_s * 1000:.1f} ms/step"),
        "count": (tenth, f"Step {step}/{STEPS}, loss: {loss:.4f}"),
        "epochs": (tenth, f"Epoch [1/1], Step [{step}/{STEPS}], Loss: {loss:.4f}"),
        "ms-tokens": (True, f"step {step} | {ms:.1f} ms | {TOKENS / last_s:.0f} tok/s"),
        "samples": (
            tenth,
            f"iteration {step} loss {loss:.3f} throughput {32 / mean_s:.1f} samples/s",
        ),
        "cumulative": (
            tenth,
            f"step {step} loss {loss:.3f} elapsed {time.perf_counter() - BEGAN_S:.2f}s",
        ),
        "time-per-step": (tenth, f"step: {step}, loss: {loss:.3f}, time per step: {mean_s:.4f} s"),
        "pytorch-mnist": (
            tenth,
            (
                f"Train Epoch: 1 [{step * 64}/{STEPS * 64} ({100 * step / STEPS:.0f}%)]\tLoss: "
                f"{loss:.6f}"
            ),
        ),
        "json": (
            True,
            (
                f'{{"step": {step}, "loss": {loss:.4f}, "step_time": {last_s:.6f}, "timing": '
                f'{{"forward_s": {last_s / 3:.6f}}}}}'
            ),
        ),
    }
    due, text = lines[FORM]
    return text if due else None


BEGAN_S = time.perf_counter()
clock = Clock(SLEEP_S, warmup=2)
times_s: list[float] = []
for step in range(STEPS):
    began_s = time.perf_counter()
    time.sleep(0.3) if step == 0 else clock.sleep()  # the first compiles
    clock.step()
    times_s.append(time.perf_counter() - began_s)
    recent = times_s[-10:]
    if text := line(step, times_s[-1], sum(recent) / len(recent)):
        print(text)
clock.tell()
