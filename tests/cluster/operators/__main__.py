"""`python -m tests.cluster.operators skyhook|nodewright|kaito`: stand in for an operator.

Until stopped, it writes to the kubeconfig's cluster as NVIDIA's operator (old, new) or KAITO's, and
its package pods change that cluster's nodes, as the real ones do.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .api import Api, alone
from .kaito import Operator as Kaito
from .machines import Machines
from .nodewright import Operator as NodeWright
from .packages import Look
from .skyhook import Operator

IMAGE = "busybox"
# What can be wrong with an operator, by name.
SKYHOOK = {
    "absent": "not there at all: nothing is ever written",
    "dies-midway": (
        "the operator's process ends while an apply pod runs; the pod goes on and changes the host"
    ),
    "erroring": (
        "every stage's container exits 1, and the status says so for 30-50 ms only, between "
        "in_progress and in_progress"
    ),
    "image-missing": (
        "the package's image cannot be pulled: in_progress for ever, only pod and events say why"
    ),
    "left-over": (
        "the node still has the marks of an earlier resource of the same name: complete at once, "
        "nothing applied"
    ),
    "lies": "all pods run to their end and it says complete, but nothing on the host was changed",
    "stuck": "in_progress for ever, and no pod",
}
KAITO = {
    "first-pod-fails": (
        "the first training pod exits 1, the Job's retry succeeds; the Workspace says Failed for "
        "good"
    )
}
NODEWRIGHT = {
    "late-verdict": (
        "a failed attempt is not called erroring while its Job tries again, as from v0.20 on"
    )
}
FAULTS = {"skyhook": SKYHOOK, "nodewright": NODEWRIGHT, "kaito": KAITO}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.operators", description=__doc__)
    parser.add_argument("operator", choices=sorted(FAULTS))
    told = "; ".join(
        f"{of}: {name} ({what})" for of, known in FAULTS.items() for name, what in known.items()
    )
    parser.add_argument("--fault", metavar="NAME", help=f"what is wrong with it. {told}")
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        help="divides the operator's own waits (the kubelet's stay)",
    )
    parser.add_argument(
        "--brief",
        action="store_true",
        help="one init container a pod instead of three, and pods killed at once",
    )
    parser.add_argument(
        "--image",
        default=os.environ.get("DEEPTWEAK_STANDIN_IMAGE", IMAGE),
        help="an image with busybox that the nodes have",
    )
    parser.add_argument(
        "--machines",
        type=Path,
        metavar="FOLDER",
        help="fake roots of simulated nodes: pods and reboots change these",
    )
    parser.add_argument("--kubeconfig")
    asked = parser.parse_args(argv)
    if asked.fault is not None and asked.fault not in FAULTS[asked.operator]:
        parser.error(
            f"no fault {asked.fault!r} of {asked.operator}; there are: "
            f"{', '.join(FAULTS[asked.operator])}"
        )
    api = Api(asked.kubeconfig)
    held = alone(f"{asked.operator} {api.host}")  # noqa: F841 until the process ends
    print(
        f"stand-in for {asked.operator} runs" + (f", fault {asked.fault}" if asked.fault else ""),
        file=sys.stderr,
        flush=True,
    )
    if asked.operator == "skyhook":
        look = Look(asked.image, brief=asked.brief, fault=asked.fault)
        Operator(api, look, speed=asked.speed, machines=Machines(asked.machines)).run()
    elif asked.operator == "nodewright":
        look = Look(asked.image, brief=asked.brief)
        NodeWright(api, look, Machines(asked.machines), eager=asked.fault != "late-verdict").run()
    else:
        Kaito(api, asked.image, fault=asked.fault, speed=asked.speed).run()


if __name__ == "__main__":
    main()
