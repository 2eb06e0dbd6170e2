"""Saved runs in Python: the answers of the commands as objects and pandas frames."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .house import house_first

if TYPE_CHECKING:
    import pandas as pd

    StrPath = str | os.PathLike[str]

# In a notebook: the colours of the report, and columns of numbers that stand under each other.
STYLE = """
.deeptweak .lead { font-weight: 600; } .deeptweak ul { padding-left: 1.2em; }
.deeptweak ul.findings, .deeptweak ul.lines { list-style: none; padding-left: 0; }
.deeptweak .scroll { overflow-x: auto; }
.deeptweak table { font-size: inherit; border-collapse: collapse; }
.deeptweak td, .deeptweak th { text-align: left; padding: .2em .7em .2em 0;
  vertical-align: baseline; }
.deeptweak td.number, .deeptweak th.number { text-align: right;
  font-variant-numeric: tabular-nums; }
.deeptweak .good { color: #0b7a45; font-weight: 600; }
.deeptweak .bad { color: #c0182b; font-weight: 600; }
.deeptweak .open { color: #9a6200; } .deeptweak .quiet { opacity: .7; }
"""


class Runs:
    """Saved runs, as `load` returns them.

    paths: as they were given, each text
    arm: the runs as the commands read them, with the tweak set that was named (`analysis.arms.Arm`)
    refused: files that were left out, a sentence each
    warnings: these, and what casts doubt on a run, a sentence each with the run's file
    """

    def __init__(self, paths: Iterable[str], arm: Any, refused: Iterable[str]) -> None:
        """Create the object; use `load` instead."""
        with house_first():
            from analysis.checks import warnings_of

        self.paths = tuple(paths)
        self.arm = arm
        self.refused = tuple(refused)
        doubts = [f"{run.origin}: {line}" for run in arm.runs for line in warnings_of(run, ())]
        self.warnings = (*self.refused, *doubts)

    def __len__(self) -> int:
        """Return the number of runs, without copies or earlier parts of one."""
        return len(self.arm.runs)

    def __repr__(self) -> str:
        """Return the runs' names with their numbers of cells."""
        named = [f"{run.run_id}: {len(run.cells)} cells" for run in self.arm.runs]
        return (
            f"Runs({', '.join(named)}{f'; only {self.arm.tweakset}' if self.arm.tweakset else ''})"
        )

    def cells(self) -> pd.DataFrame:
        """Return the cells as a table, with a row per cell in run order.

        Columns:
            run, study, workload, tweakset, node, reason, started_utc: text
            block, order: whole numbers, from 1
            outcome: `measured`, `failed` or `skipped`; `reason` says why it is not measured
            each metric by its name, with its unit (`step_time_median_s`): numbers
            param.NAME: a parameter of the workload
            setting.KEY: the value in force, as the kernel gave it back
            telemetry.NAME: a statistic over the measured steps, its unit in its name
            machine.NAME: what is known of the machine

        What a cell lacks is missing, never zero.

        Example:
            >>> cells = runs.cells()
            >>> cells.pivot_table("step_time_median_s", "block", ["workload", "tweakset"])

        """
        with house_first():
            from analysis.cells import cells

        frame = cells(self.arm.runs)
        tweakset: str | None = self.arm.tweakset
        return (
            frame
            if tweakset is None
            else frame.loc[frame["tweakset"] == tweakset].reset_index(drop=True)
        )

    def whole(self) -> tuple[Any, ...]:
        """Return the runs, which must be whole.

        Raises: Refused, where a tweak set was named: what is asked for is said of whole runs.
        """
        if self.arm.tweakset is None:
            return tuple(self.arm.runs)
        with house_first():
            from control.errors import Refused

        raise Refused(
            f"{self.arm.label} is a single tweak set of a run; load the run without "
            f"`:{self.arm.tweakset}`."
        )


class Judgement:
    """An answer about runs: printed, the command's text; in a notebook, its page.

    title: the answer in a sentence
    warnings: what casts doubt on it, a sentence each
    """

    def __init__(self, answer: Any, refused: Iterable[str] = ()) -> None:
        """Create the object; use `compare` or `evidence` instead."""
        self._answer = answer
        self.title: str = answer.title
        self.warnings: tuple[str, ...] = (*refused, *answer.data.get("warnings", answer.warnings))

    def table(self) -> pd.DataFrame:
        """Return the contrasts as a table, with a row each and the columns of `--csv`.

        Of `compare`: study, workload, run, tweakset (or level of the arm), baseline, verdict,
        metric, baseline_value in the metric's unit, gain with gain_low and gain_high (95 %
        interval; 0.05 is 5 % better, whichever way the metric runs), the same of a second metric,
        p_adjusted, mde (smallest gain that would have been called), pairs of blocks, blocks
        planned, reason.

        Of `evidence`: workload, tweakset, runs, machines, gain, low, high, next_low, next_high
        (where the next run will lie), tau_log, p_adjusted, verdict.

        Example:
            >>> table = deeptweak.compare(runs).table()
            >>> table.loc[table["verdict"] == "improved", ["workload", "tweakset", "gain"]]

        """
        import pandas as pd

        with house_first():
            from analysis.render.csv import flat

        names, rows = flat(self._answer.rows.columns, self._answer.rows.rows)
        table = pd.DataFrame(rows, columns=names)
        missing = table.columns[table.isna().all()]
        return table.astype(dict.fromkeys(missing, float))

    def verdicts(self) -> pd.Series[str]:
        """Return the verdict of each contrast, by workload and tweak set (or level of the arm).

        Example:
            >>> assert not (deeptweak.compare(runs).verdicts() == "regressed").any()

        """
        return self.table().set_index(["workload", "tweakset"])["verdict"]

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `--json`: numbers, text, lists, dicts (docs/reference/json.md)."""
        import json

        with house_first():
            from analysis.render.data import render

        written: dict[str, Any] = json.loads(render(self._answer))
        return written

    def __str__(self) -> str:
        """Return the command's text, 100 columns wide."""
        with house_first():
            from analysis.render.text import render

        return render(self._answer).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        with house_first():
            from analysis.render.html import render

        return f'<style>{STYLE}</style><div class="deeptweak">{render(self._answer, 4)}</div>'


def load(path: StrPath, *paths: StrPath) -> Runs:
    """Read saved runs: files, folders, or globs such as `nightly/*.json`.

    One path may name a tweak set, `run.json:thp-always`: these cells alone, as one side of a
    comparison. Of the files of one run, the one with most cells is read. What casts doubt on a run,
    such as that it was interrupted, and each file that is left out, is a warning.

    Raises: Refused, where nothing can be read, a run lacks the tweak set, or one run is a copy of
        another under a new name. ImportError, where other modules have the names of this program's
        packages.

    Example:
        >>> runs = deeptweak.load(".benchmarks")
        >>> len(runs)
        3

    """
    with house_first():
        from analysis import arms
        from analysis.load import load_some

    names = [os.fspath(name) for name in (path, *paths)]
    refused: list[str] = []
    if not paths:
        runs = Runs(names, arms.read_arm(names[0], refused), refused)
    else:
        saved = arms.distinct(load_some(names, refused), refused)
        runs = Runs(names, arms.Arm(", ".join(names), saved), refused)
    arms.no_copies(runs.arm.runs)
    for line in runs.warnings:
        warnings.warn(line, stacklevel=2)
    return runs


def compare(
    runs: Runs,
    *candidates: Runs,
    arm: str = "tweakset",
    baseline: str | None = None,
    metric: str | None = None,
    tweaks: Iterable[str] = (),
    workloads: Iterable[str] = (),
    relative_to: str | None = None,
    adjust: str = "holm",
) -> Judgement:
    """Compare the arms inside one run, or runs with others: `deeptweak compare`.

    runs: one run whose tweak sets, or levels of `arm`, are compared; or the baseline's runs
    candidates: runs that are compared with these, tweak set by tweak set, or the tweak set that was
        named
    arm: the column that is compared: `tweakset`, `workload`, `node`, `monitor`, or a parameter such
        as `policy`
    baseline: the tweak set to compare with (default: as declared before the run), or the level of
        `arm`
    metric: of another arm than tweak sets, the name of the metric that decides (default: as
        declared)
    tweaks, workloads: only these
    relative_to: each cell is divided by this tweak set's cell of the same run and block
    adjust: `holm` for contrasts declared before the run, `bh` for a screen that others will follow
        up

    Doubts that `load` has not told are warnings, and all are in `Judgement.warnings`.

    Raises: Refused, with the command's sentence.

    Example:
        >>> deeptweak.compare(runs, arm="policy", baseline="fifo", metric="mean_wait_s").table()
        >>> deeptweak.compare(deeptweak.load("before.json"), deeptweak.load("after.json"))
        >>> deeptweak.compare(deeptweak.load("run.json:stock"),
        deeptweak.load("run.json:thp-always"))

    """
    _must_be_runs(runs, *candidates)
    with house_first():
        from analysis.commands.compare import answer
        from analysis.compare import CompareOptions

    others = [candidate.arm for candidate in candidates]
    options = CompareOptions(adjust, (), relative_to, _names(tweaks), _names(workloads))
    return _judged(
        answer(runs.arm, others, arm, baseline, metric, options, every=False), (runs, *candidates)
    )


def evidence(
    runs: Runs, *, tweaks: Iterable[str] = (), workloads: Iterable[str] = (), by: str = ""
) -> Judgement:
    """Pool runs from several days or machines, each as one unit: `deeptweak evidence`.

    tweaks, workloads: only these are shown; p is adjusted for all effects of the runs
    by: runs that agree in it belong together: `day`, `machine`, `kernel`, `cpu`, `torch`, `place`
        or `device`

    Raises: Refused, with the command's sentence.

    Example:
        >>> deeptweak.evidence(deeptweak.load("nightly/"), by="machine").verdicts()

    """
    _must_be_runs(runs)
    with house_first():
        from analysis.commands.evidence import gathered_of
        from analysis.studies.evidence.answer import answer

    gathered = gathered_of(runs.whole(), _names(tweaks), _names(workloads), by)
    return _judged(answer(gathered), (runs,))


def report(runs: Runs, path: StrPath = "report.html") -> Path:
    """Write one HTML page with answers, pictures and provenance: `deeptweak report`.

    It needs no network and no script. Of one folder with several runs it is an index, with a report
    of each run beside it. An earlier report of that name is replaced, nothing else ever is.

    Returns: where the page is. Raises: Refused, where it cannot be written.

    Example:
        >>> deeptweak.report(runs, "report.html")
        PosixPath('report.html')

    """
    _must_be_runs(runs)
    with house_first():
        from analysis.commands.report import write

    output = Path(path)
    write(runs.whole(), runs.paths, output, list(runs.refused))
    return output


def _judged(answer: Any, given: Sequence[Runs]) -> Judgement:
    """Return the judgement, and warn of doubts that `load` did not report."""
    told = [line for runs in given for line in runs.warnings]
    judgement = Judgement(answer, [line for runs in given for line in runs.refused])
    for line in judgement.warnings:
        if not any(known == line or known.endswith(f": {line}") for known in told):
            warnings.warn(line, stacklevel=3)
    return judgement


def _must_be_runs(*given: object) -> None:
    for one in given:
        if not isinstance(one, Runs):
            raise TypeError(
                f"{type(one).__name__} was given, but runs from deeptweak.load are needed."
            )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
