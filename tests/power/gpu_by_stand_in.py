"""Run three windows of gpu-readonly on an NVML stand-in, the last with a new limit; print JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from control.power.terms import Settings, Tenant
from fixtures.studies.power.backends import gpu_readonly
from fixtures.studies.power.tenants import Pool
from fixtures.studies.power.terms import Inference
from fixtures.terms import Refused

STUB = (sys.executable, str(Path(__file__).with_name("stub_tenant.py")))

if __name__ == "__main__":
    told: dict[str, Any] = {"probe": asdict(gpu_readonly.probe({}))}
    with (
        tempfile.TemporaryDirectory() as scratch,
        mock.patch.object(gpu_readonly, "Pool", partial(Pool, program=STUB)),
    ):
        job = Inference("stub", 32, 1, Path(scratch))
        with gpu_readonly.opened(job) as gpu:
            told["applied"] = asdict(
                gpu.apply(Settings((Tenant(25, 10), Tenant(100, 10)), sm_mhz=1410, throttle=0.5))
            )
            told["tenant"] = gpu.pool.facts
            told["paced"] = asdict(gpu.run(0.0, 0.3))
            gpu.apply(Settings((Tenant(100, 10),)))
            told["unpaced"] = asdict(gpu.run(0.0, 0.3))
        states = mock.Mock(side_effect=[{}, {"power_limit_w": 700.0}, {"power_limit_w": 300.0}])
        try:
            with mock.patch.object(gpu_readonly, "state", states), gpu_readonly.opened(job):
                pass
        except Refused as error:
            told["refused"] = str(error)
    print(json.dumps(told))
