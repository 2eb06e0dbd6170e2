"""Complete given parameters with the model's, scaled; refuse contradictions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.parameters import canonical
from fixtures.studies.io import models
from fixtures.studies.io.parameters import PARAMETERS, complete
from fixtures.terms import BadInput


def test_the_default_is_unet3d_scaled() -> None:
    """Two times 168 files of one sample in batches of 7: 48 steps.

    A 64th of 146 600 628 bytes in a 64th of 0.323 s.
    """
    params = complete({})
    assert (params["model"], params["num_files_train"], params["steps"]) == ("unet3d_h100", 336, 48)
    assert params["record_length_bytes"] == 146600628 / 64 == 2290634.8125
    assert params["record_length_bytes_stdev"] == 68341808 / 64
    assert params["record_length_bytes_resize"] == 2097152 // 64
    assert params["computation_time"] == 0.323 / 64
    assert (
        params["read_threads"],
        params["batch_size"],
        params["file_shuffle"],
        params["sample_shuffle"],
    ) == (4, 7, "seed", "seed")
    assert (params["engine"], params["processes"], params["cache"], params["checkpoint"]) == (
        "torch",
        1,
        "cold",
        "off",
    )


@pytest.mark.parametrize(
    ("processes", "steps"), [("1", 48), ("2", 24), ("4", 12), ("5", 9), ("8", 6), ("48", 1)]
)
def test_steps_are_what_is_left_when_surplus_samples_are_dropped(
    processes: str, steps: int
) -> None:
    """336 samples / 7 / P, rounded down."""
    assert complete({"processes": processes})["steps_per_epoch"] == steps


def test_given_values_are_not_scaled_and_keep_relative_spread() -> None:
    """68341808 / 146600628 of 10 MiB.

    DLIO keeps 68 MB around 10 MiB, which is another distribution; who wants that gives it.
    """
    params = complete(
        {
            "record_length_bytes": "10Mi",
            "num_files_train": "42",
            "computation_time": "0.5",
            "record_scale": "1/32",
        }
    )
    assert (
        params["record_length_bytes"],
        params["num_files_train"],
        params["computation_time"],
    ) == (10485760, 42, 0.5)
    assert params["record_scale"] == 0.03125
    assert params["record_length_bytes_stdev"] == pytest.approx(10485760 * 68341808 / 146600628)
    assert (
        complete({"record_length_bytes": "10Mi", "record_length_bytes_stdev": "0"})[
            "record_length_bytes_stdev"
        ]
        == 0
    )


@pytest.mark.parametrize(
    ("threads", "size", "factor"),
    [("4", "0", 2), ("4", "8", 2), ("4", "9", 3), ("1", "2", 2), ("0", "0", 0)],
)
def test_prefetching_is_shared_out_as_dlio_shares_it(threads: str, size: str, factor: int) -> None:
    """ceil(prefetch_size / read_threads); two for each where it is not set."""
    assert complete({"read_threads": threads, "prefetch_size": size})["prefetch_factor"] == factor


def test_checkpoints_follow_the_models_schedule_within_the_run() -> None:
    """unet3d writes one after epoch 5, every 2; bert after each 250 steps."""
    found = {epochs: complete({"epochs": epochs}) for epochs in ("1", "4", "5")}
    assert {epochs: params["checkpoint"] for epochs, params in found.items()} == {
        "1": "off",
        "4": "off",
        "5": "on",
    }
    assert (found["5"]["epochs_between_checkpoints"], found["5"]["model_size_bytes"]) == (
        2,
        499153191,
    )
    bert = [complete({"model": "bert", "sample_scale": scale}) for scale in ("0.00002", "0.0001")]
    assert [(params["checkpoint"], params["steps_between_checkpoints"]) for params in bert] == [
        ("off", 0),
        ("on", 250),
    ]


REFUSED: dict[str, tuple[Mapping[str, str], str]] = {
    "unknown key": (
        {"batchsize": "7"},
        r"no parameter 'batchsize'\. Did you mean 'batch_size'\? Available: model, engine, ",
    ),
    "unknown model": ({"model": "unet"}, r"Unknown model 'unet'\. Did you mean 'unet3d'\?"),
    "unknown format": (
        {"format": "tfrecrd"},
        r"format=tfrecrd: no such value\. Did you mean 'tfrecord'\?",
    ),
    "scaled to such": (
        {"sample_scale": "1e9"},
        (
            r"num_files_train=\d+: must be at most 5000000; use a smaller value or a smaller "
            r"sample_scale"
        ),
    ),
    "no step": (
        {"batch_size": "200", "processes": "2"},
        (
            r"The data set is too small for one step: batch_size 200 x processes 2 needs 400 "
            r"samples, but 336 files of 1 hold 336\."
        ),
    ),
    "no record": (
        {"model": "default", "record_scale": "0.0001"},
        r"record_scale=0\.0001: leaves only 0\.4096 of the model's 4096 bytes per record",
    ),
    "images": (
        {"format": "png", "num_samples_per_file": "4"},
        "num_samples_per_file=4: a png file holds only one sample; set num_files_train instead",
    ),
    "prefetch": (
        {"prefetch_size": "8", "read_threads": "0"},
        "prefetch_size=8 with read_threads=0: a rank without readers prepares nothing",
    ),
    "transfers": (
        {"transfer_size": "1Mi"},
        (
            "transfer_size=1048576 and format=npz: the format's library .* transfer_size applies "
            "to indexed_binary, raw, tfrecord"
        ),
    ),
    "no transfers": (
        {"format": "raw", "transfer_size": "0"},
        "transfer_size=0 and format=raw: a read of 0 bytes",
    ),
    "no checkpoints": (
        {"checkpoint": "off", "model_size_bytes": "1Mi"},
        "checkpoint=off with model_size_bytes=1048576: .* remove one of them",
    ),
    "never a checkpoint": (
        {"steps_between_checkpoints": "49"},
        "No checkpoint would be written: one is due every 49 steps, but the run has 1 epochs of 48",
    ),
    "never one by epochs": (
        {"epochs_between_checkpoints": "2"},
        "one is due every 2 epochs, but the run has 1 epochs of 48 steps",
    ),
    "raw in DLIO": (
        {"engine": "dlio", "format": "raw"},
        "engine=dlio with format=raw: DLIO does not support this format",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(what: str) -> None:
    given_, says = REFUSED[what]
    with pytest.raises(BadInput, match=says) as refused:
        complete(given_)
    assert "\n" not in str(refused.value)


COUNTS = st.integers(1, 9).map(str)
SOME_SIZES = st.sampled_from(["64Ki", "1Mi", "5000", "2e6"])
# Values that may be given, and a few that may not.
GIVEN = st.fixed_dictionaries(
    {},
    optional={
        **{key: st.sampled_from(known.words) for key, known in PARAMETERS.items() if known.words},
        "model": st.sampled_from(list(models.available())),
        **dict.fromkeys(
            ("processes", "epochs", "read_threads", "batch_size", "num_samples_per_file"), COUNTS
        ),
        **dict.fromkeys(("prefetch_size", "steps_between_checkpoints"), COUNTS | st.just("0")),
        "epochs_between_checkpoints": st.integers(1, 2).map(str),
        "num_files_train": st.integers(1, 900).map(str),
        **dict.fromkeys(
            (
                "transfer_size",
                "model_size_bytes",
                "record_length_bytes",
                "record_length_bytes_resize",
            ),
            SOME_SIZES,
        ),
        "record_length_bytes_stdev": SOME_SIZES | st.sampled_from(["0", "0.5", "1e100", "-1"]),
        "computation_time": st.floats(0, 2).map(str) | st.text(max_size=3),
        **dict.fromkeys(
            ("sample_scale", "record_scale"),
            st.floats(0.001, 4).map(str) | st.sampled_from(["1/3", "2e-3", "0"]),
        ),
    },
)


@given(GIVEN)
def test_a_variants_canonical_name_is_equivalent_and_stable(
    given_: dict[str, str],
) -> None:
    try:
        said, params = canonical(given_, PARAMETERS, complete)
    except BadInput:
        return
    assert complete(said) == params
    assert canonical(said, PARAMETERS, complete) == (said, params)
    assert list(said) == [key for key in PARAMETERS if key in said]
