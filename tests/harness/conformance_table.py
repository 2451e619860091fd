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
    lines.append("\n## Operators\n\n\"several\" are cases about no single operator.\n\n"
                 "| operator | cases | pass |\n|---|---|---|\n")
    lines += [f"| {operator} | {len(names)} | {len(passes.intersection(names))} |\n"
              for operator, names in sorted(groups.items())]
    return "".join(lines)
