"""What holds of every picture."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import matplotlib as mpl
import pytest
from matplotlib.text import Text

from analysis.load import from_json, load
from analysis.plots import pictures
from analysis.plots.page import page
from analysis.plots.scene import NothingToDraw, Scene, scene_of
from analysis.plots.style import SETTINGS, SMALL, looks_of, svg, written
from tests.analysis.plots.conftest import MADE
from tests.analysis.plots.reading import faults, said
from tests.made_telemetry import sampled_file
from tests.synthetic import AGAIN, STOCK, Arm, Made, saved_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOUSE = Path(__file__).parents[3]
REAL = HOUSE / "data/runs/2026-11-21_amd-epyc-2cpu.json"
NAMES = [name for name, one in pictures().items() if not any(hasattr(one, only) for only in ("DESIGNS", "REPORTS", "MONITORED"))]


def test_every_file_that_draws_a_scene_is_a_picture_and_each_says_what_it_is() -> None:
    """ANSWERS is one sentence; the order is the reader's and no two pictures share a place."""
    modules = pictures()
    assert {"forest", "run_order", "steps", "distribution", "averages", "impact", "parameters", "energy", "telemetry"} <= modules.keys()
    assert "page" not in modules
    assert len({module.ORDER for module in modules.values()}) == len(modules)
    assert list(modules) == sorted(modules, key=lambda name: modules[name].ORDER)
    assert all(module.TITLE and module.ANSWERS.endswith(".") and "\n" not in module.ANSWERS for module in modules.values())


def test_a_picture_that_needs_something_else_is_left_to_its_own_command() -> None:
    history = HOUSE / "analysis/plots/history.py"
    assert "history" not in pictures() if history.exists() else True
    assert all(not hasattr(module, "NEEDS") for module in pictures().values())


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_and_nothing_lies_over_anything_else(drawings: dict[str, Figure], name: str) -> None:
    assert faults(drawings[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_24_tweak_sets_with_endless_names_still_fit(crowded: Scene, name: str) -> None:
    """Names are folded or shortened in the middle, never cut by the edge; no two of them read the same."""
    figure = pictures()[name].draw(crowded)
    assert faults(figure) == []


@pytest.mark.parametrize("name", NAMES)
def test_type_is_large_enough_for_720_pixels_and_for_paper(drawings: dict[str, Figure], name: str) -> None:
    texts = [one for one in drawings[name].findobj(Text) if isinstance(one, Text) and one.get_text().strip()]
    assert drawings[name].get_size_inches()[0] == pytest.approx(7.2)
    assert min(float(one.get_fontsize()) for one in texts) >= SMALL


@pytest.mark.parametrize("name", NAMES)
def test_each_says_which_run_and_machine_it_is_of(drawings: dict[str, Figure], scene: Scene, name: str) -> None:
    """A picture is passed on without its page."""
    text = said(drawings[name]).replace("\n", " ")
    assert pictures()[name].TITLE in text
    assert f"Run {scene.runs[0].run_id}" in text
    assert "5 blocks, seed 3" in text
    assert "Made-up CPU" in text


@pytest.mark.parametrize("name", ["forest", "telemetry"])
def test_the_same_run_gives_the_same_bytes(scene: Scene, name: str) -> None:
    module = pictures()[name]
    assert svg(module.draw(scene)) == svg(module.draw(scene))


@pytest.mark.parametrize("name", NAMES)
def test_svg_is_small_sound_and_without_a_date(drawings: dict[str, Figure], name: str) -> None:
    text = svg(drawings[name])
    ET.fromstring(text)  # noqa: S314  # written here
    assert len(text.encode()) < 120_000
    assert "<dc:date>" not in text
    assert "Verdana, sans-serif" in text


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_each_format_is_what_it_says_and_comes_out_the_same(drawings: dict[str, Figure], form: str, begins: bytes) -> None:
    one = written(drawings["energy"], form)
    assert one.startswith(begins)
    assert one == written(drawings["energy"], form)


def test_drawing_leaves_matplotlib_as_it_was(drawings: dict[str, Figure]) -> None:
    """Else the next figure of whoever called would look like ours."""
    written(drawings["forest"], "svg")
    changed = {name for name, value in SETTINGS.items() if mpl.rcParamsDefault[name] != value}
    assert changed
    assert {name for name in changed if mpl.rcParams[name] != mpl.rcParamsDefault[name]} == set()


def test_nothing_of_pyplot_is_loaded() -> None:
    """Its global figures would outlive a picture, and it would look for a display."""
    check = "import sys; from analysis.plots import pictures; pictures(); sys.exit('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_without_a_measured_cell_has_nothing_to_draw_and_says_why(name: str) -> None:
    failed = replace(MADE, arms=[replace(arm, broken=dict.fromkeys(range(1, 6), ("failed", "no memory"))) for arm in (STOCK, AGAIN)])
    scene = scene_of([from_json(saved_run(failed), "failed.json")])
    with pytest.raises(NothingToDraw, match=r"measured|compared"):
        pictures()[name].draw(scene)


@pytest.mark.parametrize("name", NAMES)
def test_one_tweak_set_in_one_block_is_drawn_or_refused_with_a_reason(name: str) -> None:
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK,), blocks=1)), "alone.json")])
    if name in {"forest", "impact", "parameters", "energy", "telemetry"}:
        with pytest.raises(NothingToDraw, match=r"no tweak set|power was not measured|saved without telemetry samples"):
            pictures()[name].draw(scene)
    else:
        assert faults(pictures()[name].draw(scene)) == []


