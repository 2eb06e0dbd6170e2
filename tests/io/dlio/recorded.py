"""Real runs of DLIO 2.0.0 (`tests/recordings/dlio-2.0.0`), and programs that replay them."""

from __future__ import annotations

from pathlib import Path

from fixtures.studies.io.dlio import Installed
from tests.programs import PYTHON

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dlio-2.0.0"
# Keys of LoadConfig 2.0.0 that the engine may set.
RELEASE = frozenset(
    {
        "framework", "workflow.generate_data", "workflow.train", "workflow.evaluation",
        "workflow.checkpoint", "workflow.profiling", "dataset.format", "dataset.num_files_train",
        "dataset.num_files_eval", "dataset.num_samples_per_file", "dataset.data_folder",
        "dataset.num_subfolders_train", "dataset.num_subfolders_eval", "dataset.file_prefix",
        "dataset.keep_files", "reader.data_loader", "reader.read_threads", "reader.prefetch_size",
        "reader.batch_size", "reader.file_shuffle", "reader.sample_shuffle", "reader.transfer_size",
        "train.epochs", "train.computation_time", "train.computation_time_stdev", "train.seed",
        "train.total_training_steps", "checkpoint.type", "checkpoint.checkpoint_folder",
        "checkpoint.checkpoint_after_epoch", "checkpoint.epochs_between_checkpoints",
        "checkpoint.steps_between_checkpoints", "output.folder", "dataset.record_length",
        "dataset.record_length_stdev", "dataset.record_length_resize", "checkpoint.model_size",
        "checkpoint.layer_parameters", "checkpoint.optimization_groups", "workflow.debug",
    }
)  # fmt: skip

# Takes mpirun's place. It finds the folder in DLIO's own overrides, copies a recording there, and
# ends as it is told.
REPLAY = """{python}import shutil, sys, time
from pathlib import Path
said = dict(one.lstrip("+").split("=", 1) for one in sys.argv if "=" in one)
print(*sys.argv)
output = Path(said["workload.output.folder"])
data = Path(said["workload.dataset.data_folder"])
Path("{seen}").write_text("\\n".join([*sys.argv, *map(str, sorted(data.glob("*/*")))]))
{act}
"""
COPY = 'shutil.copytree("{recording}", output, dirs_exist_ok=True)'


def program(folder: Path, recording: str = "1", act: str = COPY) -> Installed:
    """A DLIO 2.0.0 that leaves what a recorded run left."""
    mpirun = folder / "mpirun"
    said = act.format(recording=RECORDINGS / recording, folder=folder)
    mpirun.write_text(REPLAY.format(python=PYTHON, seen=folder / "seen.txt", act=said))
    mpirun.chmod(0o755)
    return Installed(folder / "dlio_benchmark", mpirun)
