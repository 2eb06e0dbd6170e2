"""A process that answers lines of JSON, and what is said where it does not."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import dialogue
from fixtures.dialogue import Dialogue
from fixtures.power.decider import Asked, Decider, hello, settings
from fixtures.power.tasks import shipped
from fixtures.power.terms import Knobs, Settings, Tenant
from fixtures.terms import Refused
from tests.waiting import alive, until

if TYPE_CHECKING:
    from collections.abc import Mapping

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
TENANTS = {"tenants": [{"share_percent": 50, "batch": 8}]}


def program(text: str) -> Dialogue:
    return Dialogue("power decide", (sys.executable, "-c", text))


class Said:
    """A dialogue that has its answers ready, and keeps what it was asked."""

    def __init__(self, *answers: Mapping[str, Any]) -> None:
        self.answers = list(answers)
        self.asked: list[Mapping[str, Any]] = []

    def ask(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append(said)
        return self.answers.pop(0)


def test_each_line_has_its_answer() -> None:
    with program(ECHO) as said:
        assert [said.ask({"number": number}) for number in range(3)] == [{"number": number} for number in range(3)]


def test_a_long_line_comes_whole() -> None:
    """Longer than a pipe holds."""
    with program(ECHO) as said:
        assert len(said.ask({"text": "x" * 300_000})["text"]) == 300_000


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('hello')\ninput()", "answered garbage: b?'?hello"),
        ("print('[1]')\ninput()", "answered garbage"),
        ("print('[' * 100_000)\ninput()", "answered garbage"),
        ("print('{\"smallest_cap\": NaN}')\ninput()", "answered garbage"),
        ("raise SystemExit('no model of that name')", "ended without an answer: no model of that name"),
        ("pass", "ended without an answer: it said nothing"),
        ('print(\'{"error": "No algorithm such."}\')', "No algorithm such."),
    ],
)
def test_what_is_no_answer_is_told_in_a_sentence(text: str, why: str) -> None:
    with program(text) as said, pytest.raises(Refused, match=why):
        said.ask({})


@pytest.mark.parametrize("at_once", [True, False])
def test_a_line_too_many_is_not_taken_for_the_next_answer(at_once: bool) -> None:  # noqa: FBT001 a parameter of the test
    """In one piece with the answer, or later: every answer after it would be that of another question."""
    one_more = "print('{}{end}{}', flush=True)" if at_once else "print('{}', flush=True); time.sleep(0.05); print('{}', flush=True)"
    text = f"import sys, time\nfor line in sys.stdin: {one_more.replace('{end}', chr(92) + 'n')}"
    with program(text) as said:
        assert said.ask({}) == {}
        if not at_once:
            pipe = vars(said)["_process"].stdout
            until(lambda: select.select([pipe], [], [], 0)[0])
        with pytest.raises(Refused, match=r"said more than it was asked, .*: '\{\}"):
            said.ask({})


def test_one_that_does_not_answer_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialogue, "FIRST_ANSWER_S", 0.2)
    with program("input()\ninput()") as said, pytest.raises(Refused, match=r"did not answer within 0\.2 s"):
        said.ask({})


def test_one_that_does_not_listen_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe holds 64 kB; who is stopped reads none of it."""
    monkeypatch.setattr(dialogue, "FIRST_ANSWER_S", 0.2)
    with program("import time\ntime.sleep(600)") as said, pytest.raises(Refused, match=r"did not listen within 0\.2 s"):
        said.ask({"long": "x" * (1 << 20)})


def test_without_room_for_its_words_it_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(Refused, match="cannot be started: No space left on device"), program("pass"):
        pass


def test_one_that_cannot_be_started_is_told() -> None:
    with pytest.raises(Refused, match="cannot be started: No such file"), Dialogue("power plant", ("/nowhere/python",)):
        pass


