"""DLIO's jobs as files: each figure is DLIO's, and a faulty file is named with its fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from fixtures.studies.io import models
from fixtures.studies.io.parameters import complete
from fixtures.terms import BadInput

# DLIO at e1919d7: format, files, samples per file, record length and its spread, batch, computation
# time, epochs, readers.
OF_DLIO: dict[str, tuple[str, int, int, float, float, int, float, int, int]] = {
    "unet3d_h100": ("npz", 168, 1, 146600628, 68341808, 7, 0.323, 5, 4),
    "unet3d_a100": ("npz", 168, 1, 146600628, 68341808, 7, 0.636, 5, 4),
    "unet3d_v100": ("npz", 168, 1, 146600628, 68341808, 4, 1.3604, 5, 4),
    "resnet50_h100": ("tfrecord", 1024, 1251, 114660.07, 0, 400, 0.224, 5, 8),
    "resnet50_a100": ("tfrecord", 1024, 1251, 114660.07, 0, 400, 0.435, 5, 8),
    "resnet50_v100": ("tfrecord", 1024, 1251, 114660.07, 0, 64, 0.195, 5, 8),
    "resnet50_tf": ("tfrecord", 1024, 1251, 114660.07, 0, 64, 0.098, 1, 8),
    "cosmoflow_h100": ("tfrecord", 524288, 1, 2828486, 71311, 1, 0.0035, 5, 4),
    "cosmoflow_a100": ("tfrecord", 524288, 1, 2828486, 71311, 1, 0.00551, 5, 4),
    "cosmoflow_v100": ("tfrecord", 524288, 1, 2828486, 71311, 1, 0.00936, 5, 4),
    "bert_v100": ("tfrecord", 500, 313532, 2500, 0, 48, 0.968, 1, 1),
    "dlrm": ("indexed_binary", 1, 1024, 671088640, 0, 1, 0.064296, 1, 1),
    "default": ("npz", 64, 1, 4096, 0, 4, 1.0, 10, 1),
    "megatron_deepspeed_LLNL": ("indexed_binary", 1, 277203535, 2048, 0, 16, 2.44, 3, 1),
}
KEYS = (
    "format",
    "num_files_train",
    "num_samples_per_file",
    "record_length_bytes",
    "record_length_bytes_stdev",
    "batch_size",
    "computation_time",
    "model_epochs",
    "read_threads",
)
GOOD = """\
model: toy
source: here
parameters: {format: npz, num_files_train: 2, num_samples_per_file: 1, record_length_bytes: 9, \
batch_size: 1, computation_time: 1}
scales: {sample_scale: 1, record_scale: 1}
"""


@pytest.mark.parametrize("name", OF_DLIO)
def test_in_its_real_size_a_job_is_what_dlio_has(name: str) -> None:
    params = complete({"model": name, "sample_scale": "1", "record_scale": "1"})
    assert tuple(params[key] for key in KEYS) == OF_DLIO[name]


NO_NUMBER = "batch_size is .*; must be a number"
BAD = {
    "no YAML": ("a: [1", "broken YAML: did not find"),
    "a list": ("- 1", "must contain one YAML mapping"),
    "no model": ("source: x", "model is missing"),
    "another name": (GOOD.replace("toy", "tay"), "`model: tay` does not match the file name"),
    "an unknown key": (
        GOOD.replace("batch_size", "batchsize"),
        r"parameters: unknown key 'batchsize'\. Did you mean 'batch_size'\? Available:",
    ),
    "an unknown part": (GOOD + "scale: 1\n", r"unknown key 'scale'\. Did you mean 'scales'\?"),
    "a key left out": (
        GOOD.replace("computation_time: 1", "epochs: 1"),
        "computation_time is missing",
    ),
    "no scales": (GOOD.replace(", record_scale: 1", ""), "record_scale is missing"),
    "a scale of 0": (
        GOOD.replace("record_scale: 1", "record_scale: 0"),
        "record_scale is 0; must be a number above 0",
    ),
    **{
        f"{text} for a number": (GOOD.replace("batch_size: 1", f"batch_size: {text}"), NO_NUMBER)
        for text in ("-1", ".nan")
    },
    "an accelerator without": (
        GOOD + "accelerators: {h100: }\naccelerator: h100\n",
        "accelerators.h100 is None; must be a mapping",
    ),
    "another accelerator": (
        GOOD + "accelerators: {h100: {epochs: 2}}\naccelerator: a100\n",
        "accelerator: must be one of h100",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_named_with_what_is_wrong(what: str, tmp_path: Path) -> None:
    text, says = BAD[what]
    path = tmp_path / "toy.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=says) as refused:
        models.read(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
