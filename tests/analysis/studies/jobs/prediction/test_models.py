"""Models find laws that are known; white boxes find them to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Ridge

from analysis.studies.jobs.prediction import models
from analysis.studies.jobs.prediction.models import BLACK, mean, same, white_boxes
from analysis.studies.jobs.prediction.tables import Measurement, points, table
from analysis.terms import Refused
from tests.analysis.studies.jobs.prediction.made import BATCHES, law, made_table


@pytest.mark.parametrize("name", sorted(BLACK))
def test_black_boxes_learn_what_batch_and_cache_do(name: str) -> None:
    made = made_table(noise=0.01)
    asked = points([{"batch": float(batch), "cache": cache} for batch in BATCHES for cache in ("cold", "warm")], made)
    said = BLACK[name](made, made.configurations)(asked)
    truth = np.log([law(batch, cache) for batch in BATCHES for cache in ("cold", "warm")])
    assert np.abs(said - truth).max() < 0.05


@pytest.mark.parametrize("name", ["ridge", "gp"])
def test_ridge_and_the_gaussian_process_follow_the_trend_beyond_what_they_saw(name: str) -> None:
    """Batch 64 was never measured; twice the largest that was takes √2 of its time."""
    made = made_table(noise=0.01)
    (said,) = np.exp(BLACK[name](made, made.configurations)(points([{"batch": 64.0, "cache": "warm"}], made)))
    assert said == pytest.approx(law(64, "warm"), rel=0.1)


def test_ridge_with_every_penalty_is_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    x, y, asked = rng.normal(size=(20, 4)), rng.normal(size=20), rng.normal(size=(3, 4))
    expected = [Ridge(alpha).fit(x, y).predict(asked) for alpha in models.ALPHAS]
    assert models._ridges(x, y, asked) == pytest.approx(np.transpose(expected))


def test_a_gaussian_process_sees_each_combination_once_and_so_many_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []

    class Spy(GaussianProcessRegressor):  # type: ignore[misc]  # scikit-learn ships no types
        def fit(self, x: np.ndarray, y: np.ndarray) -> Spy:
            shapes.append(x.shape[0])
            return super().fit(x, y)  # type: ignore[no-any-return]

    monkeypatch.setattr(models, "GaussianProcessRegressor", Spy)
    made = made_table()
    BLACK["gp"](made, made.runs)
    monkeypatch.setattr(models, "MOST_POINTS", 7)
    BLACK["gp"](made, made.runs)
    assert shapes == [12, 7]


def test_the_baseline_is_the_mean_of_what_models_see() -> None:
    made = made_table()
    (said,) = mean(made, made.runs)(made.points.take(np.array([0])))
    assert said == pytest.approx(np.log(made.values).mean())


def test_its_own_mean_is_that_of_the_same_factors_and_nothing_else() -> None:
    made = made_table()
    model = same(made, made.runs)
    cold = (made.points.names["cache"] == "cold") & (made.points.numbers["batch"] == 4)
    told, unknown = model(points([{"batch": 4.0, "cache": "cold"}, {"batch": 5.0, "cache": "cold"}], made))
    assert told == pytest.approx(np.log(made.values[cold]).mean())
    assert np.isnan(unknown)


def jobs(law_s: dict[str, tuple[float, float, float]]) -> list[Measurement]:
    """Jobs of classes, each with start, cost and serial part, of three sizes on up to four replicas."""
    return [
        Measurement(
            f"{name} {n} {work}",
            "r",
            {"class": name, "replicas": float(n), "work": work},
            start + cost * work * (serial + (1 - serial) / n),
        )
        for name, (start, cost, serial) in law_s.items()
        for n in (1, 2, 4)
        for work in (1.0, 2.0, 5.0)
    ]


def test_amdahls_law_is_found_for_each_class() -> None:
    made = table(jobs({"a": (0.5, 2.0, 0.1), "b": (0.1, 7.0, 0.4)}), "service_s")
    said = np.exp(white_boxes(made)["amdahl"](made, made.runs)(made.points))
    assert said == pytest.approx(made.values, rel=1e-3)


def test_the_law_of_work_is_found_exactly() -> None:
    made = table([one for one in jobs({"a": (0.5, 2.0, 0.0), "b": (0.0, 7.0, 0.0)}) if one.factors["replicas"] == 1], "service_s")
    assert list(white_boxes(made)) == ["work"]
    asked = points(
        [{"class": "a", "work": 10.0}, {"class": "b", "work": 10.0}, {"class": "c", "work": 1.0}, {"class": "a", "work": -9.0}], made
    )
    *told, unknown, never = np.exp(white_boxes(made)["work"](made, made.runs)(asked))
    assert told == pytest.approx([20.5, 70.0])
    assert np.isnan([unknown, never]).all()  # a class that was not measured, and a time below 0


def test_the_roofline_is_found_on_both_sides_of_its_ridge() -> None:
    """Peak 100 flop/s, bandwidth 10 bytes/s: the ridge is at 10 flop a byte."""
    told = [
        Measurement(f"{flop} {size}", "r", {"flop": flop, "bytes": size}, max(flop / 100, size / 10))
        for flop in (10.0, 100.0, 1000.0)
        for size in (1.0, 20.0, 300.0)
    ]
    made = table(told, "time_s")
    asked = points([{"flop": 5000.0, "bytes": 1.0}, {"flop": 1.0, "bytes": 5000.0}], made)
    assert np.exp(white_boxes(made)["roofline"](made, made.runs)(asked)) == pytest.approx([50, 500])


def test_white_boxes_are_of_times_and_of_rows_that_tell_what_they_need() -> None:
    assert white_boxes(made_table()) == {}
    assert not white_boxes(table([Measurement(str(at), "r", {"work": float(at)}, float(at)) for at in range(4)], "wait_s"))


def test_jobs_of_one_size_tell_no_law_of_work() -> None:
    made = table(
        [Measurement(name, "r", {"class": name, "work": work}, work) for name, work in (("a", 1.0), ("b", 2.0), ("c", 1.0))], "service_s"
    )
    with pytest.raises(Refused, match="one size"):
        white_boxes(made)["work"](made, made.runs)
