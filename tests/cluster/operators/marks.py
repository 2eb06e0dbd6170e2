"""The names that Skyhook's operator gives to its marks, pods and config maps, as recorded."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

GROUP = "skyhook.nvidia.com"
NAMESPACE = "skyhook"  # where the operator's pods and config maps live
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Marks:
    """The operator's node marks for the resource `hook`: annotations, a label, two conditions."""

    hook: str
    group: str = GROUP

    @property
    def state(self) -> str:
        """Annotation: JSON of each package's stage and state, from which its name resumes."""
        return f"{self.group}/nodeState_{self.hook}"

    @property
    def status(self) -> str:
        """Annotation and label: the resource's status on this node."""
        return f"{self.group}/status_{self.hook}"

    @property
    def version(self) -> str:
        return f"{self.group}/version_{self.hook}"

    @property
    def cordon(self) -> str:
        """Annotation: the node was cordoned for this resource."""
        return f"{self.group}/cordon_{self.hook}"

    def conditions(self, *, complete: bool, erroring: bool) -> list[Object]:
        of = {
            "NotReady": (not complete, "Complete" if complete else "Incomplete"),
            "Erroring": (erroring, "Erroring" if erroring else "NotErroring"),
        }
        return [
            {
                "type": f"{self.group}/{self.hook}/{what}",
                "status": str(holds),
                "reason": reason,
                "message": f"{what} of {self.hook}",
            }
            for what, (holds, reason) in of.items()
        ]

    def state_of(self, node: Object) -> dict[str, Object]:
        """Map "tuning|1.1.4" to {"name", "version", "image", "stage", "state"[, "restarts"]}."""
        return dict(json.loads(notes_of(node).get(self.state) or "{}"))

    def status_of(self, node: Object) -> str | None:
        """The status annotation; None until the operator has seen this node and resource."""
        return notes_of(node).get(self.status)


def entry(package: Object, stage: str, state: str) -> Object:
    """A package's entry in a node's state."""
    known = {name: package[name] for name in ("name", "version", "image")}
    return {**known, "stage": stage, "state": state}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def notes_of(thing: Object) -> dict[str, str]:
    return dict(thing["metadata"].get("annotations") or {})


def labels_of(thing: Object) -> dict[str, str]:
    return dict(thing["metadata"].get("labels") or {})


def name_of(thing: Object) -> str:
    return str(thing["metadata"]["name"])


def compact(value: object) -> str:
    """Write JSON as the operator does: no blanks, packages by name, their fields in order."""
    return json.dumps(value, separators=(",", ":"))


def safe_name(*parts: str) -> str:
    """A reproducible name of at most 63 characters that ends with a hash of the whole."""
    whole = "-".join(parts).replace(".", "-").lower()
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{whole[: 63 - 9].rstrip('-')}-{digest}"


def matches(selector: Object, of: dict[str, str]) -> bool:
    if any(of.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for wanted in selector.get("matchExpressions") or []:
        key, values = wanted["key"], wanted.get("values") or []
        held = {
            "In": of.get(key) in values,
            "NotIn": of.get(key) not in values,
            "Exists": key in of,
            "DoesNotExist": key not in of,
        }
        if not held[wanted["operator"]]:
            return False
    return True
