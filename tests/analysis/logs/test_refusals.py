"""What is no log of a program: each reader refuses it in one line that names the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analysis.logs import dcgmi_dmon, nvidia_smi_csv, top_batch, training_output
from analysis.terms import Unreadable

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from syrupy.assertion import SnapshotAssertion

READERS = (dcgmi_dmon, nvidia_smi_csv, top_batch, training_output)
ALL = {"empty": b"", "blank": b" \n\n", "bytes": bytes(range(256))}
OTHERS = {
    dcgmi_dmon: (b"#Entity  SMACT\nID\n", b"name, utilization.gpu [%]\nNVIDIA A100, 5 %\n"),
    nvidia_smi_csv: (
        b"name, utilization.gpu [%]\n",
        b"0,1,1,65.0\n1,1,8,65.8\n",
        b"#Entity  SMACT\nID\nGPU 0  0.5\n",
        b"Loss: 0.3, Accuracy: 98%\n",
    ),
    top_batch: (b"time: 5\n", b"top - 15:16:05 up  5:03,  3 users,  load average: 1.22, 0.73, 0.79\nTasks: 9 total\n\n"),
    training_output: (b"GPU 0  0.5\n",),
}


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__.rpartition(".")[2])
def test_refusals(tmp_path: Path, reader: ModuleType, snapshot: SnapshotAssertion) -> None:
    messages = {}
    for name, content in {**ALL, **{one.decode(): one for one in OTHERS[reader]}}.items():
        path = tmp_path / "other.txt"
        path.write_bytes(content)
        with pytest.raises(Unreadable, match=r"other\.txt") as refused:
            reader.read(path)
        messages[name] = str(refused.value).replace(f"{tmp_path}/", "")
        assert "\n" not in messages[name]
    assert messages == snapshot
