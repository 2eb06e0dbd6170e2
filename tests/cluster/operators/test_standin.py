"""The stand-ins repeat the recorded statuses, stages and leftovers of the real operators.

They come in the recorded order; times are not compared.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster.operators import training
from tests.cluster.operators.api import Api
from tests.cluster.operators.replay import Replay
from tests.cluster.runs import kernel_as_found

if TYPE_CHECKING:
    from tests.cluster.operators.fixtures import StandIn

pytestmark = pytest.mark.needs("root", "reference")

SKYHOOK = [
    "tuning_apply",
    "recreate_same_name",
    "config_change",
    "script_fails",
    "check_fails",
    "image_missing",
    "no_matching_nodes",
    "pause",
    "spec_pause_is_ignored",
    "disable",
    "node_ignored",
    "invalid_stalls_all",
    "two_in_order",
    "interrupt",
    "operator_restart_midway",
    "operator_down_delete",
    "remove_package_tuning",
    "remove_package_shellscript",
    "version_upgrade",
]
# As the real operator's: three init containers a pod, and pods that end in their own time.
IN_FULL = {"tuning_apply", "script_fails"}
KAITO = {
    "template_inference": None,
    "template_batch_restarts": None,
    "template_update_ignored": None,
    "template_no_node": None,
    "tuning_success": None,
    "tuning_unsupported_sku": None,
    "tuning_first_pod_fails": "first-pod-fails",
}


@pytest.fixture
def server(kubeconfig: Path) -> Iterator[Api]:
    """Whose watches end with the test."""
    with contextlib.closing(Api(str(kubeconfig))) as api:
        yield api


@pytest.fixture
def host_as_recorded() -> Iterator[None]:
    """Start both settings at their recorded values and restore them; hold this kernel alone."""
    values = {
        Path("/proc/sys/vm/dirty_ratio"): "20",
        Path("/proc/sys/vm/dirty_background_ratio"): "10",
    }
    with kernel_as_found():
        before = {path: path.read_text() for path in values}
        for path, value in values.items():
            path.write_text(value)
        yield
        for path, text in before.items():
            path.write_text(text)
        Path("/etc/sysctl.d/999-tuning-tuning.conf").unlink(missing_ok=True)


@pytest.mark.parametrize("scenario", SKYHOOK)
@pytest.mark.usefixtures("crds", "host_as_recorded")
def test_the_skyhook_stand_in_follows_the_recording(
    scenario: str, skyhook_operator: StandIn, server: Api, node_name: str, image: str
) -> None:
    """Repeat each recorded client action; also in the brief form that other tests use."""
    skyhook_operator.start(speed=4, brief=scenario not in IN_FULL)
    replay = Replay(f"skyhook_{scenario}", server, skyhook_operator, node_name, image)
    try:
        replay.run()
    finally:
        replay.clean()


@pytest.mark.parametrize("scenario", KAITO)
@pytest.mark.usefixtures("crds")
def test_the_kaito_stand_in_follows_the_recording(
    scenario: str, kaito_operator: StandIn, server: Api, node_name: str, image: str
) -> None:
    """Each action of the recorded client, done again, has the recorded consequences."""
    kaito_operator.start(speed=1, fault=KAITO[scenario])
    replay = Replay(f"kaito_{scenario}", server, kaito_operator, node_name, image)
    try:
        replay.run()
    finally:
        replay.clean()
        shutil.rmtree(training.MARKERS, ignore_errors=True)
