"""Fields of a saved run, for both sides: a pytest-benchmark file with DeepTweak's parts.

A field is its type, then `unit: meaning`. msgspec checks input by these types, and `python -m
docs.generate` makes `data/run.schema.json` and docs/reference/run.md of them.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from .record import SCHEMA_VERSION
from .words import Better, Kind, Outcome

# What a clock can have measured of one step: no step takes four months.
SHORTEST_S, LONGEST_S = 1e-9, 1e7
LARGEST, LARGEST_COUNT = 1.7e308, 2**63 - 1

Name = Annotated[str, Meta(min_length=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Utc = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+]00:00)$")]
Version = Annotated[int, Meta(ge=1, le=SCHEMA_VERSION)]
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Ordinal = Annotated[int, Meta(ge=1, le=LARGEST_COUNT)]
Amount = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(gt=0, le=LARGEST)]
Seconds = Annotated[float, Meta(ge=SHORTEST_S, le=LONGEST_S)]  # that a step took
Duration = Annotated[float, Meta(ge=0, le=LONGEST_S)]  # none at all may have passed
Finite = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Fraction = Annotated[float, Meta(gt=0, lt=1)]
Values = dict[str, Any]
Change = Annotated[list[Any], Meta(min_length=2, max_length=2)]  # before, after


class ClusterRecord(TypedDict, total=False):
    version: Annotated[str, "version: of the API server"]
    kubelet: Annotated[str, "version: of the node's kubelet"]
    runtime: Annotated[str, "version: of the node's container runtime"]
    gpus: Annotated[Count, "count: `nvidia.com/gpu` that the node offers"]


class MachineRecord(TypedDict, total=False):
    hostname: Annotated[str, "name"]
    kubernetes: Annotated[
        ClusterRecord, "–: of the cluster the node is part of; only with `--target=kubernetes`"
    ]
    kernel_release: Annotated[str, "version: `uname -r`"]
    kernel_version: Annotated[str, "text: `uname -v`: build number and date"]
    cmdline: Annotated[str, "text: boot tokens of the running kernel"]
    boot_id: Annotated[str, "uuid: of the running kernel"]
    os: Annotated[str, "name: of the distribution"]
    cpu_model: Annotated[str, "name"]
    cpu_microcode: Annotated[str, "version"]
    cpus_online: Annotated[str, "list: such as `0-11`"]
    cpu_count: Annotated[Ordinal, "count: processors of the machine"]
    cpu_affinity_count: Annotated[Ordinal, "count: processors this process may use"]
    cpu_governor: Annotated[str, "name: cpufreq governor of processor 0"]
    cpuidle_governor: Annotated[str, "name"]
    smt: Annotated[str, "word: `on`, `off`, `notsupported`, …"]
    mitigations: Annotated[dict[str, str], "text: vulnerability → the kernel's mitigation"]
    numa_nodes: Annotated[str, "list: online nodes"]
    mem_total_bytes: Annotated[Count, "bytes: MemTotal"]
    thp_enabled: Annotated[str, "word: transparent huge pages before any tweak"]
    clocksource: Annotated[str, "name"]
    hypervisor: Annotated[str, "name: `present` if its kind is unknown"]
    container: Annotated[str, "name: of the container runtime, if it ran in a container"]
    cgroup: Annotated[str, "path: of the harness"]
    is_root: Annotated[bool, "yes/no: ran as user 0, who may still lack rights in a container"]
    python_packages: Annotated[dict[str, str], "version: package → version"]
    gpus: Annotated[
        list[dict[str, Any]] | str,
        "–: one object per GPU (index, uuid, name, driver_version, memory_total_bytes, limits), or "
        "the reason why there is none",
    ]


class MetricRecord(TypedDict):
    name: Annotated[Name, "name: one of `extra_info.metrics`"]
    better: Annotated[Better, "word: `lower` or `higher`"]
    unit: Annotated[
        NotRequired[Name],
        "name: what `rate_median_per_s` counts per second; absent elsewhere",
    ]


class StudyRecord(TypedDict):
    question: Annotated[str, "text: the question of the study"]
    margin: Annotated[
        Fraction, "fraction: equivalence margin: 0.03 calls effects from 1/1.03 to 1.03 equivalent"
    ]
    blocks: Annotated[Ordinal, "count: blocks of this run (replicates)"]
    primary: Annotated[MetricRecord, "–: the metric of the verdict, declared before the run"]
    monitors: Annotated[
        NotRequired[list[str]],
        "names: the monitors that were measured instead of tweak sets",
    ]
    baseline: Annotated[
        NotRequired[list[Name]],
        Meta(min_length=2, extra_json_schema={"uniqueItems": True}),
        "names: the untouched arms declared as the joint baseline; absent if it is `stock` alone",
    ]


class FactorRecord(TypedDict):
    tweakset: Annotated[Name, "name: the tweak set that was taken apart"]
    name: Annotated[
        Name,
        "name: the key, or `script:<package>`; `hugepages-<size>` for the boot tokens of a pool; "
        "`<kind>:<key>` if two kinds have this key",
    ]
    kind: Annotated[
        Literal[Kind, "script"],
        "word: `sysctl`, `ulimit`, `service`, `boot`, `environment`, `process` or `script`",
    ]
    levels: Annotated[
        list[str | None],
        Meta(min_length=2, extra_json_schema={"uniqueItems": True}),
        "as the kernel's: null (as found), then values, the manifest's last; for a script `run`, "
        "for a boot token without a value the token",
    ]


class PointRecord(TypedDict):
    tweakset: Annotated[Name, "name: the tweak set that was taken apart"]
    levels: Annotated[
        dict[str, str | None],
        "as the kernel's: factor → level; null: as found",
    ]


class DesignRecord(TypedDict):
    seed: Annotated[Count, "number: determines the order of cells and each block's data"]
    blocks: Annotated[Ordinal, "count: the most blocks any study has"]
    steps: Annotated[
        Ordinal | None,
        "steps: measured steps requested with `--steps`; null: each workload's default",
    ]
    order: Annotated[list[str], "ids: all planned cells in the order of the plan"]
    budget_s: Annotated[
        NotRequired[Positive],
        "s: time in which to measure whole blocks (`--budget`)",
    ]
    kind: Annotated[
        Name,
        "name: `matrix`, the value of `--design`, or `file`",
    ]
    factors: Annotated[
        list[FactorRecord],
        "–: each setting of the tweak sets that were taken apart; none in a matrix",
    ]
    points: Annotated[
        dict[str, PointRecord],
        "–: tweak set → its point in the design, without the stock sets",
    ]
    notes: Annotated[
        dict[str, dict[str, Any]],
        "–: tweak set → facts about its design: `letters`, `runs`, `generators`, "
        "`defining_relation`, `resolution`, `aliases` (`-` is the opposite)",
    ]


class CommandRecord(TypedDict):
    program: Annotated[list[str], Meta(min_length=1), "words: the program and its arguments"]
    folder: Annotated[str, "path: where it runs"]
    environment: Annotated[dict[str, str], "text: variable → value, as set by `--env`"]
    steps_are: Annotated[
        Literal["lines", "calls", "runs"],
        "word: what ends a step: a line, a call to `step()`, or a run of the whole command",
    ]
    format: Annotated[str | None, "name: of the output format, typed or recognised; null: none"]
    pattern: Annotated[
        str | None, "regular expression: matches the lines, or a run's figure; null: none"
    ]
    rate_unit: Annotated[
        str | None,
        "name: what its figures count per second; empty if unknown; null: they are times",
    ]
    steps: Annotated[Ordinal, "steps: measured steps per cell"]
    warmup: Annotated[Count, "steps: uncounted steps before these"]
    samples: Annotated[Ordinal, "count: samples per step"]
    timeout_s: Annotated[Positive, "s: time limit without a step, or for a run"]
    exit_codes: Annotated[list[int], "numbers: exit codes that count as success"]
    output: Annotated[
        str | None, "path: the file that the figure is read from; null: its printed output"
    ]
    image: Annotated[
        str | None, "name: the image it runs in on a cluster; null: a program on this machine"
    ]
    meaning: Annotated[
        Literal["count", "time", "rate", "line"] | None,
        "word: what the number in a line is; null: decided from the first one",
    ]
    follow: Annotated[str | None, "name: the progress bar whose counter is read; null: any"]
    every: Annotated[Ordinal, "count: counts of the program's counter per step"]
    figure: Annotated[
        str | None, "name: the figure that is measured; null: the only one, or all combined"
    ]
    step_is: Annotated[
        str | None,
        "text: what a step was in the trial; null: there was no trial",
    ]


class WorkloadRecord(TypedDict):
    primary: Annotated[
        NotRequired[MetricRecord | None],
        "–: the workload's own primary metric, instead of the study's",
    ]
    params: Annotated[
        Values,
        "as named: the workload's parameters; `design.steps` replaces `steps` if it is not null",
    ]
    description: Annotated[str, "text: what it does"]
    command: Annotated[
        NotRequired[CommandRecord],
        "–: the program that `deeptweak run` was given; absent for built-in workloads",
    ]


class RequestedSetting(TypedDict):
    kind: Annotated[
        Kind, "word: `sysctl`, `ulimit`, `service`, `boot`, `environment` (a variable) or `process`"
    ]
    key: Annotated[
        Name,
        "name: `vm.swappiness`, `memlock`, `containerd.LimitNOFILE`, `isolcpus`, `Nice`",
    ]
    value: Annotated[str, "as the kernel's: as written in the manifest"]
    package: Annotated[str, "name: the package it is in"]


class ScriptRecord(TypedDict):
    package: Annotated[str, "name: the Skyhook package"]
    stage: Annotated[str, "word: `apply`, `apply_check`, `uninstall`, …"]
    sha256: Annotated[Sha256, "hex: of the script's text"]


class TweakSetRecord(TypedDict):
    path: Annotated[
        str | None,
        "path: the manifest; null for stock sets, and for sets that a design derived",
    ]
    sha256: Annotated[Sha256 | None, "hex: of the manifest that was applied, as it was read"]
    description: Annotated[str, "text: from the manifest"]
    requested: Annotated[
        list[RequestedSetting],
        "–: settings of its `tuning` and `process` packages, in the manifest's order",
    ]
    scripts: Annotated[list[ScriptRecord], "–: stages of its `shellscript` packages"]
    warnings: Annotated[list[str], "text: what looks wrong in the manifest"]
    monitor: Annotated[
        NotRequired[Name],
        "name: of the arm's monitor, as in `psutil_thread:interval_s=0.01`; absent for tweak sets",
    ]


class CellEntry(TypedDict):
    id: Annotated[Name, "name: workload, tweak set and block; stable between runs"]
    study: Annotated[Name, "name: one of `deeptweak.studies`"]
    workload: Annotated[Name, "name: one of `deeptweak.workloads`"]
    tweakset: Annotated[Name, "name: one of `deeptweak.tweaksets`"]
    block: Annotated[Count, "number: which replicate"]
    order: Annotated[Count, "number: place in the whole run"]
    outcome: Annotated[
        Outcome,
        "word: `measured`, `failed` (it broke) or `skipped` (not possible on this machine now)",
    ]
    reason: Annotated[str | None, "text: why it was not measured; null if it was"]
    fullname: Annotated[str, "name: pytest's name for the item, as in its entry in `benchmarks`"]
    last_lines: Annotated[
        NotRequired[list[str]], "text: last lines the workload wrote, if it failed"
    ]


class FileBeside(TypedDict):
    name: Annotated[Name, "name: in the same folder"]
    sha256: Annotated[Sha256, "hex: of the compressed file"]
    bytes: Annotated[Count, "bytes: size of the compressed file"]


class MachineCheck(TypedDict):
    changed: Annotated[
        dict[str, Change], "–: path → [before, after] of what differs; with `-n`, `node: path`"
    ]
    restored: Annotated[bool, "yes/no: everything the run wrote is back"]
    notes: Annotated[
        NotRequired[list[str]],
        "–: what else was needed to put it back, as a finalizer removed; with `-n`, `node: note`",
    ]


class RunRecord(TypedDict):
    schema_version: Annotated[Version, "count: version of this schema"]
    run_id: Annotated[Name, "name: names the run, also in the names of the files beside it"]
    started_utc: Annotated[Utc, "UTC: when the first cell was prepared"]
    ended_utc: Annotated[Utc, "UTC: when the last cell was over"]
    interrupted: Annotated[
        bool,
        "yes/no: the run was stopped before its last cell",
    ]
    studies: Annotated[
        dict[str, StudyRecord], "–: by name; a study is one file under `benchmarks/`"
    ]
    design: Annotated[DesignRecord, "–: how the cells were laid out"]
    workloads: Annotated[
        dict[str, WorkloadRecord],
        "–: by name; a variant's name has its parameters, as in `io_train:format=npz:cache=cold`",
    ]
    tweaksets: Annotated[
        dict[str, TweakSetRecord],
        "–: by name; `stock` and `stock-again` are the untouched machine; monitors are listed too",
    ]
    cells: Annotated[list[CellEntry], "–: in the order they ran; with `-n`, in plan order"]
    telemetry_file: Annotated[
        FileBeside | None,
        "–: the file beside this one with every telemetry sample; null if there is none",
    ]
    machine_check: Annotated[
        MachineCheck, "–: tunables of the machine before the first cell against after the last"
    ]
    nodes: Annotated[
        NotRequired[dict[str, dict[str, Any]]],
        "–: node → its facts, where `machine_info.deeptweak` holds those that all share",
    ]


# What holds between fields of one object, in JSON schema.
RULES: dict[type, dict[str, Any]] = {
    CellEntry: {
        "if": {"properties": {"outcome": {"const": "measured"}}},
        "then": {"properties": {"reason": {"type": "null"}}},
        "else": {"properties": {"reason": {"type": "string", "minLength": 1}}},
    },
}
