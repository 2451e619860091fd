"""The zoo's verdicts: differences are parts of the output's range, and the table tells them all."""
import sys

import numpy as np
import pytest

from conftest import ROOT

sys.path.append(str(ROOT / "tests" / "zoo"))

import results  # noqa: E402


def test_the_difference_is_a_part_of_the_range():
    expected = np.array([-1, 0, 3], np.float32)
    assert results.difference(expected, expected) == 0
    assert results.difference(expected, expected + np.float32(0.5)) == pytest.approx(0.125)
    assert results.difference(np.full(2, 8, np.float32), np.full(2, 9, np.float32)) == pytest.approx(0.125)


def test_infinities_and_nans_have_to_be_where_they_are_expected():
    expected = np.array([np.inf, np.nan, 0, 1], np.float32)
    assert results.difference(expected, expected) == 0
    for place in (0, 1):
        other = expected.copy()
        other[place] = 0
        assert results.difference(expected, other) == np.inf
    assert results.difference(np.zeros(2, np.float32), np.array([0, np.nan], np.float32)) == np.inf


def test_exact_kinds_are_equal_or_not():
    assert results.difference(np.array([1, 2]), np.array([1, 2])) == 0
    assert results.difference(np.array([1, 2]), np.array([1, 3])) == np.inf
    assert results.difference(np.zeros((0, 4)), np.zeros((0, 4))) == 0


@pytest.mark.parametrize("got", [np.zeros((2, 1), np.float32), np.zeros(2)])
def test_shapes_and_kinds_are_those_expected(got):
    with pytest.raises(ValueError, match="expected float32"):
        results.difference(np.zeros(2, np.float32), got)


def test_the_table_has_a_line_for_each_export_and_says_why():
    rows = [results.Row("net", "video", "trace", 7, error=2e-7, seconds=1.25),
            results.Row("net", "video", "dynamo", verdict=results.REFUSED, detail="no `such` operator")]
    table = results.markdown(rows, "torch 1.0")
    assert "torch 1.0: 1 of 1 exports pass, 1 are refused by the exporter." in table
    assert "| net | trace | 7 | pass | 2.0e-07 |  | 1.2 |" in table
    assert "| net | dynamo |  | exporter refuses (1) |  |  |  |" in table and "1. `no 'such' operator`" in table
