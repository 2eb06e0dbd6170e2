"""The report: one self-contained page with answers, pictures, and the provenance of runs."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from analysis import studies
from analysis.again import recipe
from analysis.answer import Answer
from analysis.arms import Arm
from analysis.compare import compare_arms
from analysis.compare_answer import answer_of
from analysis.labels import machine_of
from analysis.plots import fitting
from analysis.plots.scene import NothingToDraw, Scene, scene_of
from analysis.plots.style import svg
from analysis.render import html
from analysis.render.html import clean
from analysis.summary import answer, rows_of
from analysis.terms import AGAIN, Comparison, Refused, Run
from analysis.wording import counted, plan_command
from control.names import first_few, undigested

from .methods import methods
from .provenance import cells, counts_of, differences, facts
from .saving import GENERATOR
from .settings import settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).with_name("templates")
FOOT = (
    "One file, nothing loaded from elsewhere. Verdicts apply to the machine on which they were "
    "measured."
)
FILTER = Markup(
    '<form hidden role="search"><label for="filter">Show rows with</label> <input id="filter" '
    'type="search"></form>'
)
NAMED = 30  # names in the text alternative of a picture


class StudyAnswer(NamedTuple):
    """An answer about a run, the study that gave it, and its heading."""

    study: str
    heading: str
    answer: Answer


class PagePart(NamedTuple):
    """A part of a page under a heading.

    A folded one opens on a click; one in the appendix is folded too, and no main entry of the
    contents.
    """

    id: str
    heading: str
    body: Markup
    folded: bool = False
    appendix: bool = False


class PagePicture(NamedTuple):
    """One picture: `markup` for the page, or `missing`, the reason for its absence.

    `leads`: it belongs at the top of the page.
    """

    name: str
    title: str
    answers: str
    leads: bool = False
    markup: Markup | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """A report: HTML, answers on each run and between runs, and why pictures are missing, if so."""

    html: str
    told: tuple[tuple[Run, list[StudyAnswer]], ...]
    between: Answer | None
    pictures: dict[str, str | None]


def page_of(runs: Sequence[Run], again: str, refused: Sequence[str] = ()) -> HtmlPage:
    """Write the report on some runs, each alone and, if there are several, compared with the first.

    `again` is the command that reproduces this page; `refused` lists named files that were
    unreadable.
    """
    scene = scene_of(runs)
    compared = defaultdict[str, list[Comparison]](list)
    for comparison in scene.comparisons:
        compared[comparison.candidate_run].append(comparison)
    told = tuple((run, told_of(run, compared[run.origin])) for run in runs)
    between = _between(runs) if len(runs) > 1 else None
    drawn = pictures_of(scene)
    lead = next((picture for picture in drawn if picture.leads), None)
    parts = [
        *_over(runs, compared),
        PagePart("answer", "The answer", _heads(told, between, refused)),
        *([PagePart(f"picture-{lead.name}", lead.title, figure_of(lead))] if lead else []),
        *_bodies(told, between),
        PagePart(
            "pictures",
            "Pictures",
            Markup("\n").join(figure_of(one, 3) for one in drawn if one is not lead),
            folded=True,
        ),
        *_appendix(runs, compared, again),
    ]
    one = runs[0] if len(runs) == 1 else None
    dates = dict.fromkeys(run.started_utc[:10] for run in runs if run.started_utc)
    page = written_page(
        title=f"DeepTweak report: {', '.join(run.run_id for run in runs)}",
        above=f"DeepTweak report · {', '.join(dates) or 'date unknown'}",
        heading=question_of(runs),
        below=f"{machine_of(one)}. {counts_of(one)}." if one else "",
        parts=parts,
    )
    return HtmlPage(page, told, between, {picture.name: picture.missing for picture in drawn})


def told_of(run: Run, comparisons: Sequence[Comparison]) -> list[StudyAnswer]:
    """Return the answers of a run's studies, and verdicts if it compares arms or has no study."""
    result = []
    for study in studies.of(run):
        name = study.__name__.rpartition(".")[2]
        try:
            result.append(StudyAnswer(name, study.TITLE, replace(study.answer(run), next=())))
        except Refused as reason:
            result.append(StudyAnswer(name, study.TITLE, Answer(str(reason))))
    # More than a copy of stock.
    if not result or {comparison.tweakset for comparison in comparisons} - {AGAIN}:
        undecided = any(
            comparison.verdict == "inconclusive" and comparison.mde for comparison in comparisons
        )
        following = plan_command(comparisons[0].margin, run.origin) if undecided else ()
        result.append(
            StudyAnswer(
                "verdicts",
                "Verdicts",
                replace(answer_of(comparisons, [run], every=True), next=following),
            )
        )
    return result


