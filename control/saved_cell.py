"""Fields of a measured cell (`extra_info` of its benchmark), in the notation of `saved.py`."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from .saved import (
    Amount,
    Change,
    Count,
    Duration,
    Finite,
    MachineRecord,
    Name,
    Ordinal,
    Positive,
    RunRecord,
    Seconds,
    Utc,
    Values,
    Version,
)
from .words import InForce


class PlaceRecord(TypedDict):
    apply: Annotated[
        Literal["skyhook", "agent"],
        "word: who changed the node: `skyhook` (the operator) or `agent`",
    ]
    workload_via: Annotated[
        Literal["job", "kaito"], "word: as what it was deployed: `job` or `kaito`"
    ]
    host_network: Annotated[
        bool,
        "yes/no: the pod used its node's network, so the node's `net.*` settings apply to it",
    ]
    api_requests: Annotated[
        Count,
        "count: requests to the API server during the cell's workload; a watch counts as one",
    ]
    pod: Annotated[NotRequired[Name], "name"]
    pod_uid: Annotated[NotRequired[Name], "uuid"]
    node: Annotated[NotRequired[Name], "name: as the cluster calls it"]
    image: Annotated[NotRequired[Name], "name: as requested"]
    image_id: Annotated[NotRequired[str], "digest: as the kubelet resolved it"]
    agent_image_id: Annotated[NotRequired[str], "digest: of the node agent"]
    boot_id: Annotated[
        NotRequired[str],
        "uuid: of the boot in which the workload ran",
    ]
    resources: Annotated[
        NotRequired[dict[str, Any]],
        "as Kubernetes writes it: requests and limits of the workload's container as it ran",
    ]
    gpu_uuids: Annotated[
        NotRequired[list[str]], "uuid: GPUs that the workload could use; absent if none"
    ]
    workspace: Annotated[NotRequired[Name], "name: KAITO's Workspace; absent for a Job"]


class TweakRecord(TypedDict):
    requested: Annotated[
        Values,
        "as the kernel's: key → requested value; process settings as in `/proc`",
    ]
    before: Annotated[
        Values,
        "as the kernel's: key → value found before; of process settings, the harness's own, and "
        "null on a cluster",
    ]
    observed: Annotated[
        Values,
        "as the kernel's: key → value read back after writing; process settings when the workload "
        "has started",
    ]
    restored: Annotated[
        Values,
        "as the kernel's: key → value read back at the end of the cell",
    ]
    side_effects: Annotated[
        dict[str, Change],
        "as the kernel's: path → [before, after] of tunables that changed unasked",
    ]
    by_scripts: Annotated[
        NotRequired[list[str]],
        "paths of side_effects that the set's scripts name",
    ]
    already_in_force: Annotated[list[str], "keys: requested, but already in force"]
    left_alone: Annotated[
        NotRequired[dict[str, Change]],
        "as the kernel's: path → [found, written]: changed by another program, so not put back",
    ]
    elsewhere: Annotated[
        NotRequired[dict[str, Change]],
        "as the kernel's: path → [before, after]: changed by others during the cell",
    ]
    apply_s: Annotated[Amount, "s: to write and read back"]
    restore_s: Annotated[Amount, "s: to put back and read back"]


class WorkloadFacts(TypedDict, total=False):
    device: Annotated[str, "name: `cpu`, or the GPU's name"]
    torch: Annotated[str, "version: PyTorch"]
    cuda: Annotated[str | None, "version: the CUDA that PyTorch was built for; null on a CPU"]
    threads: Annotated[Count, "count: threads that PyTorch computes with"]
    cores_allowed: Annotated[Count, "count: processors the process may run on"]
    dtype: Annotated[str, "name: of the parameters"]
    parameters: Annotated[Count, "count: the model's parameters"]
    trainable_parameters: Annotated[Count, "count: those of them that are trained"]
    cpu_s_covers: Annotated[str, "text: whose processor time `cpu_s` counts"]
    kaito: Annotated[
        dict[str, Any],
        "–: what KAITO's image reported (`--workload-via=FILE`): `preset`, `metrics`, `missing` "
        "(why), `window_s`; the measurement is one step",
    ]
    gpu_uuids: Annotated[
        list[str],
        "names: the GPUs the process may use; absent on a CPU",
    ]
    rate_unit: Annotated[
        str,
        "name: what `extra_info.steps.rate_per_s` counts: `B`, `requests`, `tokens`, …",
    ]
    data_crc32: Annotated[
        str | int, "hex: fingerprint of the samples; cells are compared only if theirs are equal"
    ]


class StepsRecord(TypedDict):
    wall_s: Annotated[list[Seconds], Meta(min_length=1), "s: wall time of the step"]
    cpu_s: Annotated[
        NotRequired[list[Duration]],
        "s: processor time of the step, see `cpu_s_covers`",
    ]
    samples: Annotated[list[Count], "count: samples processed"]
    tokens: Annotated[NotRequired[list[Count]], "count: tokens processed; 0 if the work has none"]
    loss: Annotated[NotRequired[list[Finite]], "number: training loss"]
    rate_per_s: Annotated[
        NotRequired[list[Positive]],
        "1/s: the program's own rate in the step, see `rate_unit`",
    ]
    start_monotonic_s: Annotated[
        NotRequired[list[Finite]],
        "s: CLOCK_MONOTONIC when the step began, the clock of the telemetry",
    ]
    warmup: Annotated[Count, "steps: how many at the beginning are warm-up"]
    overlap: Annotated[
        NotRequired[Literal[True]],
        "yes: a step may begin before the previous one ends, as with jobs that wait together; "
        "absent elsewhere",
    ]


class SegmentRecord(TypedDict):
    pair: Annotated[Ordinal, "number: which pair, from 1"]
    arm: Annotated[
        InForce,
        "–: `found`: the machine as found, or without the monitor; `set`: with the tweak set or it",
    ]
    first: Annotated[
        Count, "index: of its first step in the columns of `extra_info.steps`, warm-up counted"
    ]
    settle: Annotated[Count, "steps: uncounted steps at its beginning, while the switch settles"]
    steps: Annotated[Ordinal, "steps: counted steps after these"]


class Turn(TypedDict):
    round: Annotated[Ordinal, "number: in which round, from 1"]
    first: Annotated[
        Count, "index: of its first step in the columns of `extra_info.steps`, warm-up counted"
    ]
    steps: Annotated[Ordinal, "steps: their number"]
    others_cpu_s: Annotated[
        NotRequired[Duration | None],
        "s: CPU time that others used during the slice, without harness, sampler and kernel "
        "threads; null if unknown, and in an arm's last slice",
    ]


class MonitorDetails(TypedDict, total=False):
    start_cpu_s: Annotated[
        Amount | None,
        "s: for a monitor `beside`: its processor time until it was at work",
    ]
    stop_cpu_s: Annotated[Amount | None, "s: the same, after it was told to stop"]
    at_work_s: Annotated[
        Amount | None, "s: if it took turns: how long it was at work, without its start and end"
    ]


class MonitorRecord(TypedDict):
    name: Annotated[str | None, "name: as in `deeptweak.tweaksets`"]
    base: Annotated[str | None, "name: its class in `fixtures/monitors/catalogue/`"]
    kind: Annotated[
        Literal["inside", "beside", "around"] | None,
        "word: `inside` the workload's process, `beside` it, or `around`: it started the workload",
    ]
    params: Annotated[Values, "as named: all its parameters"]
    version: Annotated[str | None, "text: as the program reports it"]
    cpu_s: Annotated[
        Amount | None,
        "s: processor time of its processes and daemons from start to end; null for `inside`, "
        "whose time is in the workload's",
    ]
    wall_s: Annotated[Amount | None, "s: from its start to its end"]
    peak_rss_bytes: Annotated[
        Count | None,
        "bytes: largest resident size, summed over its processes",
    ]
    written_bytes: Annotated[
        Count | None, "bytes: files in its folder at the end: its output and reports"
    ]
    samples: Annotated[Count | None, "count: samples that it took"]
    start_s: Annotated[Amount | None, "s: from its start until it was at work"]
    stop_s: Annotated[
        Amount | None, "s: from the last step until its report was written and it was gone"
    ]
    told: Annotated[MonitorDetails, "–: what else it reported"]
    missing: Annotated[dict[str, Name], "text: field → why it is null"]


class Usage(TypedDict):
    wall_s: Annotated[Amount, "s: from start to exit, including waits for the monitor"]
    cpu_s: Annotated[
        Amount | None, "s: processor time up to its last message, with children that it waited for"
    ]
    steps_wall_s: Annotated[Amount, "s: sum over the measured steps"]
    steps_cpu_s: Annotated[Amount | None, "s: sum over the measured steps"]
    peak_rss_bytes: Annotated[Count | None, "bytes: largest resident size"]
    written_bytes: Annotated[
        Count | None,
        "bytes: written to disks (`write_bytes` of `/proc/self/io`)",
    ]
    load_average_1min: Annotated[Amount, "processes: the machine's load average when it ended"]
    energy_j: Annotated[
        Amount | None,
        "J: of the processor packages from its start to its exit (RAPL)",
    ]
    missing: Annotated[dict[str, Name], "text: field → why it is null"]


class TelemetryRecord(TypedDict):
    summary: Annotated[
        dict[str, Finite | None],
        "as named: column and statistic → value over the measured steps: `_mean`, `_min`, `_max`, "
        "`_total` (a counter's increase); `steal_s`: CPU time that the hypervisor gave to others; "
        "`sampler_missed_ticks_total`: late samples; `others_cpu_s_total`: other programs' CPU "
        "time in all slices but the last",
    ]
    missing: Annotated[dict[str, str], "text: source or column → why it has no values"]
    hz: Annotated[NotRequired[Positive], "1/s: samples requested"]
    samples: Annotated[NotRequired[Count], "count: samples taken"]
    sampler_cpu_s: Annotated[
        NotRequired[Amount], "s: processor time that the sampler used during the cell"
    ]
    devices: Annotated[
        NotRequired[dict[str, str]], "name: prefix of a column → its device: `gpu0` → UUID"
    ]


class Environment(TypedDict):
    boot_id: Annotated[str | None, "uuid: of the running kernel"]
    uptime_s: Annotated[Amount | None, "s: since boot"]
    load_1min: Annotated[Amount | None, "tasks: load average over a minute when the cell began"]
    uname_release: Annotated[str | None, "version: of the kernel"]


class Metrics(TypedDict, total=False):
    throughput_samples_per_s: Annotated[
        Positive,
        "samples/s: sum of samples / sum of wall time; absent where steps overlap",
    ]
    throughput_tokens_per_s: Annotated[
        Positive | None, "tokens/s: sum of tokens / sum of wall time; absent if there are none"
    ]
    rate_median_per_s: Annotated[
        Positive,
        "1/s: median of the rates that the program reported; absent if there are none",
    ]
    step_time_p10_s: Annotated[
        Positive, "s: 10th percentile of wall time, linear between order statistics"
    ]
    step_time_round_adjusted_s: Annotated[
        Positive,
        "s: if cells took turns: a step's time without what each round did to all cells of the "
        "block alike, nor slowdown by other programs (`control/turns.py`)",
    ]
    step_time_median_s: Annotated[Positive, "s: median of wall time"]
    step_time_mean_s: Annotated[Positive, "s: mean of wall time"]
    cpu_s_per_step: Annotated[Amount | None, "s: mean of processor time"]


class CellRecord(TypedDict):
    schema_version: Annotated[Version, "count: as above; an entry without it belongs to no study"]
    id: Annotated[Name, "name: as in `deeptweak.cells`"]
    study: Annotated[Name, "name: as in `deeptweak.cells`"]
    workload: Annotated[Name, "name: as in `deeptweak.cells`"]
    tweakset: Annotated[Name, "name: as in `deeptweak.cells`"]
    block: Annotated[Count, "number: as in `deeptweak.cells`"]
    order: Annotated[Count, "number: as in `deeptweak.cells`"]
    seed: Annotated[
        NotRequired[Count],
        "number: of weights and data; the same for all cells of a block and workload",
    ]
    target: Annotated[Name, "word: where it ran: `local`, `kubernetes`"]
    place: Annotated[
        NotRequired[PlaceRecord], "–: where on a cluster it ran; only with `--target=kubernetes`"
    ]
    node: Annotated[
        NotRequired[Name],
        "name: host name of the machine it ran on; on a cluster the name of the node",
    ]
    outcome: Annotated[Literal["measured"], "word: `measured`"]
    reason: Annotated[None, "–: null"]
    started_utc: Annotated[NotRequired[Utc], "UTC: when the cell began"]
    duration_s: Annotated[NotRequired[Amount], "s: the whole cell: apply, start, steps, restore"]
    tweak: Annotated[
        NotRequired[TweakRecord],
        "–: kernel values that the tweak set writes, and its process settings; no boot tokens and "
        "no limits of `ulimit.conf`",
    ]
    workload_facts: Annotated[
        WorkloadFacts, "–: facts that the workload reports; some workloads add more"
    ]
    limits: Annotated[
        NotRequired[
            dict[
                str, Annotated[list[Annotated[int, Meta(ge=-1)]], Meta(min_length=2, max_length=2)]
            ]
        ],
        "bytes or counts: the workload's resource limits, name → [soft, hard]; -1: unlimited",
    ]
    steps: Annotated[NotRequired[StepsRecord], "–: the columns"]
    segments: Annotated[
        NotRequired[list[SegmentRecord]],
        Meta(min_length=2),
        "–: with `--design=switch`: two per pair, in the order they ran, which do the same work; "
        "`metrics` cover the counted steps of the arm `set`, `telemetry` and `usage` both arms",
    ]
    turns: Annotated[
        NotRequired[list[Turn]],
        Meta(min_length=2),
        "–: with `--design=turns`: one per slice, in the order they ran; slices of a round do the "
        "same work",
    ]
    report: Annotated[
        NotRequired[dict[str, list[dict[str, Any]]]],
        "–: name → rows that the workload reported under that name, in order",
    ]
    monitor: Annotated[
        NotRequired[MonitorRecord],
        "–: in every cell of a run that measures monitors; all null for the stock sets",
    ]
    usage: Annotated[
        NotRequired[Usage], "–: of the workload's whole process, including a monitor inside it"
    ]
    telemetry: Annotated[
        NotRequired[TelemetryRecord], "–: sampled by another process beside the workload"
    ]
    environment: Annotated[NotRequired[Environment], "–: what can differ from cell to cell"]
    metrics: Annotated[Metrics, "–: all are computed from the measured steps"]


class BenchmarkRecord(TypedDict):
    extra_info: dict[str, Any]


class MachineInfo(TypedDict):
    deeptweak: Annotated[MachineRecord, "–: read once, before the first cell"]


class RunFile(TypedDict):
    """A complete run, as `--benchmark-json` writes it.

    Of benchmarks, those with a `schema_version` are cells (`CellRecord`).
    """

    deeptweak: RunRecord
    machine_info: MachineInfo
    benchmarks: list[BenchmarkRecord]


# Types that may have more fields than are explained here, and the JSON schema of these fields.
OPEN: dict[type, Any] = dict.fromkeys(
    (
        BenchmarkRecord,
        Environment,
        WorkloadFacts,
        RunFile,
        MachineRecord,
        MachineInfo,
        PlaceRecord,
        MonitorDetails,
    ),
    True,
)
OPEN[Metrics] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "null"}]}
# What was measured here has all of this; a job of KAITO has what its logs say. Steps that overlap
# have no throughput.
RULES: dict[type, dict[str, Any]] = {
    Metrics: {"minProperties": 1},
    CellRecord: {
        "if": {"properties": {"workload_facts": {"required": ["kaito"]}}},
        "else": {
            "required": [
                "seed",
                "node",
                "started_utc",
                "duration_s",
                "tweak",
                "limits",
                "steps",
                "telemetry",
                "environment",
            ],
            "properties": {
                "steps": {"required": ["cpu_s", "tokens", "loss", "start_monotonic_s"]},
                "telemetry": {"required": ["hz", "samples"]},
                "metrics": {"required": ["step_time_p10_s"]},
            },
        },
        "allOf": [
            {
                "if": {"required": ["steps"], "properties": {"steps": {"required": ["overlap"]}}},
                "then": {
                    "properties": {"metrics": {"not": {"required": ["throughput_samples_per_s"]}}}
                },
                "else": {"properties": {"metrics": {"required": ["throughput_samples_per_s"]}}},
            }
        ],
    },
}
