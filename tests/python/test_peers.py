"""The comparison with other engines: what is wrong is not timed, the rest is compared with Aglow."""
import argparse
import sys

import numpy as np
import pytest

from conftest import ROOT

sys.path.append(str(ROOT / "bench"))

import engines  # noqa: E402
import peers  # noqa: E402


class Fake:
    """An engine that takes some ms, one more each turn, and gives a value."""
    version, load_s, peak_rss_mb = "1.0", 0.5, 100.0

    def __init__(self, ms, value):
        self.ms, self.value, self.closed = ms, value, False

    def output(self, file):
        np.save(file, np.full((2, 2), self.value, np.float32))

    def measure(self, seconds):
        self.ms += 1
        return {"median": self.ms, "best": self.ms - 0.5, "runs": 3, "per_s": 1000 / self.ms}

    def close(self):
        self.closed = True


@pytest.fixture
def options(monkeypatch, tmp_path):
    np.save(tmp_path / "expected.npy", np.full((2, 2), 4.0))
    monkeypatch.setattr(peers.export_models, "expected_file", lambda model: tmp_path / "expected.npy")
    fakes = {"aglow": Fake(9, 4.0), "fast": Fake(4, 4.0001), "wrong": Fake(1, 5.0), "missing": None}

    def start(engine, *_):
        if fakes[engine] is None:
            raise engines.Unavailable("not installed")
        return fakes[engine]

    monkeypatch.setattr(peers, "start", start)
    return argparse.Namespace(engines=list(fakes), rounds=3, seconds=1, pause=0, streams=1, fakes=fakes)


def test_engines_take_turns_and_are_compared(options):
    rows = {row["engine"]: row for row in peers.compare("model", 2, options)}
    assert rows["aglow"]["median_ms"] == 11 and rows["aglow"]["best_ms"] == 9.5
    assert rows["aglow"]["spread"] == pytest.approx(0.2)
    assert rows["fast"]["to_aglow"] == pytest.approx(6 / 11)
    assert rows["fast"]["error"] == pytest.approx(2.5e-5, rel=1e-2)
    assert all(options.fakes[name].closed for name in ("aglow", "fast", "wrong"))


def test_with_streams_runs_a_second_are_compared(options):
    options.streams = 8
    rows = {row["engine"]: row for row in peers.compare("model", 2, options)}
    assert rows["aglow"]["per_s"] == pytest.approx(1000 / 11)
    assert rows["fast"]["to_aglow"] == pytest.approx(6 / 11)


def test_what_is_wrong_or_missing_is_not_timed(options):
    rows = {row["engine"]: row for row in peers.compare("model", 1, options)}
    assert "differs from the reference by 2.5e-01" in rows["wrong"]["fault"] and "median_ms" not in rows["wrong"]
    assert rows["missing"]["fault"] == "not installed"
    text = peers.table(list(rows.values()))
    assert "not installed" in text and "differs" in text and " 1.000 " in text


def test_shapes_have_to_be_equal():
    with pytest.raises(engines.Unavailable):
        peers.error_of(np.zeros((1, 2)), np.zeros((2, 1)))


def test_nan_is_wrong(options):
    options.fakes["fast"].value = np.nan
    rows = {row["engine"]: row for row in peers.compare("model", 1, options)}
    assert "wrong" in rows["fast"]["fault"]


def test_speedups():
    rows = [{"model": "m", "engine": "aglow", "threads": n, "median_ms": ms} for n, ms in ((1, 10), (2, 5))]
    assert peers.speedups(rows).split() == ["m", "aglow", "2", "threads:", "2.00", "x", "one", "thread"]


def test_the_programs_backends_are_read(program):
    assert peers.best_backend(program) in (None, "cpu")
