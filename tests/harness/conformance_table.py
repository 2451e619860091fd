"""docs/conformance.md: how the ONNX backend suite ends, by operator, with the reason of every case that does not pass."""
import collections
import re

from harness import case

HEAD = """# Conformance

How the backend test suite of the `onnx` package {version} ends, each case run with `{command}`:
**{passed} of {total} cases pass**, of {complete} of {operators} operators all. This page is written by
`tests/conformance/run_onnx_suite.py --table docs/conformance.md`, which runs the suite;
`tests/conformance/write_table.py` writes it from the JSON of an earlier run. The cases that have to pass are
listed in `tests/conformance/expected.json`.

"""

DISAGREEMENTS = """## Where definitions disagree

The standard's text, the Python reference that the suite's cases are computed with, onnxruntime and the framework that
a model comes from do not always mean the same. Then a model that torch exports computes what it computes in torch.

| what | who says what | here |
|---|---|---|
| Resize with `scales` whose product with the extent is not whole: `align_corners`, `tf_crop_and_resize` | the text, torch \
and onnxruntime align the ends of the result; the reference the end of a width that is not whole | the text. Two \
cases expect the other: `test_resize_downsample_scales_linear_align_corners`, `…_cubic_align_corners` |
| Resize, nearest, at a place just half-way or just at an element | each rounds the place in its own way | exact; for \
`asymmetric` and `floor`, which is what torch exports, torch's f32 product by 1 / scale. A scale is the shortest \
decimal number that its f32 stands for, as torch computes with 0.7 and not with the f32 nearest to it |
| Resize, linear, `half_pixel`, of an extent that stays although its scale is not 1 | torch copies; the \
reference weighs neighbours, and so does onnxruntime unless all extents stay | torch |
| Resize of opset 10, nearest, where an axis shrinks | the cases of that time and onnxruntime take the upper element, \
torch the lower one | the upper one |
| GridSample, cubic, beyond the borders | torch and onnxruntime hold or reflect each of the four neighbours by itself | \
the same |

"""


def reason(verdict):
    """The fault without the paths of one machine, in one line of a table."""
    text = re.sub(r"\S*/\S*model\.onnx: ", "", verdict.detail.splitlines()[0] if verdict.detail else verdict.kind)
    text = re.sub(r"/\S*/", "", text).replace("|", "\\|").strip()
    return text if verdict.kind in (case.UNSUPPORTED, case.WRONG) else f"{verdict.kind}: {text}"


def table(verdicts, operators, command, version):
    """The page, from {name: Verdict} and {name: operator}."""
    groups = collections.defaultdict(list)
    for name in verdicts:
        groups[operators[name]].append(name)
    passes = {name for name, verdict in verdicts.items() if verdict.kind == case.PASS}
    lines = [HEAD.format(version=version, command=command, passed=len(passes), total=len(verdicts),
                         complete=sum(passes.issuperset(names) for names in groups.values()), operators=len(groups))]
    lines.append("## Cases that do not pass\n\n| operator | case | reason |\n|---|---|---|\n")
    for operator, names in sorted(groups.items()):
        lines += [f"| {operator} | `{name}` | {reason(verdicts[name])} |\n" for name in sorted(names) if name not in passes]
    lines.append("\n" + DISAGREEMENTS + "## Operators\n\n\"several\" are cases about no single operator.\n\n"
                 "| operator | cases | pass |\n|---|---|---|\n")
    lines += [f"| {operator} | {len(names)} | {len(passes.intersection(names))} |\n"
              for operator, names in sorted(groups.items())]
    return "".join(lines)
