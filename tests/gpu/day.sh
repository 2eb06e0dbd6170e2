#!/usr/bin/env bash
# All that a GPU machine is wanted for, in ten minutes, without a network:  tests/gpu/day.sh DIR [PACKED.tar.gz]
# It needs python3 with torch, transformers, peft, cuda-bindings and NVRTC; wheels in .gpu-kit/ (`make gpu-kit`) are installed aside.
# A part whose result is in DIR is not run again, and one that was interrupted goes on. SMALL=1 tries every part in two
# minutes; PARTS="grid cap" runs these alone.
# Settings of the host are tried and put back. Of the GPU nothing is changed: no clock, limit, MIG or MPS.
set -u
dir=$(mkdir -p "$1" && cd "$1" && pwd) packed=${2:-} small=${SMALL:-}
cd "$(dirname "$0")/../.." || exit
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
if ls .gpu-kit/*.whl >/dev/null 2>&1; then
    [ -d "$dir/site" ] || python3 -m pip install -q --no-index --no-deps --no-compile --target "$dir/site" .gpu-kit/*.whl
    export PYTHONPATH=$dir/site
fi

part() {  # NAME LIMIT_S COMMAND…: run it once, with its words in NAME.log
    local name=$1 limit_s=$2 began_s=$SECONDS code
    shift 2
    [[ " ${PARTS:-$name} " == *" $name "* ]] || return 0
    [ -e "$dir/$name.done" ] && { echo "$name: done before"; return 0; }
    grep -qs 'To continue, run the same command with --resume' "$dir/$name.log" && set -- "$@" --resume
    timeout --signal=INT --kill-after=20 "$limit_s" "$@" >"$dir/$name.log" 2>&1
    code=$?
    [ $code = 0 ] && touch "$dir/$name.done"
    echo "$name: exit code $code after $((SECONDS - began_s)) s, the last lines:"
    tail -n 4 "$dir/$name.log" | cut -c1-300 | sed 's/^/    /'
    [ -z "$packed" ] || tar -C "$dir" --exclude=./site -czf "$packed" .
}

bench() { echo python3 -m pytest "benchmarks/bench_$1.py" -p no:cacheprovider "--benchmark-storage=file://$dir/runs" "--benchmark-save=$1"; }

facts() {
    uname -a
    nvidia-smi -q
    python3 -m fixtures doctor
    python3 -m fixtures.studies.power
    nproc; grep -m1 'model name' /proc/cpuinfo; free -m; cat /sys/kernel/mm/transparent_hugepage/{enabled,defrag}; grep . /proc/pressure/*
}

# The model, and what is profiled of it: processes × batch, some of them paced, and the idle GPU.
profile=$(for point in 100:batches={16,64,128} 2x100:batches={16,128} 4x100:batches=64 100:batches=64:throttle={0.2,0.5} 4x100:batches=64:throttle={0.2,0.5,0.8}; do printf 'power_profile:backend=gpu-readonly:shares=%s,' "$point"; done)
profile+=power_profile:backend=gpu-readonly:model=static
grid=$(for size in 1:32 1:1024 66:256 131:1024 132:32 133:1024 264:1024 8192:1024; do
    printf 'gpu_grid:blocks=%s:threads=%s,' "${size%:*}" "${size#*:}"; done)
training=lora_finetune,cnn_train,resnet_train tweaks=thp-always,scheduler-throughput,memory-reclaim
budget=190s blocks=
if [ -n "$small" ]; then
    grid=gpu_grid:blocks=132:threads=1024 training=lora_finetune,resnet_train tweaks=thp-never budget=15s blocks=--blocks=1
    profile=power_profile:backend=gpu-readonly:shares=2x100:batches=64,power_profile:backend=gpu-readonly:shares=100:batches=64:throttle=0.2,power_profile:backend=gpu-readonly:model=static
fi

capped() {
    local run
    run=$(ls "$dir"/runs/*/*_power_profile.json | tail -n 1)
    python3 -m analysis power traces "$run" -o "$dir/traces" && python3 -m analysis power quality "$dir"/traces/*/*.csv
    python3 -m analysis power fit "$dir"/traces/gpu-readonly --gpu "$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)" -o "$dir/parameters"
    # The cap: half way from the idle GPU to the most that was drawn.
    python3 - "$dir" <<'PYTHON' || return
import csv, glob, sys
watts = [float(row["power_avg"]) for name in glob.glob(sys.argv[1] + "/traces/*/*.csv") for row in csv.DictReader(open(name)) if row["power_avg"]]
cap_w = round((min(watts) + max(watts)) / 2)
open(sys.argv[1] + "/tasks.yaml", "w").write(
    f"tasks:\n  - {{id: 201, gpu: any, model: mobilenet_v2, dataset: random, cap_w: {cap_w}, iterations: 8}}\n")
PYTHON
    cat "$dir/tasks.yaml"
    $(bench power_cap) --power-backend=gpu-readonly "--power-tasks=$dir/tasks.yaml" --task-id=201 --algorithms=morak,steady \
        "--power-parameters=$dir/parameters" --blocks=1 --vary warm_s=0.5 --vary measure_s=1.5
}
export -f facts capped bench
export dir

part facts 40 bash -c facts
part answers 20 python3 -m tests.gpu.answers "$dir/answers.json"
# shellcheck disable=SC2046,SC2086
part training 215 $(bench kernel_tweaks) "--workloads=$training" "--tweaks=$tweaks" "--budget=$budget" $blocks
part profile 200 $(bench power_profile) "--workloads=$profile" --vary step_s=0.3
part grid 130 $(bench gpu_metrics) "--workloads=${grid%,}" --blocks=1 --steps=4
[ -n "$small" ] || part cap 120 bash -c capped
part beside_smi 60 python3 -m tests.gpu.beside_smi "$dir/beside_smi.json"
part kernel 60 python3 -m pytest -q -p no:cacheprovider tests/gpu/test_on_gpu.py ${small:+-k 4096}
python3 -m fixtures restore | tail -n 3