def _heads(
    told: Sequence[tuple[Run, list[StudyAnswer]]], between: Answer | None, refused: Sequence[str]
) -> Markup:
    several = len(told) > 1
    parts = []
    for run, answers in told:
        if several:
            parts.append(
                Markup("<h3>{} <small>{}</small></h3>").format(clean(run.run_id), clean(run.origin))
            )
            parts.append(
                Markup('<p class="quiet">{}. {}.</p>').format(
                    clean(machine_of(run)), counts_of(run)
                )
            )
        for one in answers:
            if len(answers) > 1:
                parts.append(Markup("<h{0}>{1}</h{0}>").format(3 + several, one.heading))
            parts.append(html.render(replace(one.answer, sections=(), warnings=(), legend=())))
        if warnings := dict.fromkeys(line for one in answers for line in one.answer.warnings):
            heard = html.render(Answer("", warnings=list(warnings)))
            parts.append(
                Markup("<details><summary>{}</summary>{}</details>").format(
                    counted(len(warnings), "warning"), heard
                )
            )
    if between:
        parts.append(Markup("<h3>Between the runs</h3>"))
        parts.append(html.render(replace(between, sections=(), warnings=(), legend=())))
    return Markup("\n").join(
        [*parts, html.render(Answer("", warnings=[f"refused: {line}" for line in refused]))]
    )


def _bodies(
    told: Sequence[tuple[Run, list[StudyAnswer]]], between: Answer | None
) -> Iterator[PagePart]:
    form = FILTER
    for place, (run, answers) in enumerate(told, 1):
        for one in answers:
            if one.answer.sections or one.answer.legend:
                body = html.render(replace(one.answer, title="", findings=(), warnings=(), next=()))
                where, which = (f"run{place}-", f" of {run.run_id}") if len(told) > 1 else ("", "")
                folded = one.study == "verdicts" and len(answers) > 1
                yield PagePart(f"{where}{one.study}", f"{one.heading}{which}", form + body, folded)
                form = Markup("")
    if between and between.sections:
        yield PagePart(
            "between",
            "Between the runs",
            form + html.render(replace(between, title="", findings=(), next=())),
        )


def _appendix(
    runs: Sequence[Run], comparisons: Mapping[str, Sequence[Comparison]], again: str
) -> Iterator[PagePart]:
    several = len(runs) > 1
    for name, heading, sections_of in (
        ("tweaks", "Requested settings, and the values read back", settings),
        ("order", "Cells in run order", cells),
        ("machine", "Machine and provenance", facts),
    ):
        parts = (
            [html.section_of(section, 3) for section in differences(runs)]
            if several and sections_of is facts
            else []
        )
        for run in runs:
            parts += [Markup("<h3>{}</h3>").format(clean(run.run_id))] * several
            parts += [html.section_of(section, 3 + several) for section in sections_of(run)]
        yield PagePart(name, heading, Markup("\n").join(parts), appendix=True)
    measured = html.render(replace(answer(rows_of(runs)), title="", findings=()))
    yield PagePart("measured", "Measurements per arm", measured, appendix=True)
    compared = [one for own in comparisons.values() for one in own]
    yield PagePart("methods", "Methods in brief", methods(runs, compared), appendix=True)
    lines = [("This page:", again)]
    lines += [
        (f"The measurement of {run.run_id}, as far as recorded:", recipe(run)) for run in runs
    ]
    body = Markup("\n").join(
        Markup("<p>{}</p><pre>{}</pre>").format(
            clean(head), "\n".join(map(clean, text.splitlines()))
        )
        for head, text in lines
        if text
    )
    yield PagePart("again", "Reproduce this page", body, appendix=True)


def _between(runs: Sequence[Run]) -> Answer:
    first, *others = (Arm(run.origin, (run,)) for run in runs)
    try:
        return answer_of(compare_arms(first, others), runs, every=len(others) == 1)
    except Refused as reason:
        return Answer(str(reason))


