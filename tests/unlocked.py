"""A program that may lock no memory, whoever runs it."""

from __future__ import annotations

import ctypes
import resource


def without_locked_memory() -> None:
    """For `preexec_fn`: root's capability CAP_IPC_LOCK is gone then, and the limit is 0."""
    pr_capbset_drop, cap_ipc_lock = 24, 14  # linux/prctl.h, linux/capability.h
    ctypes.CDLL(None).prctl(pr_capbset_drop, cap_ipc_lock, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
