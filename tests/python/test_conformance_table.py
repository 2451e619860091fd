"""docs/conformance.md is what its script makes, and agrees with the cases that have to pass."""
import json
import re

from conftest import ROOT
from harness import case, conformance_table


def test_page_of_a_small_run():
    verdicts = {"node/test_abs": case.Verdict(case.PASS, "", 0.1),
                "node/test_add": case.Verdict(case.PASS, "", 0.1),
                "node/test_add_odd": case.Verdict(case.UNSUPPORTED, "error[E302] /tmp/x/model.onnx: node 'a|b' (Add): no", 0.1),
                "node/test_mul": case.Verdict(case.CRASH, "SIGSEGV", 0.1)}
    operators = {"node/test_abs": "Abs", "node/test_add": "Add", "node/test_add_odd": "Add", "node/test_mul": "Mul"}
    page = conformance_table.table(verdicts, operators, "aglow run", "1.0")
    assert "**2 of 4 cases pass**, of 1 of 3 operators all." in page
    assert "| Add | `node/test_add_odd` | error[E302] node 'a\\|b' (Add): no |\n" in page
    assert "| Mul | `node/test_mul` | crash: SIGSEGV |\n" in page
    assert "| Add | 2 | 1 |\n" in page


def test_page_agrees_with_what_has_to_pass():
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    expected = set(json.loads((ROOT / "tests" / "conformance" / "expected.json").read_text(encoding="utf-8"))["passing"])
    passed, total = map(int, re.search(r"\*\*(\d+) of (\d+) cases pass\*\*", page).groups())
    failing = re.findall(r"^\| \S+ \| `([^`]+)` \| .+ \|$", page, re.M)
    rows = [tuple(map(int, row)) for row in re.findall(r"^\| \S+ \| (\d+) \| (\d+) \|$", page, re.M)]
    renew = "run tests/conformance/run_onnx_suite.py --table docs/conformance.md again"
    assert not expected & set(failing), renew
    assert passed == len(expected), renew
    assert total == passed + len(failing) == sum(cases for cases, _ in rows)
    assert passed == sum(passes for _, passes in rows)
