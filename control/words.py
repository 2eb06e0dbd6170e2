"""Types that saved and running sessions share.

They stand apart from `saved`: a workload's own image has none of the libraries that a saved run is
checked with.
"""

from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher"]
Outcome = Literal["measured", "failed", "skipped"]
# What stands in the kernel: the values that were found there, or those of the tweak set.
InForce = Literal["found", "set"]
Kind = Literal["sysctl", "ulimit", "service", "boot", "environment", "process"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured quantity; `name` includes the unit (`step_time_p10_s`), `better` the direction.

    `unit` is what a rate counts per second if its name omits it: `B`, `requests`.
    """

    name: str
    better: Better
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Factor:
    """A setting in a tweak set that a design varies, or a whole script (`script:<package>`).

    `levels` start with None, as found, and end with the manifest's value, or "run" for a script; an
    annotation gives those between.
    """

    tweakset: str
    name: str
    kind: Kind | Literal["script"]
    levels: tuple[str | None, ...]
