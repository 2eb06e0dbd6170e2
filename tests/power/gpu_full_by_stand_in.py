"""Run the back-end gpu-full for a test, on a stand-in for NVML; print its words as JSON lines.

After the `settings` of the command line it prints them and waits for a line on stdin: it can be
killed there.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from control.power.terms import Settings, Tenant
from fixtures.studies.power.backends import gpu_full
from fixtures.studies.power.tenants import Pool
from fixtures.studies.power.terms import Inference
from fixtures.terms import Refused


def settings(said: dict[str, Any]) -> Settings:
    return Settings(**{**said, "tenants": tuple(Tenant(**one) for one in said["tenants"])})


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    vars(gpu_full)["Pool"] = partial(
        Pool, program=(sys.executable, str(Path(__file__).with_name("stub_tenant.py")))
    )
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with gpu_full.opened(
                Inference(
                    "stub",
                    32,
                    1,
                    Path(scratch),
                    params={"gpu_changes": "allowed", "privilege": "yes"},
                )
            ) as gpu:
                for one in sys.argv[1:]:
                    say(
                        applied=asdict(gpu.apply(settings(json.loads(one)))),
                        environment=[dict(w.environment) for w in gpu.works(gpu.settings)],
                    )
                say(observed=asdict(gpu.run(0.0, 0.1)))
                sys.stdin.readline()
        except Refused as error:
            say(refused=str(error))
