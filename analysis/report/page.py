"""The report: runs in, one self-contained HTML page out, with every picture that can be drawn and the reason why others cannot."""

from __future__ import annotations

import base64
import gc
import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from analysis import machine, studies
from analysis.answer import Answer, Line, Section
from analysis.arms import Arm
from analysis.compare import compare_arms
from analysis.plots import fitting
from analysis.plots.scene import NothingToDraw, Scene, scene_of
from analysis.plots.style import Picture as Module
from analysis.plots.style import svg, written
from analysis.render import html as as_html
from analysis.summary import answer, rows_of
from analysis.terms import Comparison, Refused, Run, Verdict
from analysis.wording import plan_command, spoken, unsigned
from control.called import JUDGE
from control.names import undigested

from .answers import VERDICTS, WorkloadAnswer, counted, joined
from .saving import GENERATOR
from .verdicts import VerdictTable, tables
from .view import View, ViewText, view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TEMPLATES = Path(__file__).with_name("templates")
SECTIONS = (("keys", "Which key"), ("verdicts", "Verdicts"), ("pictures", "Pictures"), ("appendix", "Appendix"))
APPENDIX = (
    ("tweaks", "Kernel settings"),
    ("order", "Cells and warnings"),
    ("machine", "Machine"),
    ("methods", "Methods"),
    ("data", "Data"),
    ("again", "To do it again"),
)


@dataclass(frozen=True, slots=True)
class Between:
    tables: Sequence[VerdictTable]
    comparisons: Sequence[Comparison]
    verdicts: Mapping[Verdict, int]
    refused: str | None


@dataclass(frozen=True, slots=True)
class Over:
    """What several runs say together, as parts of a page."""

    title: str
    findings: Markup
    picture: Markup
    tables: Markup


@dataclass(frozen=True, slots=True)
class Page:
    """A report: its HTML, what it says of each run, between runs, and its pictures (name → None where drawn, else why not)."""

    html: str
    views: tuple[View, ...]
    between: Between | None
    pictures: dict[str, str | None]


def page_of(runs: Sequence[Run], command: str, refused: Sequence[str] = ()) -> Page:
    """Write the report on some runs, each by itself and, where there are several, against the first.

    `command` is what makes this page again; `refused` are files that were named and could not be read.
    """
    gc.disable()  # nothing is dropped before the page is written: to look for it is an eighth of the time
    try:
        return _page_of(runs, command, refused)
    finally:
        gc.enable()


def _page_of(runs: Sequence[Run], command: str, refused: Sequence[str]) -> Page:
    scene = scene_of(runs)
    drawn = pictures_of(scene)
    views = tuple(
        view_of(
            run,
            [comparison for comparison in scene.comparisons if comparison.candidate_run == run.origin],
            scene.effects.get(run.origin, ()),
            place=place,
            told=_told(run),
        )
        for place, run in enumerate(runs, 1)
    )
    over = _over(runs, scene.comparisons)
    told = list(dict.fromkeys((told.id, told.title) for view in views for told in view.told))
    between = _between(runs) if len(runs) > 1 else None
    comparisons = (*scene.comparisons, *(between.comparisons if between else ()))
    arms = answer(rows_of(runs, scene.comparisons))
    lead = next((picture for picture in drawn if picture.leads), None)
    leading = next((picture for picture in drawn if picture.name == "forest" and picture.markup), None)
    absent = set() if any(view.keys for view in views) else {"keys"}
    answers = [one for view in views for one in view.answers]
    judged = "open" if between or not told or answers else ""
    if judged and not between and (leading == lead or (told and not any(one.differs for one in answers))):
        judged = "folded"  # what leads the page says it, the picture of all contrasts or the study's own answer
    absent |= set() if judged else {"verdicts"}
    html = render(
        "page.html",
        title=f"DeepTweak report: {', '.join(view.name for view in views)}",
        question=question_of(runs),
        dates=", ".join(dict.fromkeys(run.started_utc[:10] for run in runs if run.started_utc)) or "date unknown",
        next=shlex.join(_next(runs, comparisons)),
        sections=[
            *([("over", over.title, False)] if over else []),
            *((*entry, False) for entry in told),
            *([(f"picture-{lead.name}", lead.title if lead is leading else "In a picture", False)] if lead else []),
            *((*entry, False) for entry in SECTIONS if entry[0] not in absent),
            *((*entry, True) for entry in APPENDIX),
        ],
        over=over,
        told=told,
        judged=judged,
        views=views,
        between=between,
        refused=refused,
        pictures=drawn,
        lead=lead,
        leading=f"picture-{leading.name}" if leading else "pictures",
        counts=_counts(answers),
        changes=machine.differences(runs),
        margins=", ".join(dict.fromkeys(unsigned(comparison.margin) for comparison in comparisons)),
        summary=as_html.render(replace(arms, findings=[], legend=()), 3),
        origins=[shlex.quote(run.origin) for run in runs],
        judge=JUDGE,
        command=command,
    )
    return Page(html, views, between, {picture.name: picture.missing for picture in drawn})


