#!/usr/bin/env python3
"""Runs the backend test suite of the onnx package through the program, each case in a process of its own, or through a
Python backend (--backend aglow.backend:Backend), with processes that serve many cases.

The suite fails when a case of --expected does not pass, and whenever the program crashes, hangs or ends with another
exit code than 0 (done) or 3 (not supported). Cases that pass without being expected are only reported; --update makes
them expected.
"""
import argparse
import fnmatch
import json
import os
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import onnx  # noqa: E402
from harness import backend_process, case, conformance_table, onnx_cases, report  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmd", default=str(ROOT / "build" / "aglow") + " run",
                        help="program and options, started as: CMD MODEL --input NAME=FILE ... --output-dir DIR")
    parser.add_argument("--backend", metavar="MODULE[:CLASS]", help="a Python backend to run instead of a program")
    parser.add_argument("--cases", default=str(ROOT / "build" / "onnx-cases"), help="folder of the exported cases")
    parser.add_argument("--filter", action="append", metavar="GLOB", help="only these cases, e.g. '*conv*'; repeatable")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every Nth case")
    parser.add_argument("--identical", metavar="CMD", help="a second program and options that give the same bits")
    parser.add_argument("--expected", metavar="FILE", help="JSON file with the cases that have to pass")
    parser.add_argument("--update", action="store_true", help="rewrite the --expected file from this run")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run of the program")
    parser.add_argument("--memory-mb", type=int, default=6144, help="address space of one run; 0: no limit")
    parser.add_argument("--json", metavar="FILE", help="write all verdicts here")
    parser.add_argument("--table", metavar="FILE", help="write the verdicts by operator here: docs/conformance.md")
    parser.add_argument("--junit", metavar="FILE", help="write a JUnit report here")
    options = parser.parse_args()
    if options.update and not options.expected:
        parser.error("--update needs --expected")
    if options.table and (options.filter or options.sample > 1):
        parser.error("--table is for a run of all cases")
    return options


def read_expected(path):
    if path is None or not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return set(json.load(file)["passing"])


def write_expected(path, passing):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"passing": sorted(passing)}, file, indent=0)
        file.write("\n")


def main():
    options = arguments()
    cases = onnx_cases.export(options.cases)
    patterns = options.filter or ["*"]
    names = [name for name in sorted(cases) if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
    if not names:
        sys.exit("no case matches --filter")
    names = names[options.sample // 2 :: options.sample]

    def run(name):
        folder = os.path.join(options.cases, name)
        if options.backend:
            return backend_process.run_case(options.backend, os.path.join(folder, "model.onnx"), folder, cases[name],
                                            timeout=options.timeout, memory_mb=options.memory_mb)
        return case.run_case(options.cmd, os.path.join(folder, "model.onnx"), folder, cases[name],
                             timeout=options.timeout, memory_mb=options.memory_mb, identical=options.identical)

    verdicts = report.run_all(names, run, options.jobs)
    expected = read_expected(options.expected)
    passing = {name for name in names if verdicts[name].kind == case.PASS}
    failed = {name: f"{verdict.kind}: {verdict.detail}" for name, verdict in verdicts.items()
              if verdict.kind in case.FAULTS or (name in expected and verdict.kind != case.PASS)}
    unknown = expected - set(cases)

    print("\n".join(report.table(verdicts, lambda name: cases[name]["operator"], "operator")))
    print("\n".join(report.reasons(verdicts)))
    print(f"{len(names)} cases: {report.totals(verdicts)}")
    for name in sorted(passing - expected) if expected else []:
        print(f"new pass {name}")
    operators = {name: cases[name]["operator"] for name in names}
    shown = options.backend
    if not shown:
        program, *words = shlex.split(options.cmd)
        shown = shlex.join([os.path.basename(program), *words])
    if options.json:
        report.write_json(options.json, verdicts, command=options.backend or options.cmd, shown=shown, onnx=onnx.__version__,
                          operators=operators)
    if options.table:
        text = conformance_table.table(verdicts, operators, shown, onnx.__version__)
        pathlib.Path(options.table).write_text(text, encoding="utf-8")
    if options.junit:
        report.write_junit(options.junit, "onnx", verdicts, failed)
    if options.update:
        write_expected(options.expected, (expected - unknown - set(names)) | passing)
        failed = {name: why for name, why in failed.items() if verdicts[name].kind in case.FAULTS}
        unknown = set()
    for name, why in failed.items():
        print(f"{'REGRESSION' if name in expected else 'FAULT'} {name}: {why[:240]}")
    for name in sorted(unknown):
        print(f"UNKNOWN {name}: expected, but the suite has no such case")
    return 1 if failed or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
