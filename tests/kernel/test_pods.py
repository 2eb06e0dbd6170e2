"""Which processes are a pod's, and what it sees of the settings."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.kernel import pods
from fixtures.kernel.tunables import Tunables
from fixtures.terms import MachineHeld, Refused
from tests import waiting

UID = "d3bf48fa-b78d-4408-a821-226fbf86cd2f"
UID_ = UID.replace("-", "_")
ID = "f967760c5fbc0bb01eb91870dc42221385878682d86c88a415c8a7dfaefb1f9f"
OTHER = "0" * 64
SOMAXCONN = "/proc/sys/net/core/somaxconn"

# /proc/<pid>/cgroup as each combination writes it. The first was read on this project's test
# cluster (kubelet 1.34, containerd 1.6; five of its lines are left out); the others are made after
# the kubelet's cgroup_manager_linux.go (pod<uid>, in slices with underscores) and after how
# containerd and CRI-O name their scopes.
RIG = "/deeptweak-rig-bbde4d66"
BURSTABLE = f"kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
GUARANTEED = f"kubepods-pod{UID_}.slice"
TEXTS = {
    "v1, cgroupfs, containerd": f"""\
9:name=systemd:{RIG}/kubepods/besteffort/pod{UID}/{ID}
8:pids:{RIG}/kubepods/besteffort/pod{UID}/{ID}
4:memory:{RIG}/kubepods/besteffort/pod{UID}/{ID}
1:cpu:{RIG}/kubepods/besteffort/pod{UID}/{ID}
0::{RIG}/kubepods/besteffort/pod{UID}/{ID}
""",
    "v1, systemd, containerd": f"""\
