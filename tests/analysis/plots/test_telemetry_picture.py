"""Telemetry over time: lines are means of samples, and missing samples draw no line at 0."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.load import load
from analysis.plots import sampled, telemetry
from analysis.plots.marks import trailing_mean
from analysis.plots.sampled import pooled
from analysis.plots.scene import Scene, panels_of, scene_of, series_key
from analysis.telemetry import QUANTITIES
from tests.analysis.plots.reading import points, refusal, said
from tests.made_telemetry import sampled_file
from tests.synthetic import Made

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rows_of(figure: Figure) -> list[str]:
    """The quantities that are drawn, from above."""
    labels = {one.label for one in QUANTITIES}
    return [name for text in figure.texts if (name := text.get_text().split("\n")[0]) in labels]


def test_devices_of_a_kind_are_merged_and_measured_steps_shaded(
    drawings: dict[str, Figure], scene: Scene
) -> None:
    """Two GPUs of 60 W make 120 W; the warmer temperature counts; CPU modes add up to busy."""
    traces = {
        one.label: arms["stock"]
        for one, arms in sampled.column_of(scene, panels_of(scene)[0]).traces.items()
    }
    assert set(traces["GPU power"].raw) == {120.0}
    assert traces["GPU temperature"].mean.max() > 53
    assert np.nanmax(traces["CPU busy"].mean) == pytest.approx(97.0)
    figure = drawings["telemetry"]
    assert "constant: GPU power" in said(figure).replace("\n", " ")
    axes = figure.axes[next(at for at, name in enumerate(rows_of(figure)) if name == "CPU busy")]
    line = next(line for line in axes.lines if line.get_marker() == "None")
    assert points(line) == [
        pytest.approx(one, nan_ok=True)
        for one in zip(traces["CPU busy"].time_s, traces["CPU busy"].mean, strict=True)
    ]
    shade = axes.patches[0].get_window_extent().transformed(axes.transData.inverted())
    assert shade.x0 == pytest.approx(1.08, abs=0.03), (
        "sampling begins a second before the first step; two of 40 ms are warm-up"
    )
    assert shade.x1 - shade.x0 == pytest.approx(0.4, abs=0.05), "ten are measured"


def test_a_missing_or_altered_file_gives_a_reason_not_a_panel(tmp_path: Path) -> None:
    path = sampled_file(tmp_path, Made(blocks=1))
    side = next(tmp_path.glob("telemetry-*.xz"))
    side.write_bytes(side.read_bytes() + b"\0")
    assert "not the file" in refusal(telemetry, scene_of([load(path)]))
    side.unlink()
    assert "not beside run.json" in refusal(telemetry, scene_of([load(path)]))


def test_a_workload_that_was_not_sampled_says_so(scene: Scene) -> None:
    """Without GPU columns for one workload, its panels state that nothing was sampled."""
    keys = {
        series_key(scene.runs[0], cell.id)
        for cell in scene.runs[0].cells
        if cell.workload == "cnn_train"
    }
    less = {
        key: replace(
            one,
            columns={
                name: values
                for name, values in one.columns.items()
                if key not in keys or not name.startswith("gpu")
            },
        )
        for key, one in scene.series.items()
    }
    figure = telemetry.draw(replace(scene, series=less))
    assert said(figure).count("not sampled") == sum("GPU" in name for name in rows_of(figure))
    assert not figure.axes[0].lines


def test_pooled_cells_end_when_most_have_ended() -> None:
    """Cells of 3, 5 and 9 samples: after the fifth, only the slowest cell would be averaged."""
    cells = [
        (np.arange(length, dtype=float), np.full(length, value))
        for length, value in ((3, 1.0), (5, 2.0), (9, 6.0))
    ]
    trace = pooled(cells)
    assert trace.time_s.tolist() == [0, 1, 2, 3, 4]
    # 3.0 is (1 + 2 + 6) / 3; from the fourth sample on (2 + 6) / 2; trailing over three.
    assert trace.mean == pytest.approx([3, 3, 3, 10 / 3, 11 / 3])
    assert len(trace.raw) == 17


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=40),
    st.integers(1, 12),
)
def test_the_trailing_mean_looks_back_over_known_values_only(
    values: list[float | None], window: int
) -> None:
    column = np.array([np.nan if value is None else value for value in values])
    for at, mean in enumerate(trailing_mean(column, window)):
        known = [one for one in values[max(0, at + 1 - window) : at + 1] if one is not None]
        wanted = np.nan if values[at] is None else sum(known) / len(known)
        assert mean == pytest.approx(wanted, abs=1e-3, nan_ok=True)
