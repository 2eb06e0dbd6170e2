"""What can be wrong with an operator, by name: `--fault NAME`, or the argument of the fixtures."""

from __future__ import annotations

SKYHOOK = {
    "absent": "not there at all: nothing is ever written",
    "dies-midway": "the operator's process ends while an apply pod runs; the pod goes on and changes the host",
    "erroring": "every stage's container exits 1, and the status says so for 30-50 ms only, between in_progress and in_progress",
    "image-missing": "the package's image cannot be pulled: in_progress for ever, only pod and events say why",
    "left-over": "the node still has the marks of an earlier resource of the same name: complete at once, nothing applied",
    "lies": "all pods run to their end and it says complete, but nothing on the host was changed",
    "stale-complete": "after a change the old `complete` stands for a second more",
    "stuck": "in_progress for ever, and no pod",
}
KAITO = {
    "absent": "not there at all: nothing is ever written",
    "flapping": "a tuning Workspace's state jumps between Running and Pending while its Job runs",
    "first-pod-fails": "the first training pod exits 1, the Job's retry succeeds; the Workspace says Failed for good",
    "image-missing": "the training image cannot be pulled: JobStarted is true all the same",
    "stuck": "Pending for ever, no StatefulSet and no Job",
}
OF = {"skyhook": SKYHOOK, "kaito": KAITO}