12:memory:/kubepods.slice/{BURSTABLE}/cri-containerd-{ID}.scope
1:name=systemd:/kubepods.slice/{BURSTABLE}/cri-containerd-{ID}.scope
""",
    "v2, systemd, containerd": f"0::/kubepods.slice/{BURSTABLE}/cri-containerd-{ID}.scope\n",
    "v2, systemd, guaranteed": f"0::/kubepods.slice/{GUARANTEED}/cri-containerd-{ID}.scope\n",
    "v2, systemd, CRI-O": f"0::/kubepods.slice/{BURSTABLE}/crio-{ID}.scope\n",
    "v2, systemd, CRI-O, crun": f"0::/kubepods.slice/{BURSTABLE}/crio-{ID}.scope/container\n",
    "v2, cgroupfs, CRI-O": f"0::/kubepods/burstable/pod{UID}/crio-{ID}\n",
    "v2, cgroupfs, containerd": f"0::/kubepods/burstable/pod{UID}/{ID}\n",
    "v2, seen from a cgroup namespace": f"0::/../../../{BURSTABLE}/cri-containerd-{ID}.scope\n",
    "v2, from one of the same class": f"0::/../../{GUARANTEED}/cri-containerd-{ID}.scope\n",
    "kind": (
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-{GUARANTEED}/cri-containerd-{ID}.scope\n"
    ),
    "slices unknown to the runtime": (
        f"0::/system.slice/containerd.service/{GUARANTEED}:cri-containerd:{ID}\n"
    ),
    "systemd inside the container": (
        f"0::/kubepods.slice/{GUARANTEED}/cri-containerd-{ID}.scope/init.scope\n"
    ),
    "docker": f"0::/kubepods.slice/{GUARANTEED}/docker-{ID}.scope\n",
}
NOT_ITS_OWN = {
    "CRI-O's conmon": f"0::/kubepods.slice/{BURSTABLE}/crio-conmon-{ID}.scope\n",
    "CRI-O's conmon, cgroupfs": f"0::/kubepods/burstable/pod{UID}/crio-conmon-{ID}\n",
    "a shim in the pod's cgroup": f"0::/kubepods.slice/{GUARANTEED}\n",
    "another pod": (
        f"0::/kubepods.slice/kubepods-pod{'1' + UID_[1:]}.slice/cri-containerd-{ID}.scope\n"
    ),
    "a pod whose uid is longer": f"0::/kubepods/burstable/pod{UID}0/{ID}\n",
    "a container with the pod's uid in its name": f"0::/system.slice/{UID}/{ID}\n",
    "a service": "0::/system.slice/containerd.service\n",
    "nothing": "",
    "a kernel thread": "9:name=systemd:/\n0::/\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_container_s_process_is_known_by_its_cgroup(text: str) -> None:
    assert pods.container_of(text, UID) == ID
    assert pods.pod_of(text) == UID


@pytest.mark.parametrize("text", NOT_ITS_OWN.values(), ids=NOT_ITS_OWN)
def test_whatever_else_is_near_a_pod_is_not_its_process(text: str) -> None:
    assert pods.container_of(text, UID) is None


@given(st.text())
def test_any_text_is_read_without_failing(text: str) -> None:
    assert pods.container_of(text, UID) is None
    assert pods.pod_of(text) is None


def process(root: Path, pid: int, container: str, cmdline: str, started: int) -> None:
    """A process as /proc shows it, with a name that looks like more fields."""
    folder = root / f"proc/{pid}"
    folder.mkdir(parents=True)
    (folder / "cgroup").write_text(
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{container}.scope\n"
    )
    (folder / "cmdline").write_text("".join(f"{word}\0" for word in cmdline.split()))
    (folder / "stat").write_text(
        f"{pid} (a) S 0 0 (b) S " + " ".join(["0"] * 18) + f" {started} 0 0\n"
    )


def test_a_workload_is_its_first_process_not_the_pause_container(tmp_path: Path) -> None:
    """Workers have its command line; pids may have wrapped around; a name may look like fields."""
    process(tmp_path, 100, OTHER, "/pause", 10)
    process(tmp_path, 200, ID, "python -m fixtures.workloads.ddp_train --steps=9", 13)
    process(tmp_path, 300, ID, "sh -c sleep", 11)
    process(tmp_path, 400, ID, "python -m fixtures.workloads.ddp_train --steps=9", 12)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/500").mkdir()  # gone between listing and reading
    assert pods.processes(tmp_path, UID) == {100: OTHER, 200: ID, 300: ID, 400: ID}
    assert pods.main_process(tmp_path, UID, "fixtures.workloads.") == 400
    assert pods.main_process(tmp_path, UID, "vllm") is None


def test_a_workload_of_another_run_keeps_the_node(tmp_path: Path) -> None:
    """It is named with advice; local runs, other programs in pods and dead ones exclude nothing."""
    process(tmp_path, 100, OTHER, "/pause", 10)
    process(tmp_path, 200, ID, "python -m fixtures.kubernetes.node_agent", 11)
    process(tmp_path, 300, ID, "python -m fixtures.workloads.idle --steps=9", 12)
    (tmp_path / "proc/300/cgroup").write_text("0::/user.slice/user-1000.slice/session-1.scope\n")
    (tmp_path / "proc/500").mkdir()
    pods.refuse_workloads(tmp_path, within_s=0)
    process(tmp_path, 400, ID, "python -m fixtures.workloads.idle --steps=9", 13)
    with pytest.raises(
        MachineHeld,
        match=rf"process 400 in pod {UID}, perhaps in another namespace .* restore "
        r"--target=kubernetes",
    ):
        pods.refuse_workloads(tmp_path, within_s=0)


STEP = "/var/lib/skyhook/dt-0123456789ab-12340001"


def test_a_package_step_is_identified_by_its_environment(
    tmp_path: Path,
) -> None:
    """As seen: PATH and HOME of the host, SKYHOOK_ROOT_DIR of the resource; also in children."""
    others = {
        100: "PATH=/bin",
        200: "SKYHOOK_ROOT_DIR=/var/lib/skyhook/gpu-tuning",
        300: f"SKYHOOK_ROOT_DIR={STEP}-longer",
        400: f"OLDPWD={STEP}",
    }
    for pid, variable in others.items():
        process(tmp_path, pid, ID, "sleep 45", 10)
        (tmp_path / f"proc/{pid}/environ").write_text(f"HOME=/root\0{variable}\0")
    # Somebody looks into its folder.
    (tmp_path / "proc/400/cgroup").write_text("0::/user.slice/user-0.slice/session-1.scope\n")
    (tmp_path / "proc/500").mkdir()  # gone between listing and reading
    pods.refuse_steps(tmp_path)
    process(tmp_path, 600, ID, "sleep 45", 10)
    (tmp_path / "proc/600/environ").write_text(f"SKYHOOK_ROOT_DIR={STEP}\0")
    process(
        tmp_path,
        700,
        ID,
        f"python -m skyhook_agent.controller apply /root {STEP}/tuning-1.1.4-uid-2",
        10,
    )
    (tmp_path / "proc/700/environ").write_text("")
    assert pods.steps(tmp_path) == dict.fromkeys((600, 700), "dt-0123456789ab-12340001")
    with pytest.raises(
        pods.StepRuns,
        match=r"a step of dt-0123456789ab-12340001 still runs there: process 600, 'sleep 45'\.",
    ):
        pods.refuse_steps(tmp_path)


def test_a_workload_that_is_about_to_end_is_waited_for(tmp_path: Path) -> None:
    """Its pod was deleted by whoever finishes a killed run; its last process may take a moment."""
    process(tmp_path, 400, ID, "python -m fixtures.workloads.idle", 13)
    with subprocess.Popen(["sh", "-c", f"sleep 0.3; rm -r {tmp_path}/proc/400"]):
        pods.refuse_workloads(tmp_path)


def test_a_workload_that_never_comes_is_told_with_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    with pytest.raises(
        Refused,
        match=rf"pod {UID}: no process fixtures… on this node after 0 s; "
        r"the pod has no processes",
    ):
        pods.wait_for_main_process(tmp_path, UID, "fixtures", within_s=0)
    process(tmp_path, 100, OTHER, "/pause", 10)
    with pytest.raises(Refused, match=r"the pod has '/pause'\."):
        pods.wait_for_main_process(tmp_path, UID, "fixtures", within_s=0)


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """A process with a network and an IPC namespace of its own, and other settings in them."""
    script = (
        f"echo 77 > {SOMAXCONN}; echo 1234 > /proc/sys/kernel/msgmnb; echo ready; exec sleep 600"
    )
    process = subprocess.Popen(
        ["unshare", "--net", "--ipc", "sh", "-c", script], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.needs("namespaces")
@pytest.mark.usefixtures("kernel_unchanged")
def test_a_setting_is_read_where_the_process_lives(elsewhere: int) -> None:
    """net.* and kernel.msg* are per process, vm.* is the machine's; this process stays here."""
    node, here = Tunables(), Path("/proc/self/ns/net").readlink()
    paths = [
        SOMAXCONN,
        "/proc/sys/kernel/msgmnb",
        "/proc/sys/vm/swappiness",
        "/proc/sys/net/core/nosuch",
    ]
    assert pods.values_in_namespaces_of(elsewhere, node, paths) == {
        SOMAXCONN: "77",
        "/proc/sys/kernel/msgmnb": "1234",
        "/proc/sys/vm/swappiness": node.read("/proc/sys/vm/swappiness"),
        "/proc/sys/net/core/nosuch": None,
    }
    assert node.read(SOMAXCONN) != "77"
    assert Path("/proc/self/ns/net").readlink() == here


def test_a_process_that_is_gone_has_no_settings() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(Refused, match=rf"process {gone.pid}: its namespaces cannot be entered"):
        pods.values_in_namespaces_of(gone.pid, Tunables(), [SOMAXCONN])
    with pytest.raises(Refused, match=rf"process {gone.pid}: its limits cannot be read"):
        pods.limits(gone.pid)


def test_the_limits_of_a_process_are_the_kernel_s() -> None:
    command = (
        "import resource, time; resource.setrlimit(resource.RLIMIT_CORE, (0, 4096)); "
        "print(flush=True); time.sleep(60)"
    )
    with waiting.doomed(command) as (pid,):
        assert pods.limits(pid)["core"] == (0, 4096)
        assert pods.limits(pid).keys() >= {"memlock", "nofile", "nproc", "rtprio"}
