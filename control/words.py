"""Words that a saved run and a running one share.

They stand apart from `saved`: a workload's own image has none of the libraries that a saved run is
checked with.
"""

from typing import Literal

Better = Literal["lower", "higher"]
Outcome = Literal["measured", "failed", "skipped"]
# What stands in the kernel: the values that were found there, or those of the tweak set.
InForce = Literal["found", "set"]
Kind = Literal["sysctl", "ulimit", "service", "boot", "environment", "process"]
