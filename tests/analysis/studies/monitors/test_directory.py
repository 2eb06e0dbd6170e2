"""A folder of an overhead study, whole and with what such folders lack: missing files, damaged ones, two for one condition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.render.text import render
from analysis.studies.monitors import folder as logs
from analysis.studies.monitors.folder import is_it, read
from analysis.studies.monitors.folder_answer import answer
from analysis.terms import Unreadable
from tests.analysis.logs.made import A100, Smi, dcgmi

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LOSSES = (2.3, 1.7, 0.9)
HEAD = "    PID USER     RES  %CPU     TIME+ COMMAND"
COUNTED = {"POWER": "W", "TOTEC": "mJ", "GPUTL": ""}
SOUP = st.text(st.sampled_from("GPU 0#EntitySMACT%,\n\t:.-1234569PIDCOMMANDtimeLoss[]é\0"), max_size=200)


def output(time_s: float | None, *, losses: Sequence[float] = LOSSES, correct: int = 9904) -> str:
    text = "".join(f"Train Epoch: 1 [{640 * at}/60000 (0%)]\tLoss: {loss:.6f}\n" for at, loss in enumerate(losses))
    text += f"\nTest set: Average loss: 0.0292, Accuracy: {correct}/10000 (99%)\n\n"
    return text if time_s is None else f"{text}time:  {time_s}\n"


def top(*commands: Mapping[str, tuple[int, float, str]], clock: str = "15:16:0") -> str:
    """By snapshot, a second apart: commands and their PID, share and CPU clock."""
    text = ""
    for at, shown in enumerate(commands):
        text += f"top - {clock}{at} up  5:03,  3 users,  load average: 1.{at}2, 0.73, 0.79\nTasks: 9 total\n\n{HEAD}\n"
        text += "".join(f"{pid:7} root  5000 {cpu} {time} {command}\n" for command, (pid, cpu, time) in shown.items()) + "\n"
    return text


TOP = top(*[{"python": (7, 99.0, f"0:0{at}.00"), "top": (8, 0.5, f"0:00.0{at}")} for at in range(3)])
SMI = Smi([A100], [[5], [6], [7]], stamped=True).text()
DCGMI = dcgmi(
    {"POWER": "W", "TOTEC": "mJ", "GRACT": "", "SMACT": ""}, [("GPU 0", (60.0, 1000.0 + 60500 * at, 0.5, 0.25 * at)) for at in range(3)]
)


def study(folder: Path) -> Path:
    """Five conditions: 50 s without a monitor, 49 to 50.5 s with."""
    files = {
        "01-baseline/ex1_model_s.txt": output(50.0),
        "01-baseline/ex1_model_e.txt": "",
        "01-baseline/ex2_model_s.txt": output(49.0),
        "01-baseline/ex2_topLog.txt": TOP,
        "02-nvidia-smi/ex3_model_s.txt": output(49.5),
        "02-nvidia-smi/ex3_nvsmLog.txt": SMI,
        "03-dcgmi/ex5_model_s.txt": output(50.5),
        "03-dcgmi/ex5_dcgmi_log.txt": DCGMI,
        "03-dcgmi/ex5_topLog.txt": TOP.replace("15:16", "15:18"),
    }
    for name, text in files.items():
        put(folder / "MNIST" / name, text)
    return folder


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def training(folder: Path) -> dict[str, Any]:
    """The one training of a folder, as programs get it; JSON has no NaN."""
    made: Any = json.loads(json.dumps(answer(read(folder)).data, allow_nan=False))
    [one] = made["trainings"]
    return one  # type: ignore[no-any-return]


def condition(folder: Path, name: str) -> dict[str, Any]:
    [one] = [each for each in training(folder)["conditions"] if each["name"] == name]
    return one  # type: ignore[no-any-return]


def compared(folder: Path) -> dict[tuple[str, str], float]:
    return {(one["condition"], one["against"]): round(100 * one["fraction"], 6) for one in training(folder)["differences"]}


def page(folder: Path) -> list[str]:
    lines = render(answer(read(folder)), explain=True).splitlines()
    assert max(map(len, lines)) <= 100
    assert not [line for line in lines if line.rstrip().endswith("..")]
    return lines


def test_conditions_are_compared_with_the_baselines_whose_monitors_they_have(tmp_path: Path) -> None:
    """49 / 50 - 1 = -2 %; ex3 has no top, so nothing to do with ex2; 50.5 / 49 - 1 = 3.06 %."""
    folder = study(tmp_path)
    found = compared(folder)
    assert found == {("ex2", "ex1"): -2, ("ex3", "ex1"): -1, ("ex5", "ex1"): 1, ("ex5", "ex2"): round(100 * (50.5 / 49 - 1), 6)}
    assert {one["name"]: one["monitors"] for one in training(folder)["conditions"]} == {
        "ex1": [],
        "ex2": ["top"],
        "ex3": ["nvidia-smi"],
        "ex5": ["dcgmi", "top"],
    }
    assert [condition(folder, name)["began"] for name in ("ex1", "ex2", "ex3", "ex5")] == [None, "15:16:00", "15:16:55", "15:18:00"]


def test_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    """A study as it should be, in which no claim is made however large a difference; one in which everything is odd; one of nothing."""
    monkeypatch.chdir(tmp_path)
    whole, odd = study(Path("whole")), study(Path("odd")) / "MNIST"
    put(odd / "01-baseline/ex1_model_e.txt", "File exists\nreport written elsewhere\n")
    put(odd / "01-baseline/ex2_topLog.txt", TOP + TOP)
    put(odd / "02-nvidia-smi/ex3_model_s.txt", output(49.5, correct=9903))
    put(odd / "02-nvidia-smi/ex3_nvsmLog.txt", Smi([A100, A100], [[5, 50]] * 4).text())
    put(odd / "02-nvidia-smi/ex4_model_s.txt", output(None))
    put(odd / "02-nvidia-smi/ex4_nvsmLog.txt", b"")
    put(odd / "03-dcgmi/ex5_dcgmi_log.txt", DCGMI.replace("61500.0", "500.0") + "GPU 0  60.0")
    put(odd / "03-dcgmi/ex5_notes.txt", "by hand")
    put(odd / "03-dcgmi/ex6_dcgmi_log.txt", dcgmi(COUNTED, [("GPU 0", (60.0, total, 9.0)) for total in (1000.0, 64600.0, 128200.0)]))
    put(odd / "03-dcgmi/ex6_model_s.txt", output(49.5, losses=(2.3, 1.7, 0.8)))
    put(odd / "05-ncu/ex8_dcgmi_log.txt", dcgmi(COUNTED, [("GPU 0", (60.0, 1000.0 + 60_000 * at, 9.0)) for at in (0, 2, 4, 6)]))
    for place in ("06-nsys", "07-nsys"):
        put(odd / place / "ex7_model_s.txt", output(40.0))
    put(odd.parent / "ResNet50/01-basic/ex1_model_s.txt", output(5000.0))
    put(Path("nothing/ex1_model_s.txt"), b"\0\1\2")
    assert "\n".join(page(whole)) == snapshot(name="whole")
    assert "\n".join(page(odd.parent)) == snapshot(name="odd")
    assert "\n".join(page(Path("nothing"))) == snapshot(name="nothing")
    assert training(whole)["verdict"] == "not comparable"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (output(None), "did not end"),
        (output(49.5)[:-3], "did not end"),
        ("", "is empty"),
        (bytes(range(256)), "no sample of the output of a training"),
        (None, "no output of the training"),
    ],
)
def test_a_condition_without_a_time_has_none_and_says_why(tmp_path: Path, text: str | bytes | None, why: str) -> None:
    """It is neither 0 nor left out without a word."""
    folder = study(tmp_path)
    path = folder / "MNIST" / "02-nvidia-smi" / "ex3_model_s.txt"
    path.unlink()
    if text is not None:
        put(path, text)
    one = condition(folder, "ex3")
    assert (one["time_s"], one["monitors"]) == (None, ["nvidia-smi"])
    assert any(why in reason for reason in one["missing"].values())
    assert ("ex3", "ex1") not in compared(folder)


def test_a_link_back_to_its_own_folder_gives_no_second_file(tmp_path: Path) -> None:
    folder = study(tmp_path)
    before = training(folder)
    (folder / "MNIST" / "again").symlink_to(folder / "MNIST")
    (folder / "MNIST" / "01-baseline" / "up").symlink_to("..")
    (folder / "MNIST" / "ex1_model_s.txt").symlink_to("ex1_model_s.txt")
    assert training(folder) == before


@pytest.mark.parametrize("damage", [b"", bytes(range(256)), None])
def test_a_condition_whose_log_is_lost_is_no_baseline(tmp_path: Path, damage: bytes | None) -> None:
    """Without its log ex2 would pass for a run without a monitor, and others be compared with it."""
    folder = study(tmp_path)
    path = folder / "MNIST" / "01-baseline" / "ex2_topLog.txt"
    path.unlink()
    if damage is not None:
        put(path, damage)
    one = condition(folder, "ex2")
    assert one["monitors"] == ["top"]
    assert list(one["missing"]) == ["top"]
    assert ("ex3", "ex2") not in compared(folder)


def test_what_was_published_in_part_loads_in_part(tmp_path: Path) -> None:
    """As of that study: of ncu's condition only the log of dcgmi is there, of the PyTorch profiler's only that of top."""
    folder = study(tmp_path)
    put(folder / "MNIST" / "05-ncu" / "ex8_dcgmi_log.txt", DCGMI)
    put(folder / "MNIST" / "06-pytorch" / "again_topLog.txt", TOP)
    assert condition(folder, "ex8")["monitors"] == ["ncu", "dcgmi", "nvidia-smi", "top"]
    assert set(condition(folder, "ex8")["missing"]) == {"training", "nvidia-smi", "top"}
    assert condition(folder, "again")["monitors"] == ["torch.profiler", "nvidia-smi", "top"]
    assert training(folder)["absent"] == ["ex4", "ex6", "ex7"]


def test_trainings_stand_apart(tmp_path: Path) -> None:
    """Both have an ex1; a heavy one that is there is not called missing."""
    folder = study(tmp_path)
    put(folder / "ResNet50" / "01-basic" / "ex1_model_s.txt", output(5000.0))
    found = read(folder)
    assert [(one.name, len(one.conditions)) for one in found.trainings] == [("MNIST", 4), ("ResNet50", 1)]
    assert (len(found.missing), len(read(study(tmp_path / "other")).missing)) == (0, 1)


def test_cpu_is_by_a_processs_own_clock_where_it_stayed(tmp_path: Path) -> None:
    """top: .02 s in 2 s are 1 %; a training whose loaders come and go has several clocks, and shown shares alone."""
    folder = study(tmp_path)
    found = {(one["condition"], one["command"]): one for one in training(folder)["cpu"]}
    assert found["ex2", "top"]["clock_percent"] == pytest.approx(1.0)
    assert found["ex2", "python"]["clock_percent"] == pytest.approx(100.0)
    shown: list[dict[str, tuple[int, float, str]]] = [{"python": (7, 90.0, "0:01.00")}, {"python": (9, 60.0, "0:00.50")}, {}]
    put(folder / "MNIST" / "01-baseline" / "ex2_topLog.txt", top(*shown))
    [one] = [one for one in training(folder)["cpu"] if one["condition"] == "ex2"]
    assert (one["clock_percent"], one["cpu_s"], one["shown_percent"], one["shown_in"], one["snapshots"]) == (None, None, 50.0, 2, 3)


@pytest.mark.parametrize(
    ("made", "gpu", "how"),
    [
        (Smi([A100], [[5], [6], [7]], stamped=True), "0", "times"),
        (Smi([A100, A100], [[5, 50]] * 4), "?", "too little"),
        (Smi([A100, A100], [[5, 50]] * 4, index=True), "1", "by index"),
    ],
)
def test_how_rows_were_told_apart_is_said(tmp_path: Path, made: Smi, gpu: str, how: str) -> None:
    folder = study(tmp_path)
    put(folder / "MNIST" / "02-nvidia-smi" / "ex3_nvsmLog.txt", made.text())
    [one] = [each for each in training(folder)["counters"] if each["monitor"] == "nvidia-smi"]
    assert (one["gpu"], how in one["how"]) == (gpu, True)
    assert gpu != "?" or one["interval_s"] is None


@pytest.mark.parametrize(
    ("totals", "energy_j", "consistent", "why"),
    [
        ((1000.0, 61500.0, 122000.0), 121.0, True, ""),  # 60.5 W for 60: 0.8 % apart
        ((1000.0, 64600.0, 128200.0), 127.2, False, ""),  # 63.6 W for 60: 6 % apart
        ((61500.0, 1000.0, 122000.0), None, None, "goes down"),
        ((1000.0, None, 122000.0), None, None, "lacks values"),
        ((1000.0,), None, None, "too few"),
    ],
)
def test_energy_is_taken_from_a_counter_that_counts(
    tmp_path: Path, totals: tuple[float | None, ...], energy_j: float | None, *, consistent: bool | None, why: str
) -> None:
    folder = study(tmp_path)
    log = dcgmi(COUNTED, [("GPU 0", (60.0, total, 9.0)) for total in totals])
    put(folder / "MNIST" / "03-dcgmi" / "ex5_dcgmi_log.txt", log)
    [one] = [each for case in read(folder).trainings[0].conditions for each in logs.counters(case) if each.monitor == "dcgmi"]
    assert (one.energy_j, one.consistent, bool(one.why_no_energy)) == (energy_j, consistent, bool(why))
    assert why in one.why_no_energy


def test_energy_gives_no_power_where_rows_are_no_second_apart(tmp_path: Path) -> None:
    """60 W, and every other row of GPU 0 is gone: 360 J in 3 of 6 intervals; by how many seconds to divide them nothing says."""
    folder = study(tmp_path)
    rows = [*(("GPU 0", at) for at in (0, 2, 4, 6)), *(("GPU 1", at) for at in range(7))]
    values = [(gpu, (60.0, 1000.0 + 60_000 * at, 9.0 if gpu == "GPU 0" else 0.0)) for gpu, at in rows]
    put(folder / "MNIST" / "03-dcgmi" / "ex5_dcgmi_log.txt", dcgmi(COUNTED, values))
    [one] = [each for each in training(folder)["counters"] if each["monitor"] == "dcgmi"]
    assert (one["gpu"], one["energy_j"], one["energy_w"]) == ("GPU 0", 360.0, None)
    assert "3 of its rows" in one["why_no_w"]


def test_the_busiest_gpu_is_the_one_that_is_told_of(tmp_path: Path) -> None:
    folder = study(tmp_path)
    rows: list[tuple[str, list[float | None]]] = [("GPU 3", [None, None]), ("GPU 1", [0.1, 0.0]), ("GPU-I 2", [0.7, 0.0])] * 4
    put(folder / "MNIST" / "03-dcgmi" / "ex5_dcgmi_log.txt", dcgmi({"GRACT": "", "SMACT": ""}, rows))
    [one] = [each for each in training(folder)["counters"] if each["monitor"] == "dcgmi"]
    assert (one["gpu"], one["samples"], one["active"], one["mean"], one["no_sm"]) == ("GPU-I 2", 4, 0, {"GRACT": 0.7, "SMACT": 0.0}, 4)


@pytest.mark.parametrize("name", ["ex1_model_s.txt", "ex2_topLog.txt", "ex3_nvsmLog.txt", "ex5_dcgmi_log.txt"])
@settings(max_examples=25)
@given(text=SOUP, kept=st.booleans())
def test_no_damage_breaks_the_page(tmp_path_factory: pytest.TempPathFactory, name: str, text: str, *, kept: bool) -> None:
    """Whatever a file holds, behind what was written properly or alone."""
    folder = study(tmp_path_factory.mktemp("study"))
    [path] = folder.glob(f"MNIST/*/{name}")
    put(path, (path.read_bytes() if kept else b"") + text.encode())
    assert page(folder)
    assert training(folder)["verdict"] == "not comparable"


def test_a_folder_with_none_of_it_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "ex1" / "notes.txt", "nothing")
    put(tmp_path / "example_model_s.txt", output(50.0))
    assert not is_it(tmp_path)
    assert not is_it(tmp_path / "example_model_s.txt")
    assert not is_it(tmp_path / "nowhere")
    with pytest.raises(Unreadable, match="condition") as refused:
        read(tmp_path)
    assert "\n" not in str(refused.value)
    assert is_it(study(tmp_path))