@pytest.mark.parametrize("name", NAMES)
def test_two_runs_stand_side_by_side_each_under_its_own_name(tmp_path: Path, scene: Scene, name: str) -> None:
    """The second has other tweak sets and no telemetry: what is missing there is not drawn as if it were 0."""
    other = from_json(saved_run(Made(arms=(STOCK, Arm("else", requested={"vm.x": "1"})), blocks=3, seed=9)), str(tmp_path / "other.json"))
    both = scene_of([*scene.runs, other])
    figure = pictures()[name].draw(both)
    assert faults(figure) == []
    text = said(figure)
    assert f"Run {other.run_id}" in text
    assert (f"cnn_train · run {other.run_id}" in text) == (name != "telemetry")


def test_a_page_that_nobody_could_read_is_not_drawn(tmp_path: Path) -> None:
    made = Made(arms=(STOCK,), workloads=[f"w{at}" for at in range(150)], blocks=1, steps=1, warmup=0)
    scene = scene_of([from_json(saved_run(made), str(tmp_path / "many.json"))])
    with pytest.raises(NothingToDraw, match="too many workloads and tweak sets for one picture"):
        pictures()["averages"].draw(scene)


def test_foreign_names_cannot_break_a_picture() -> None:
    """Control characters end no line, letters the font lacks cost no warning, and dollars make no formula."""
    name = "b\x1b[31m\nad 日本 $x^{2}$"
    scene = scene_of([from_json(saved_run(Made(arms=(STOCK, Arm(name, requested={f"vm.{name}": name})), blocks=3)), "foreign.json")])
    for one in ("forest", "averages", "parameters"):
        text = "".join(ET.fromstring(svg(pictures()[one].draw(scene))).itertext())  # noqa: S314  # written here
        assert "b\\x1b[31m ad 日本" in text
        assert "$x^{2}$" in text


def test_whatever_is_written_on_a_page_is_printable(scene: Scene) -> None:
    """SVG has no place for an escape character."""
    sheet = page(scene, "title", "lead", 1.0)
    sheet.text(0, 0, "a\x1bb\nc")
    assert "a\\x1bb\nc" in said(sheet.figure)


def test_24_looks_differ_also_without_colour(crowded: Scene) -> None:
    looks = looks_of(crowded)
    assert len(looks) == 24
    assert len({(look.color, look.marker) for look in looks.values()}) == 24
    assert len({(look.color, look.dashes) for look in looks.values()}) == 24
    assert looks["stock"].color == "#1a1a1a"


def test_the_real_run_of_this_repository_is_drawn() -> None:
    """All pictures but the energy of a machine without a GPU; together they leave a page of 2 MB room for more."""
    scene = scene_of([load(REAL)])
    with pytest.raises(NothingToDraw, match=r"^power was not measured: libnvidia-ml.so.1 not found: no NVIDIA driver$"):
        pictures()["energy"].draw(scene)
    sizes = {}
    for name in (name for name in NAMES if name != "energy"):
        figure = pictures()[name].draw(scene)
        assert (name, faults(figure)) == (name, [])
        sizes[name] = len(svg(figure).encode())
    assert sum(sizes.values()) < 1_000_000
    assert max(sizes.values()) < 200_000


def test_the_made_up_run_has_telemetry(tmp_path: Path) -> None:
    """Else half of the tests here would pass over empty panels."""
    assert scene_of([load(sampled_file(tmp_path, Made(blocks=1)))]).series
