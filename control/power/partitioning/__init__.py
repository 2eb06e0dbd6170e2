"""The best partition, batches and clocks under a cap: our own search, and the original's greedy one to compare it with."""

from .greedy import greedy
from .search import best
from .terms import Answer, Infeasible

__all__ = ["Answer", "Infeasible", "best", "greedy"]