def _over(runs: Sequence[Run], compared: Mapping[str, Sequence[Comparison]]) -> Iterator[PagePart]:
    for hook in studies.hooks("over_runs"):
        if found := hook(runs, lambda run: compared[run.origin]):
            said, draw = found
            text = " ".join(line.text for line in said.findings)
            body = Markup(
                "{}<figure>{}</figure><details><summary>In figures</summary>{}</details>"
            ).format(
                html.render(replace(said, title="", sections=(), legend=(), next=())),
                _embedded(draw(), "over", said.title, text),
                html.render(replace(said, title="", findings=(), warnings=(), next=())),
            )
            yield PagePart("over", said.title, body)


def question_of(runs: Sequence[Run]) -> str:
    questions = dict.fromkeys(
        study.question for run in runs for study in run.studies.values() if study.question
    )
    return " ".join(questions) or "What do these measurements show?"


def pictures_of(scene: Scene) -> list[PagePicture]:
    """Draw every possible picture of a scene, in reading order; findings come first."""
    result: list[PagePicture] = []
    workloads = dict.fromkeys(undigested(cell.workload) for run in scene.runs for cell in run.cells)
    tweaksets = dict.fromkeys(cell.tweakset for run in scene.runs for cell in run.cells)
    shown = (
        f"Workloads: {first_few([*workloads], NAMED)}. Tweak sets: "
        f"{first_few([*tweaksets], NAMED)}. "
        if workloads
        else ""
    )
    for name, module in fitting(scene.runs).items():
        picture = PagePicture(name, module.TITLE, module.ANSWERS)
        try:
            figure = module.draw(scene)
            title = str(figure.get_label())
            keys = [
                f"{one.observed.workload}: {one.sentence} "
                for run in scene.runs
                for one in scene.effects.get(run.origin, ())
                if module.DESIGNS
            ]
            description = (
                f"{module.ANSWERS} {''.join(keys)}{shown}The tables of this page have the numbers."
            )
            markup = _embedded(figure, f"p{len(result)}", title, description)
            leads = module.leads and not any(other.leads for other in result)
            result.append(picture._replace(title=title, leads=leads, markup=markup))
        except NothingToDraw as reason:
            result.append(picture._replace(missing=str(reason).rstrip(".")))
    return result


def _embedded(figure: Figure, name: str, title: str, description: str) -> Markup:
    return Markup(svg(figure, name, title, description))  # noqa: S704  # what draws has escaped


def figure_of(picture: PagePicture, level: int = 0) -> Markup:
    """Write a picture with its caption, or why it is missing; a `level` adds heading and id."""
    heading = Markup("<h{0}>{1}</h{0}>").format(level, clean(picture.title)) if level else ""
    place = Markup(' id="picture-{}"').format(picture.name) if level else ""
    head = Markup("<figure{}><figcaption>{}<p>{}</p></figcaption>").format(
        place, heading, picture.answers
    )
    if picture.markup is None:
        return head + Markup('<p class="absent">Not drawn: {}.</p></figure>').format(
            clean(picture.missing)
        )
    box = Markup(
        '<div class="picture" tabindex="0" role="region" aria-label="{}">{}</div></figure>'
    )
    hint = Markup('<p class="hint">↔ Wide picture: scroll it sideways.</p>')
    return head + hint + box.format(clean(picture.title), picture.markup)


def written_page(
    *, title: str, above: str, heading: str, below: str, parts: Sequence[PagePart], foot: str = FOOT
) -> str:
    """Assemble a page from its parts, with the house's style and script only."""
    style, script, frame = (
        (TEMPLATES / name).read_text(encoding="utf-8")
        for name in ("style.css", "report.js", "frame.html")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    link = Markup('<li{}><a href="#{}">{}</a></li>')
    links = [
        link.format(Markup(' class="within"') if part.appendix else "", part.id, part.heading)
        for part in parts
    ]
    texts = {"title": title, "above": above, "heading": heading, "below": below, "foot": foot}
    return str(
        Markup(frame).format(  # noqa: S704  # files of ours
            **{name: clean(text) for name, text in texts.items()},
            generator=GENERATOR,
            policy=f"sha256-{digest}",
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            links=Markup("\n").join(links),
            body=Markup("\n").join(map(_written, parts)),
        )
    )


def _written(part: PagePart) -> Markup:
    frame = (
        '<details class="part" id="{}"><summary><h2>{}</h2></summary>\n{}\n</details>'
        if part.folded or part.appendix
        else '<h2 id="{}">{}</h2>\n{}'
    )
    return Markup(frame).format(part.id, clean(part.heading), part.body)  # noqa: S704  # our frame