def _next(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """The command that says how much more would have to be measured, where something is undecided."""
    if len(runs) > 1 or not any(comparison.verdict == "inconclusive" and comparison.mde for comparison in comparisons):
        return ()
    return plan_command(comparisons[0].margin, runs[0].origin)


def _counts(answers: Sequence[WorkloadAnswer]) -> str:
    words = [word for one in answers for word, count in one.verdicts.items() for _ in range(count)]
    return ", ".join(f"{words.count(word)} {spoken(word)}" for word in VERDICTS if word in words)


def _over(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> Over | None:
    """What several runs say together; the page leads with it."""
    compared = defaultdict[str, list[Comparison]](list)
    for comparison in comparisons:
        compared[comparison.candidate_run].append(comparison)
    said_and_drawn = (hook(runs, lambda run: compared[run.origin]) for hook in studies.hooks("over_runs"))
    for said, draw in filter(None, said_and_drawn):
        first, *others = said.sections
        head = as_html.render(replace(said, title="", sections=(), legend=(), next=()), 3)
        tables, more = (as_html.render(Answer("", sections=part), 3) for part in ([first], others))
        description = " ".join(line.text for line in said.findings)
        picture = _embedded(draw(), "over", said.title, description)
        return Over(said.title, head, picture, tables + more + as_html.render(Answer("", legend=said.legend)))
    return None


def _told(run: Run) -> list[ViewText]:
    """What the run's own studies answer; one that has a part of its own on the page is left out."""
    result = []
    for study in studies.of(run):
        name = study.__name__.rpartition(".")[2]
        if name == "keys":
            continue
        try:
            answer = study.answer(run)
            # An answer without findings says them in its first sections; one without a title in its first finding.
            words = () if answer.findings else tuple(takewhile(_is_text, answer.sections))
            title, said = answer.title, answer.findings
            if said and not title:
                title, said = said[0].text, said[1:]
            findings = as_html.render(replace(answer, findings=said, sections=words, legend=()), 4)
            first, *others = answer.sections[len(words) :] or [Section()]
            tables, more = (as_html.render(Answer("", sections=part), 4) for part in ([first], others))
            more += as_html.render(Answer("", legend=answer.legend))
            result.append(ViewText(name, study.TITLE, title, findings, tables, more))
        except Refused as reason:
            result.append(ViewText(name, study.TITLE, str(reason)))
    return result


def _is_text(section: Section) -> bool:
    return all(isinstance(part, Line) for part in section.parts)


def render(template: str, **values: object) -> str:
    """Fill in a page: it has its one style, and no script but ours."""
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    frame = {
        "generator": GENERATOR,
        "style": Markup((TEMPLATES / "style.css").read_text(encoding="utf-8")),  # noqa: S704  # a file of ours
        "script": Markup(script),  # noqa: S704  # a file of ours
        "script_hash": f"sha256-{digest}",
    }
    return _environment().get_template(template).render(**frame, **values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,  # every value of a run file is somebody else's text
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["slug"] = _slug
    environment.filters["spoken"] = spoken
    environment.filters["unbroken"] = lambda text: text.replace(" %", "\u00a0%")
    return environment


def _visible(value: object) -> object:
    """Show control and direction characters of a foreign text by their escapes: they could make a reader see other words."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join(text if text.isprintable() or text in "\n\u00a0" else text.encode("unicode_escape").decode("ascii") for text in value)


def _slug(name: str) -> str:
    """Make an id of any name: what a link cannot hold as it is stands there by its number."""
    return re.sub(r"[^\w.=+-]+", lambda found: "".join("-" if text.isspace() else f"~{ord(text):x}" for text in found[0]), name)


def question_of(runs: Sequence[Run]) -> str:
    questions = dict.fromkeys(study.question for run in runs for study in run.studies.values() if study.question)
    return " ".join(questions) or "What do these measurements say?"


def _between(runs: Sequence[Run]) -> Between:
    first, *others = (Arm(run.origin, (run,)) for run in runs)
    try:
        result = compare_arms(first, others)
    except Refused as reason:
        return Between((), (), {}, str(reason))
    return Between(tables(result), result, counted(result), None)


# From here on a drawing goes in as pixels, where those are fewer bytes: a dozen pictures have to fit into 2 MB.
HEAVY_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: `markup` for the page, or `missing`, the reason why there is none.

    `leads` if it stands at the top of the page.
    """

    name: str
    title: str
    answers: str
    leads: bool = False
    markup: Markup | None = None
    missing: str | None = None


def pictures_of(scene: Scene) -> list[Picture]:
    """Draw everything that can be drawn of a scene, in the order a reader wants it; what answers first leads."""
    result: list[Picture] = []
    for name, module in fitting(scene.runs).items():
        try:
            figure = module.draw(scene)
            title = str(figure.get_label())
            description = f"{module.ANSWERS} {_effects_text(scene, module)}{_shown(scene)}"
            leads = module.leads and not any(picture.leads for picture in result)
            markup = _embedded(figure, f"p{len(result)}", title, description)
            result.append(Picture(name, title, module.ANSWERS, leads, markup))
        except NothingToDraw as reason:
            result.append(Picture(name, module.TITLE, module.ANSWERS, missing=str(reason).rstrip(".")))
    return result


def _effects_text(scene: Scene, module: Module) -> str:
    if not module.DESIGNS:
        return ""
    lines = [f"{effects.observed.workload}: {effects.sentence} " for run in scene.runs for effects in scene.effects.get(run.origin, ())]
    return "".join(lines)


def _embedded(figure: Figure, name: str, title: str, description: str) -> Markup:
    drawing = svg(figure, name, title, description)
    pixels = base64.b64encode(written(figure, "png")).decode() if len(drawing) > HEAVY_BYTES else ""
    if not pixels or len(drawing) <= len(pixels):
        return Markup(drawing)  # noqa: S704  # what draws has escaped every text in it
    return Markup('<img alt="{}. {}" src="data:image/png;base64,{}">').format(title, description, Markup(pixels))  # noqa: S704  # base64 has no markup


def _shown(scene: Scene) -> str:
    """Say what is in a picture for those who cannot see it, and where its numbers are."""
    workloads = list(dict.fromkeys(undigested(cell.workload) for run in scene.runs for cell in run.cells))
    tweaksets = list(dict.fromkeys(cell.tweakset for run in scene.runs for cell in run.cells))
    where = "The tables of this page have the numbers."
    return f"Workloads: {joined(workloads)}. Tweak sets: {joined(tweaksets)}. {where}" if workloads else where
