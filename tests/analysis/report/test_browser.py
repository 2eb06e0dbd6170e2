"""Reports and the index in a real browser: any width, light and dark, without script, on paper."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.load import load
from analysis.report.index import write_index
from analysis.report.page import page_of
from analysis.report.saving import save
from tests.analysis.report.pages import EVERYTHING, read, two_pictures
from tests.made_history import nights, noisy, stepped
from tests.needs import chromium
from tests.synthetic import Arm

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

RUNS = Path(__file__).parents[3] / "data" / "runs"
RUN = RUNS / "turns_2026-11-25_amd-epyc-2cpu.json.xz"
SAVED = {
    "main": RUN,
    "input": RUNS / "io_readahead_2026-11-22_amd-epyc-2cpu.json",
    "jobs": RUNS / "cluster-scheduling_2026-11-22_amd-epyc-2cpu.json",
    "power": RUNS / "power-cap_2026-11-22_amd-epyc-2cpu.json",
}
LOOK = Path(__file__).with_name("in_page.js").read_text(encoding="utf-8")
WIDTHS = {"wide": 1280, "narrow": 400}
LARGEST_BYTES = {"main": 900_000, "input": 1_200_000}
SMALLEST_LETTERS = 8  # pixels
SCREENS = [(size, scheme, "script") for size in WIDTHS for scheme in ("light", "dark")] + [
    (size, "light", "no script") for size in WIDTHS
]
needs_browser = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Write the report of a saved run with its pictures, or the index of 16 nights, each once."""
    folder = tmp_path_factory.mktemp("reports")

    @cache
    def path_of(name: str) -> Path:
        path = folder / f"{name}.html"
        if name in SAVED:
            save(page_of([load(SAVED[name])], "python -m analysis report RUN").html, path)
            return path
        runs = [
            load(one)
            for one in sorted(
                nights(folder / "nights", {"bench": noisy(stepped((8, 0.1), (8, 0.12)))}).glob(
                    "*.json"
                )
            )
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("analysis.report.page.fitting", two_pictures)
            write_index(runs, folder / "nights", path, "python -m analysis report nights")
        return path

    return path_of


@pytest.fixture(scope="module")
def report(write: Callable[[str], Path]) -> Path:
    return write("main")


@pytest.fixture(scope="module")
def odd_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with every possible fault, and names that are long, unbroken or markup."""
    word = (
        "a_name_that_is_far_too_long_for_one_line_of_any_table"
        "_and_has_no_blank_in_it_anywhere_at_all"
    )
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    arms = (
        *EVERYTHING.arms,
        Arm(word, 0.1, {f"vm.{word}": word}, warnings=[word * 3]),
        Arm(evil, -0.1, {evil: evil}, broken={1: ("failed", evil)}),
    )
    runs = [
        read(
            replace(EVERYTHING, arms=arms, workloads=("cnn_train", word, evil), seed=seed),
            origin=f"{evil}{word}{seed}.json",
        )
        for seed in (1, 2)
    ]
    path = tmp_path_factory.mktemp("odd") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("analysis.report.page.fitting", two_pictures)
        save(page_of(runs, f"python -m analysis report {word}", [f"{evil}: {word}"]).html, path)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    found = chromium()
    assert found is not None
    with sync_playwright() as driver:
        # Root's browser has no sandbox of its own; what it opens here is a file of ours, without
        # network.
        opened = driver.chromium.launch(executable_path=found, chromium_sandbox=os.geteuid() != 0)
        yield opened
        opened.close()


def opened(context: BrowserContext, report: Path, complaints: list[str]) -> Page:
    """Open the report fully unfolded; add complaints of the browser to `complaints`."""
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url[:80]}"))
    page.on(
        "request",
        lambda request: (
            complaints.append(f"asked: {request.url[:80]}")
            if not request.url.startswith(("file:", "data:"))
            else None
        ),
    )
    page.goto(report.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.evaluate(LOOK)
    return page


@pytest.fixture(scope="module", params=[*SAVED, "index"])
def name(request: pytest.FixtureRequest) -> str:
    """The subject of a page."""
    return str(request.param)


@pytest.fixture(scope="module", params=SCREENS, ids=" ".join)
def screen(
    request: pytest.FixtureRequest, browser: Browser, write: Callable[[str], Path], name: str
) -> Iterator[tuple[Page, list[str]]]:
    """A page on one kind of screen, and what the browser complained of."""
    size, scheme, script = request.param
    look: dict[str, Any] = {
        "viewport": {"width": WIDTHS[size], "height": 800},
        "color_scheme": scheme,
    }
    complaints: list[str] = []
    with browser.new_context(
        **look, java_script_enabled=script == "script", offline=True
    ) as context:
        yield opened(context, write(name), complaints), complaints


@needs_browser
def test_nothing_is_cut_covered_or_too_pale(screen: tuple[Page, list[str]]) -> None:
    page, complaints = screen
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("look.cut()") == []
    assert page.evaluate("look.unannounced()") == []
    assert page.evaluate("look.overlapping()") == []
    assert page.evaluate("look.pale()") == []
    assert complaints == [], "nor to fetch or to say on the console"


@needs_browser
def test_every_picture_can_be_read_and_says_what_it_shows(screen: tuple[Page, list[str]]) -> None:
    page, _ = screen
    seen = page.evaluate("look.pictures()")
    assert seen
    for one in seen:
        assert one["drawn"]
        assert one["letters"] >= SMALLEST_LETTERS
        assert len(one["alternative"]) > 40


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGEST_BYTES)
def test_the_file_is_small_enough_to_be_sent_by_mail(
    write: Callable[[str], Path], name: str
) -> None:
    assert write(name).stat().st_size <= LARGEST_BYTES[name]


@needs_browser
@pytest.mark.parametrize("width", WIDTHS.values())
def test_odd_names_break_neither_the_page_nor_out_of_it(
    browser: Browser, odd_report: Path, width: int
) -> None:
    complaints: list[str] = []
    with browser.new_context(viewport={"width": width, "height": 800}, offline=True) as context:
        page = opened(context, odd_report, complaints)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert page.evaluate("[...look.cut(), ...look.unannounced(), ...look.overlapping()]") == []
        assert page.locator("script:not(:last-child), img[src='x']").count() == 0
    assert complaints == []


@needs_browser
def test_the_dark_scheme_covers_pictures_and_paper_stays_white(
    browser: Browser, report: Path
) -> None:
    shade = "getComputedStyle(document.querySelector('.picture svg')).filter"
    with browser.new_context(color_scheme="dark", offline=True) as context:
        page = opened(context, report, [])
        on_screen = page.evaluate(shade)
        page.emulate_media(media="print", color_scheme="dark")
        assert (on_screen, page.evaluate(shade)) == ("invert(0.905) hue-rotate(180deg)", "none")


@needs_browser
def test_it_can_be_printed(browser: Browser, report: Path) -> None:
    with browser.new_context(offline=True) as context:
        page = opened(context, report, [])
        printed = page.pdf(format="A4")
        assert printed.startswith(b"%PDF")
        page.emulate_media(media="print")
        # What is left of an A4 page between the margins.
        page.set_viewport_size({"width": 688, "height": 1000})
        assert page.evaluate("look.cut()") == []
        assert [
            hint for hint in page.locator(".hint").all() if hint.is_visible()
        ] == []  # nobody scrolls paper


@pytest.fixture
def fresh(browser: Browser, report: Path) -> Iterator[Page]:
    """The report on a wide screen, its verdicts unfolded."""
    with browser.new_context(
        viewport={"width": WIDTHS["wide"], "height": 800}, offline=True
    ) as context:
        page = context.new_page()
        page.goto(f"{report.as_uri()}#verdicts")
        yield page


VERDICTS = "#verdicts ~ .scroll >> nth=0 >> table"


def column(page: Page, number: int) -> list[str]:
    """The texts of a column of the table of verdicts."""
    return [
        text.strip()
        for text in page.locator(f"{VERDICTS} >> tbody tr > :nth-child({number})").all_inner_texts()
    ]


@needs_browser
def test_a_click_on_a_head_sorts_and_a_second_one_reverses(fresh: Page) -> None:
    head = fresh.locator(f"{VERDICTS} >> thead th >> nth=4")
    head.locator("button").click()
    falling = [float(text.split()[0]) for text in column(fresh, 5)]
    assert falling == sorted(falling, reverse=True)
    assert len(falling) > 2
    assert head.get_attribute("aria-sort") == "descending"
    fresh.keyboard.press("Enter")  # the button has the focus: a keyboard does the same
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text.split()[0]) for text in column(fresh, 5)] == falling[::-1]


@needs_browser
def test_words_filter_rows_by_workload_tweak_set_and_verdict(fresh: Page) -> None:
    rows = fresh.locator(f"{VERDICTS} >> tbody tr:visible")
    every = rows.count()
    fresh.fill("#filter", "ddp_train tcp")
    names = rows.all_inner_texts()
    assert names
    assert all("ddp_train" in name and "tcp" in name for name in names)
    fresh.fill("#filter", "")
    assert rows.count() == every > len(names)


@needs_browser
def test_a_link_opens_what_is_folded(fresh: Page) -> None:
    folded = fresh.locator("details#machine")
    assert folded.get_attribute("open") is None
    fresh.click("nav a[href='#machine']")
    fresh.wait_for_function("document.querySelector('details#machine').open")


@needs_browser
def test_without_script_all_is_visible_and_no_dead_control_shows(
    browser: Browser, report: Path
) -> None:
    with browser.new_context(java_script_enabled=False, offline=True) as context:
        page = context.new_page()
        page.goto(report.as_uri())
        assert page.locator(f"{VERDICTS} >> tbody tr").count() > 10
        assert page.locator("th button").count() == 0
        assert not page.locator("#filter").is_visible()