def test_it_is_gone_afterwards() -> None:
    with program("import os\nprint('{\"pid\": %d}' % os.getpid(), flush=True)\nimport time\ntime.sleep(600)") as said:
        pid = said.ask({})["pid"]
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_dies_with_the_process_that_asks() -> None:
    """Even if that is killed."""
    asking = (
        "import sys, os\nfrom fixtures.dialogue import Dialogue\n"
        'text = \'import os, time\\nprint("{\\\\"pid\\\\": %d}" % os.getpid(), flush=True)\\ntime.sleep(600)\'\n'
        "with Dialogue('power decide', (sys.executable, '-c', text)) as said:\n"
        "    print(said.ask({})['pid'], flush=True)\n    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", asking], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    until(lambda: not alive(int(done.stdout)))


def test_the_first_line_says_task_caps_knobs_and_parameters() -> None:
    """As `python -m analysis power decide` reads them."""
    knobs = Knobs(shares=True, batches=(1, 2), most_processes=4, sm_mhz=(210.0, 225.0))
    said = hello(Asked("morak", 3, shadow=False, margin=2.5, parameters=Path("/p")), shipped()[29], knobs, "3080Ti")
    assert said["task"] == {"id": 29, "gpu": "3080Ti", "model": "resnet50", "dataset": "imagenet"}
    assert said["caps"] == [[0, 200.0], [50, 160.0], [100, 120.0]]
    assert (said["cap_unit"], said["iterations"], said["seed"], said["margin"], said["parameters"]) == ("W", 150, 3, 2.5, "/p")
    assert said["knobs"]["sm_mhz"] == (210.0, 225.0)
    assert said["knobs"]["power_limit_w"] is None


def test_an_answer_becomes_settings_and_why() -> None:
    said = Said({"settings": {**TENANTS, "sm_mhz": 1155}, "why": "feed-forward", "predicted": {"power_w": 120.0}}, {"settings": TENANTS})
    decider = Decider(said, {"hello": 1})  # type: ignore[arg-type]  # answers as a dialogue does
    assert decider.first.settings == Settings((Tenant(50.0, 8),), sm_mhz=1155.0)
    assert (decider.first.why, decider.first.predicted) == ("feed-forward", {"power_w": 120.0})
    assert decider.next({"iteration": 0}).settings == Settings((Tenant(50.0, 8),))
    assert said.asked == [{"hello": 1}, {"observed": {"iteration": 0}}]


def test_a_cap_that_cannot_be_kept_to_is_an_answer() -> None:
    """With the smallest that can."""
    said = Said({"infeasible": "it idles at 60 W", "smallest_cap": 68.2})
    first = Decider(said, {}).first  # type: ignore[arg-type]  # as above
    assert (first.settings, first.infeasible, first.smallest_cap) == (None, "it idles at 60 W", 68.2)


def test_an_algorithm_that_cannot_work_here_ends_the_cell_with_its_word() -> None:
    with pytest.raises(Refused, match="there is no clock to set"):
        Decider(Said({"unsupported": "there is no clock to set"}), {})  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"settings": {}},
        {"settings": {"tenants": [{"share_percent": 50}]}},
        {"settings": {"tenants": [{"share_percent": 120, "batch": 1}]}},
        {"settings": {"tenants": [{"share_percent": 50, "batch": 0}]}},
        {"settings": {"tenants": [{"share_percent": 50, "batch": float("inf")}]}},
        {"settings": {"tenants": [{"share_percent": 50, "batch": 1.5}]}},
        {"settings": {**TENANTS, "sm_mhz": "fast"}},
        *({"settings": {**TENANTS, knob: value}} for knob in ("sm_mhz", "mem_mhz", "power_limit_w") for value in (-5.0, 0, 2.0**32 + 1200)),
        {"settings": {**TENANTS, "sm_mhz": float("nan")}},
        {"settings": {**TENANTS, "throttle": 1.5}},
        {"settings": TENANTS, "predicted": "abc"},
        {"settings": TENANTS, "predicted": {"power_w": float("nan")}},
        {"infeasible": "it idles at 60 W", "smallest_cap": "x"},
        {"infeasible": "it idles at 60 W", "smallest_cap": float("inf")},
    ],
)
def test_settings_that_mean_nothing_are_not_set(answer: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="no settings that could be set"):
        Decider(Said(answer), {})  # type: ignore[arg-type]  # as above


def test_what_is_not_said_is_as_the_machine_has_it() -> None:
    assert settings(TENANTS) == Settings((Tenant(50.0, 8),), None, None, None, None)
