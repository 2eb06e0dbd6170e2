"""The gate's limits: the largest loss allowed, per workload, and the baseline.

```yaml
max_regression: 3%            # for everything not named below
metrics: [primary]            # primary (default), second, both, names, or min, median, mean, ops
tweaksets: [my-tuning]        # the gated candidates (default: all)
baseline: stock               # a tweak set, or a saved run (path relative to this file)
workloads:
  ddp_train: 10%
  lora_finetune: {step_time_p10_s: 5%, throughput_samples_per_s: 10%}
```

A gate with a typing error in its limits guards nothing, so anything unknown is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import marked_yaml
from analysis.metrics import COLUMNS
from analysis.terms import Refused
from analysis.wording import SHOWN_NAMES, parse_percent
from control.names import first_few

if TYPE_CHECKING:
    from analysis.marked_yaml import YamlValue

KEYS = ("max_regression", "metrics", "tweaksets", "baseline", "workloads")
# Words for metrics that studies and workloads declare.
DECLARED = {"primary": ("primary",), "second": ("second",), "both": ("primary", "second")}
# A tweak set is named after its file and contains none of these; write a saved run without any of
# them as ./run.
OF_A_PATH = re.compile(r"[/*?\[]|\.json(?::|$)")


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest losses allowed, as fractions.

    `of_metric` is by workload and metric. `metrics` are names, or `primary` and `second`, those
    that study and workload declare. The baseline is a tweak set or a saved run (`PATH[:TWEAKSET]`),
    both None if the file has none. `places` locates each name for messages.
    """

    max_regression: float
    of_workload: Mapping[str, float] = field(default_factory=dict)
    of_metric: Mapping[tuple[str, str], float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ("primary",)
    tweaksets: tuple[str, ...] | None = None
    baseline_tweakset: str | None = None
    baseline_run: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def workloads(self) -> set[str]:
        return {*self.of_workload, *(workload for workload, _ in self.of_metric)}

    def limit_of(self, workload: str, metric_name: str) -> float:
        return self.of_metric.get(
            (workload, metric_name), self.of_workload.get(workload, self.max_regression)
        )

    def metrics_of(self, workload: str) -> tuple[str, ...]:
        """Return the metrics gated under this workload: requested ones and those with a limit."""
        return tuple(
            dict.fromkeys(
                [*self.metrics, *(metric for of, metric in self.of_metric if of == workload)]
            )
        )


def parse_metrics(words: Sequence[str]) -> tuple[str, ...]:
    """Expand metric words: `both` is `primary` and `second`; pytest-benchmark's names are known."""
    return tuple(
        dict.fromkeys(
            name for word in words for name in DECLARED.get(word, (COLUMNS.get(word, word),))
        )
    )


def read(path: Path | str, max_regression: float | None = None) -> Limits:
    """Read a limits file. `max_regression` (from the command line) replaces the file's own.

    Raises: Refused, with the file's name and line, what is wrong there, and what to do.
    """
    return _limits(marked_yaml.read(path), Path(path), max_regression)


def _limits(top: YamlValue, path: Path, max_regression: float | None) -> Limits:
    values = dict(top.items())
    for name, value in values.items():
        if name not in KEYS:
            value.refuse(f"unknown key {name!r}; a limits file has {', '.join(KEYS)}")
    own = _percent(values["max_regression"]) if "max_regression" in values else None
    default = own if max_regression is None else max_regression
    if default is None:
        raise Refused(
            f"{path}: max_regression is missing; write max_regression: 3%, or give "
            "--max-regression."
        )
    places: dict[str, str] = {}
    metrics = _names(values["metrics"], "metric", places) if "metrics" in values else ["primary"]
    tweaksets = _names(values["tweaksets"], "tweak set", places) if "tweaksets" in values else None
    baseline_tweakset, baseline_run = (
        _baseline(values["baseline"], path, places) if "baseline" in values else (None, None)
    )
    of_workload, of_metric = (
        _workloads(values["workloads"], places) if "workloads" in values else ({}, {})
    )
    return Limits(
        max_regression=default,
        of_workload=of_workload,
        of_metric=of_metric,
        metrics=parse_metrics(metrics),
        tweaksets=None if tweaksets is None else tuple(tweaksets),
        baseline_tweakset=baseline_tweakset,
        baseline_run=baseline_run,
        places=places,
    )


def _percent(value: YamlValue) -> float:
    try:
        return parse_percent(value.text())
    except Refused as error:
        value.refuse(f"{value.name}: {str(error).removesuffix('.')}")


def _names(value: YamlValue, noun: str, places: dict[str, str]) -> list[str]:
    entries = value.each()
    places |= {f"{noun} {entry.text()}": entry.place for entry in entries}
    return [entry.text() for entry in entries]


def _baseline(
    value: YamlValue, path: Path, places: dict[str, str]
) -> tuple[str | None, str | None]:
    if OF_A_PATH.search(value.text()):
        return None, str(path.parent / value.text())
    places[f"tweak set {value.text()}"] = value.place
    return value.text(), None


def _workloads(
    workloads: YamlValue, places: dict[str, str]
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    of_workload: dict[str, float] = {}
    of_metric: dict[tuple[str, str], float] = {}
    for workload, value in workloads.items():
        places[f"workload {workload}"] = value.place
        if not value.is_mapping:
            of_workload[workload] = _percent(value)
            continue
        for metric, limit in value.items():
            if metric in DECLARED:
                limit.refuse(
                    f"{metric!r} is not a metric; name a metric with a limit for {workload}, such "
                    "as step_time_p10_s"
                )
            name = COLUMNS.get(metric, metric)
            places[f"metric {name}"] = limit.place
            of_metric[workload, name] = _percent(limit)
    return of_workload, of_metric


def unknown(
    limits: Limits, workloads: Collection[str], tweaksets: Collection[str], metrics: Collection[str]
) -> list[str]:
    named = {
        "workload": (limits.workloads, workloads),
        "tweak set": (
            {*(limits.tweaksets or ()), *filter(None, [limits.baseline_tweakset])},
            tweaksets,
        ),
        "metric": (
            {*limits.metrics, *(metric for _, metric in limits.of_metric)} - DECLARED.keys(),
            metrics,
        ),
    }
    lines = []
    for noun, (names, available) in named.items():
        for name in sorted(names - set(available)):
            place = limits.places.get(f"{noun} {name}")
            lines.append(
                f"{place + ': ' if place else ''}no {noun} {name!r} in these runs; available: "
                f"{first_few(sorted(available), SHOWN_NAMES)}."
            )
    return lines
