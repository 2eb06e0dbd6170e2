"""`python -m tests.cluster.operators skyhook|kaito`: a stand-in for NVIDIA Skyhook's or KAITO's operator, until it is stopped.

It writes to the cluster of the kubeconfig, and its package pods change the nodes of that cluster, as the real ones do.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from . import alone, faults
from .api import Api
from .kaito import Operator as Kaito
from .machines import Machines
from .marks import GROUP
from .packages import Look
from .skyhook import Operator
from .view import PLURALS

IMAGE = "busybox"


def main(argv: list[str] | None = None) -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.operators", description=__doc__)
    parser.add_argument("operator", choices=sorted(faults.OF))
    told = "; ".join(f"{of}: {name} ({what})" for of, known in faults.OF.items() for name, what in known.items())
    parser.add_argument("--fault", metavar="NAME", help=f"what is wrong with it. {told}")
    parser.add_argument("--speed", type=float, default=1.0, help="divides the operator's own waits (the kubelet's stay)")
    parser.add_argument("--brief", action="store_true", help="one init container a pod instead of three, and pods killed at once")
    parser.add_argument(
        "--image", default=os.environ.get("DEEPTWEAK_STANDIN_IMAGE", IMAGE), help="an image with busybox that the nodes have"
    )
    parser.add_argument("--group", default=GROUP, choices=sorted(PLURALS), help="the operator's API group: it was renamed in 2026")
    parser.add_argument("--machines", type=Path, metavar="FOLDER", help="fake roots of simulated nodes: pods and reboots change these")
    parser.add_argument("--kubeconfig")
    parser.add_argument("--context")
    asked = parser.parse_args(argv)
    if asked.fault is not None and asked.fault not in faults.OF[asked.operator]:
        parser.error(f"no fault {asked.fault!r} of {asked.operator}; there are: {', '.join(faults.OF[asked.operator])}")
    api = Api(asked.kubeconfig, asked.context)
    held = alone.on(f"{asked.operator} {asked.group} {api.host}")  # noqa: F841 held until the process ends, however it ends
    print(f"stand-in for {asked.operator} runs" + (f", fault {asked.fault}" if asked.fault else ""), file=sys.stderr, flush=True)
    if asked.operator == "skyhook":
        look = Look(asked.image, brief=asked.brief, fault=asked.fault, group=asked.group)
        Operator(api, look, speed=asked.speed, group=asked.group, machines=Machines(asked.machines)).run()
    else:
        Kaito(api, asked.image, fault=asked.fault, speed=asked.speed).run()


if __name__ == "__main__":
    main()
