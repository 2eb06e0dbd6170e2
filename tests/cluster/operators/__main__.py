"""`python -m tests.cluster.operators skyhook|nodewright|kaito`: stand in for an operator.

Until stopped, it writes to the kubeconfig's cluster as NVIDIA's operator (old, new) or KAITO's, and
its package pods change that cluster's nodes, as the real ones do.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .api import Api, alone
from .kaito import Operator as Kaito
from .machines import Machines
from .nodewright import Operator as NodeWright
from .packages import Look
from .skyhook import Operator

# What can be wrong with an operator: Skyhook's
# absent       is not there at all;
# dies-midway  ends while an apply pod runs, which goes on and changes the host;
# erroring     has stages that exit 1, and says so for 35 ms only, between in_progress;
# image-missing, left-over (marks of an earlier resource: complete at once), stuck (no pod);
# lies         runs its pods and says complete, but nothing on the host was changed.
# KAITO's first training pod exits 1, its Job's retry succeeds: the Workspace is Failed for good.
FAULTS = {
    "skyhook": (
        *("absent", "dies-midway", "erroring", "image-missing", "left-over", "lies", "stuck"),
    ),
    "nodewright": (),
    "kaito": ("first-pod-fails",),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.operators", description=__doc__)
    parser.add_argument("operator", choices=sorted(FAULTS))
    parser.add_argument("--fault", choices=sorted(sum(FAULTS.values(), ())))
    parser.add_argument("--speed", type=float, default=1.0, help="divides the operator's own waits")
    parser.add_argument("--image", required=True, help="an image with busybox that the nodes have")
    parser.add_argument("--machines", type=Path, help="folder of simulated nodes' fake roots")
    parser.add_argument("--kubeconfig")
    asked = parser.parse_args()
    api = Api(asked.kubeconfig)
    held = alone(f"{asked.operator} {api.host}")  # noqa: F841 until the process ends
    print(f"stand-in for {asked.operator} runs", file=sys.stderr, flush=True)
    look, machines = Look(asked.image, fault=asked.fault), Machines(asked.machines)
    if asked.operator == "skyhook":
        Operator(api, look, asked.speed, machines).run()
    elif asked.operator == "nodewright":
        NodeWright(api, look, machines).run()
    else:
        Kaito(api, asked.image, asked.fault, asked.speed).run()


if __name__ == "__main__":
    main()
