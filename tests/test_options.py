"""Mistakes on the command line are refused there, in a line."""

from __future__ import annotations

import argparse

import pytest
from _pytest.config import get_config

from fixtures import options
from fixtures.options import _values
from tests.sessions import HOUSE

MOST = 45


def test_values_of_a_parameter_are_read_in_their_order() -> None:
    assert _values("format=raw, npz") == ("format", ("raw", "npz"))


@pytest.mark.parametrize(
    "text",
    [
        "format=raw,,npz",
        "format=raw,",
        "format=,",
        "format=",
        "format",
        "=raw",
        "format=raw\nnpz",
        "format=raw\n",
        "format=raw,raw",
    ],
)
def test_empty_repeated_or_two_line_values_are_refused(text: str) -> None:
    with pytest.raises(
        argparse.ArgumentTypeError,
        match="write NAME=A,B: a parameter and its values, without empty or repeated values",
    ) as why:
        _values(text)
    assert "\n" not in str(why.value)


def test_help_shows_few_options_and_those_of_named_studies() -> None:
    def shown(*words: str) -> set[str]:
        made = get_config(words)
        known = made._parser
        before = set(map(id, _visible(known)))
        options.add_options(known, words, HOUSE)
        return {action.option_strings[0] for action in _visible(known) if id(action) not in before}

    main_job = shown("benchmarks/bench_kernel_tweaks.py")
    assert len(main_job) <= 15
    assert main_job == shown("benchmarks/") == shown("tests/")
    assert shown("benchmarks/bench_power_profile.py") - main_job == {
        "--profile-grid",
        "--allow-gpu-changes",
    }
    assert shown("benchmarks/", "--target", "local") - main_job == {"--fresh-process", "--wait"}


def test_there_are_few_options_in_all() -> None:
    known = get_config()._parser
    before = set(map(id, known.optparser._actions))
    options.add_options(known, ["benchmarks/"], HOUSE)
    assert len([action for action in known.optparser._actions if id(action) not in before]) <= MOST


def _visible(parser: pytest.Parser) -> list[argparse.Action]:
    return [action for action in parser.optparser._actions if action.help != argparse.SUPPRESS]


@pytest.mark.parametrize(
    ("words", "studies"),
    [
        (("benchmarks/",), {"kernel_tweaks"}),
        (("benchmarks",), {"kernel_tweaks"}),
        (
            (
                "benchmarks/bench_power_cap.py::bench_cap",
                "benchmarks/../benchmarks/bench_io_patterns.py",
            ),
            {"power_cap", "io_patterns"},
        ),
        (("tests", ".", "--steps", "3", "--gate=benchmarks/"), set()),
    ],
)
def test_studies_are_named_by_file_and_the_main_job_by_folder(
    words: tuple[str, ...], studies: set[str]
) -> None:
    assert options.named(words, HOUSE) == studies
