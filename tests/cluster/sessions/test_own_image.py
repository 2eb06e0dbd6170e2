"""`deeptweak run --image=X -- CMD` on a real cluster: a user's image under the node's settings.

That nothing is left in the cluster, on the node and in its kernel is checked as each test leaves
its `place`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.cluster.rig.image import OWN
from tests.sessions import Done, another_swappiness

if TYPE_CHECKING:
    from tests.cluster.runs import ClusterPlace

pytestmark = pytest.mark.needs("root")

# Is it where it should be, without the harness's own code? And the setting in force, told as the
# seconds of a step.
SCRIPT = """
import os, sys, time
assert os.environ["MINE"] == "yes" and os.getcwd() == "/usr", (os.environ, os.getcwd())
ours = [path for path in sys.path if "scratch/.deeptweak" in path]
assert not any(os.path.exists(path + "/fixtures") for path in ours), sys.path
swappiness = int(open("/proc/sys/vm/swappiness").read())
while True:
    time.sleep(0.005)
    print(f"took {swappiness / 1e5:.5f}")
"""


def run(
    place: ClusterPlace, *options: str, program: tuple[str, ...] = ("python3", "-c", SCRIPT)
) -> Done:
    """Stock twice and a set with another swappiness, by the agent."""
    tweaks = place.manifest("reclaim", sysctl=f"vm.swappiness = {another_swappiness()}")
    ours = (
        f"--harness-image={place.image}",
        f"--pod-overlay={place.overlay}",
        "--apply=agent",
        *place.where,
    )
    kept = (f"--storage={place.storage}", f"--tweaks={tweaks}", "--blocks=1")
    return place.call(
        sys.executable,
        "-m",
        "deeptweak",
        "run",
        f"--image={OWN}",
        *ours,
        *kept,
        *options,
        "--",
        *program,
    )


@pytest.mark.parametrize("layout", [(), ("--turns",)])
def test_a_command_runs_in_its_own_image_under_node_settings(
    place: ClusterPlace, layout: tuple[str, ...]
) -> None:
    value = another_swappiness()
    found = (
        "--env=MINE=yes",
        "--cwd=/usr",
        r"--step-regex=took (0\.\d+)",
        "--steps=10",
        "--warmup=1",
    )
    done = run(place, *layout, *found)
    assert done.code == 0, done.out
    records = {
        one["extra_info"]["tweakset"]: one["extra_info"] for one in place.saved()["benchmarks"]
    }
    assert {name: record["place"]["image"] for name, record in records.items()} == dict.fromkeys(
        records, OWN
    )
    assert records["reclaim"]["tweak"]["observed"] == {"vm.swappiness": str(value)}
    walls = {name: set(record["steps"]["wall_s"]) for name, record in records.items()}
    assert walls["reclaim"] == {value / 1e5}
    assert walls["stock"] == walls["stock-again"] != walls["reclaim"]
    assert place.saved()["deeptweak"]["machine_check"] == {"changed": {}, "restored": True}


def test_a_command_that_fails_there_says_so_with_its_last_words(place: ClusterPlace) -> None:
    done = run(place, program=("sh", "-c", "echo out of luck >&2; exit 3"))
    assert done.code, done.out
    reasons = [cell["reason"] for cell in place.saved()["deeptweak"]["cells"]]
    assert ["ended with exit code 3; last line: 'out of luck'" in reason for reason in reasons] == [
        True
    ] * 3, done.out
