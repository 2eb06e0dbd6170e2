"""The pods of a package: as recorded for the API, with real effects on the node.

NVIDIA's packages `tuning` and `shellscript` and the agent that runs them are images that cannot be
had here; a busybox image with a few lines of shell does what they were seen to do. Any other image
name is taken as it is, so that the kubelet really fails to pull it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .marks import GROUP, NAMESPACE, compact, safe_name

Object = dict[str, Any]
KNOWN = ("tuning", "shellscript")
AGENT = "stand-in for the agent of NVIDIA Skyhook"

# $0 is this line, $1 the mode (apply, apply-check, …), $2 the host's root, $3 the package's own
# folder on the host. Logs stay on the node, the last five of each step, as the agent keeps them.
BEGIN = r"""
mode=$1; root=$2; dir=$3
log=$root$SKYHOOK_LOG_DIR/$PACKAGE/$VERSION; mkdir -p "$log" "$root$dir/configmaps"
ls -t "$log" | grep "^$mode-" | tail -n +5 | while read -r old; do rm -f "$log/$old"; done
for file in /configmaps/*; do [ -f "$file" ] && cp "$file" "$root$dir/configmaps/"; done
echo "mode: $mode"; echo "copy_dir: $dir"
"""
# The scripts run in the host's own root, by the host's own shell; a missing one is said, and is no
# error (uninstall never has one).
SHELLSCRIPT = (
    BEGIN
    + r"""
script=$dir/configmaps/$(echo "$mode" | tr - _).sh
case $mode in *-check) quiet=yes;; *) quiet=;; esac
if [ ! -f "$root$script" ]; then
    [ "$quiet" ] || echo "Could not find file $script was this in the configmap?"
    exit 0
fi
chroot "$root" /bin/sh "$script" > "$log/$mode-$$.log" 2>&1; code=$?
cat "$log/$mode-$$.log"
exit $code
"""
)
# `apply` does nothing, `config` writes the file in /etc/sysctl.d and the live values.
TUNING = (
    BEGIN
    + r"""
set -e
conf=$root/etc/sysctl.d/999-$PACKAGE-tuning.conf
given=$root$dir/configmaps
case $mode in
config)
    cp "$given/sysctl.conf" "$conf"; sysctl -p "$conf" ;;
config-check)
    [ ! -f "$given/sysctl.conf" ] || grep -v '^[[:space:]]*[#;]' "$given/sysctl.conf" |
    while IFS='=' read -r key value; do
        [ -n "$key" ] || continue
        found=$(sysctl -n "$(echo $key)" | tr '\t' ' '); wanted=$(echo $value | tr '\t' ' ')
        [ "$found" = "$wanted" ] || { echo "$key: expected $wanted, got $found" >&2; exit 1; }
    done ;;
esac
"""
)
INTERRUPT = 'echo "the stand-in reboots no machine" >&2; exit 1'
# Stage and check in one container. Not joined by `&&`: that would switch the stage's `set -e` off.
BRIEFLY = """step() (
{script}
)
step "$1" "$2" "$3"; code=$?; [ $code = 0 ] || exit $code
step "$1-check" "$2" "$3"
"""
PAUSE = "trap 'kill $!; exit 0' TERM; sleep 86400 & wait"


@dataclass(frozen=True, slots=True)
class Look:
    """How to make pods: image and fault."""

    image: str
    fault: str | None = None


def pod_name(hook: str, package: Object, stage: str, node: str) -> str:
    """The same name for the same stage, package and resource each time."""
    if stage == "interrupt":
        return safe_name(hook, "interrupt", package["interrupt"]["type"], node)
    return safe_name(hook, package["name"], package["version"], stage, node)


def kind_of(package: Object) -> str:
    """Which of NVIDIA's packages it is, by the last part of its image's name."""
    return str(package["image"]).rsplit("/", 1)[-1].split(":")[0]


def copy_dir(hook: Object, package: Object) -> str:
    """The package's host folder: its uid and generation give a changed spec another pod."""
    meta = hook["metadata"]
    return (
        f"/var/lib/skyhook/{meta['name']}/{package['name']}-{package['version']}"
        f"-{meta['uid']}-{meta['generation']}"
    )


def config_map_name(hook: str, package: Object) -> str:
    return f"{hook}-{package['name']}-{package['version']}"


def owner(hook: Object) -> list[Object]:
    """Pods and config maps belong to their resource: they are collected when it is gone."""
    meta = hook["metadata"]
    about = {
        "apiVersion": hook["apiVersion"],
        "kind": hook["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
    return [{**about, "controller": True, "blockOwnerDeletion": True}]


def pod(hook: Object, package: Object, stage: str, node: str, look: Look) -> Object:
    """One stage of one package on one node."""
    name, version = hook["metadata"]["name"], package["version"]
    about = {
        "name": package["name"],
        "version": version,
        "skyhook": name,
        "stage": stage,
        "image": package["image"],
    }
    volumes: list[Object] = [{"name": "root", "hostPath": {"path": "/"}}]
    mounts: list[Object] = [
        {"name": "root", "mountPath": "/root", "mountPropagation": "HostToContainer"}
    ]
    env: list[Object] = []
    if stage != "interrupt":
        if package.get("configMap"):
            volumes.append(
                {"name": "configmaps", "configMap": {"name": config_map_name(name, package)}}
            )
            mounts.append({"name": "configmaps", "mountPath": "/configmaps"})
        env = list(package.get("env") or [])
    shared = {
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"privileged": True},
        "volumeMounts": mounts,
        "env": [
            *env,
            {"name": "SKYHOOK_DIR", "value": copy_dir(hook, package)},
            {"name": "SKYHOOK_LOG_DIR", "value": f"/var/log/skyhook/{name}"},
            {"name": "PACKAGE", "value": package["name"]},
            {"name": "VERSION", "value": version},
        ],
    }
    labels = {f"{GROUP}/name": name, f"{GROUP}/package": f"{package['name']}-{version}"}
    if stage == "interrupt":
        labels[f"{GROUP}/interrupt"] = "True"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(name, package, stage, node),
            "namespace": NAMESPACE,
            "labels": labels,
            "annotations": {f"{GROUP}/package": compact(about)},
            "ownerReferences": owner(hook),
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "OnFailure",
            "hostNetwork": True,
            "hostPID": True,
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"operator": "Exists"}],
            "volumes": volumes,
            "initContainers": [{**shared, **c} for c in _steps(hook, package, stage, look)],
            "containers": [
                {
                    "name": "pause",
                    "image": look.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/bin/sh", "-c", PAUSE],
                },
            ],
        },
    }


def _steps(hook: Object, package: Object, stage: str, look: Look) -> list[Object]:
    kind = kind_of(package)
    script = TUNING if kind == "tuning" else SHELLSCRIPT
    image = look.image if kind in KNOWN else f"{package['image']}:{package['version']}"
    if look.fault == "image-missing":
        image = f"registry.invalid/{kind}:{package['version']}"
    if look.fault == "erroring":
        script = BEGIN + 'case $mode in *-check) ;; *) echo "no such thing" >&2; exit 1 ;; esac'
    if look.fault == "lies":
        script = BEGIN
    place = copy_dir(hook, package)
    if stage == "interrupt":
        return [_step("interrupt", look.image, INTERRUPT)]
    if image != look.image:
        return [{**_step(f"{package['name']}-init", image, "true"), "image": image}]
    # One container for stage and check: the kubelet takes about a second over each.
    whole = BRIEFLY.format(script=script)
    return [_step(f"{package['name']}-{stage}", image, whole, stage, "/root", place)]


def _step(name: str, image: str, script: str, *args: str) -> Object:
    return {
        "name": name,
        "image": image,
        "command": ["/bin/sh", "-c", script, AGENT],
        "args": list(args),
    }
