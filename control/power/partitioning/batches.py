"""Which batches a process of a given share may have."""

from __future__ import annotations

STEP_PERCENT = 5
LADDER = (4, 8, 16, 32, 64, 96, 128, 192, 256)
MOST_BATCH = {"vgg19": 160}  # what fits into the memory of a GPU, by network


def fits(network: str, batch: int) -> bool:
    """Whether the network's activations of such a batch are known to fit into memory."""
    return batch <= MOST_BATCH.get(network, batch)


def greedy_batches(share_percent: int, network: str) -> list[int]:
    """Answer the batches that the original tries for a share: from 0.8 to 6.4 images per percent. Source: PctoDL."""
    low = max(LADDER[0], 4 * share_percent // 5)
    found = [batch for batch in LADDER if low <= batch <= 32 * share_percent // 5 and fits(network, batch)]
    return found or [min((batch for batch in LADDER if fits(network, batch)), key=lambda batch: abs(batch - low))]
