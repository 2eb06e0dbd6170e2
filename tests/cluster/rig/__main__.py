"""`python -m tests.cluster.rig up` keeps a cluster up for people; `down` takes it away.

`build` makes its programs; `can` says whether it can be started here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from . import hold as holding
from . import image, programs, up


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.rig",
        description="A Kubernetes cluster of one node: this machine.",
    )
    commands = parser.add_subparsers(required=True)

    def command(
        name: str, does: Callable[[argparse.Namespace], int], explained: str
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=explained)
        made.set_defaults(does=does)
        return made

    command(
        "up",
        lambda _: _print(up.keep()),
        "start it and keep it: eval $(python -m tests.cluster.rig up)",
    )
    command("down", lambda _: up.end_kept(), "stop it and put the machine back")
    build = command(
        "build",
        lambda a: _build(if_possible=a.if_possible),
        "build its programs and images, so that `up` takes seconds",
    )
    build.add_argument(
        "--if-possible",
        action="store_true",
        help="where no cluster can run, say why and build nothing",
    )
    command("can", lambda _: _can(), "say whether it can be started here; exit code 1: no, and why")
    hold = command(
        "hold", lambda a: holding.hold(a.folder, until_told=a.until_told), "(what `up` starts)"
    )
    hold.add_argument("folder", type=Path)
    hold.add_argument("--until-told", action="store_true")
    command("inside", lambda a: holding.keep(a.folder), "(what `hold` starts)").add_argument(
        "folder", type=Path
    )
    arguments = parser.parse_args()
    try:
        code: int = arguments.does(arguments)
    except RuntimeError as error:  # ours; each is a sentence
        print(error, file=sys.stderr)
        return 1
    return code


def _build(*, if_possible: bool) -> int:
    if if_possible and _can():
        return 0
    for module in programs.ALL:
        programs.build(module)
    image.archive()
    return 0


def _can() -> int:
    if why := up.why_not():
        print(
            f"{why} Tests marked `cluster` are skipped, unless KUBECONFIG gives a cluster.",
            file=sys.stderr,
        )
        return 1
    return 0


def _print(about: dict[str, str]) -> int:
    for name, value in about.items():
        print(f"export {name}={value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
