#!/usr/bin/env python3
"""Models of torchvision and transformers, exported by both of torch's exporters, run by Aglow and compared with torch.

    ./dev zoo [--filter GLOB] [--exporter trace|dynamo] [--group NAME]

An export is kept in build/zoo/NAME/EXPORTER; --fresh makes it again. Free sizes (batch, length of a text, of its past)
differ between exporting and running. A model passes when every output has torch's shape and kind and differs by less
than 1e-3 of the output's range (1e-5 where it is only resampled). --markdown writes the table of results.
"""
import argparse
import dataclasses
import fnmatch
import json
import pathlib
import re
import shlex
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import numpy  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402

import exporting  # noqa: E402
import resampling  # noqa: E402
import results  # noqa: E402
import text  # noqa: E402
import vision  # noqa: E402
from harness import case, process  # noqa: E402

ENTRIES = [*vision.ENTRIES, *text.ENTRIES, *resampling.ENTRIES]


def run(options, backend, folder, record, limit):
    """(verdict, error, seconds, detail) of one run of the program."""
    command = [*shlex.split(options.cmd), "--backend", backend, folder / "model.onnx"]
    for i, name in enumerate(record["inputs"]):
        command += ["--input", f"{name}={folder / f'in_{i}.npy'}"]
    with tempfile.TemporaryDirectory(prefix="aglow_zoo_") as out:
        outcome = process.run([*command, "--output-dir", out], timeout=options.timeout, env={"AGLOW_CACHE_DIR": "off"})
        seconds = round(outcome.cpu_seconds, 1)
        judged = case.judge(outcome, options.timeout)
        if judged:
            return judged[0], None, seconds, judged[1]
        worst = 0.0
        for i in range(record["outputs"]):
            try:
                got = numpy.load(pathlib.Path(out) / f"{i}.npy")
                found = results.difference(numpy.load(folder / f"out_{i}.npy"), got)
            except (OSError, ValueError) as error:
                return case.WRONG, None, seconds, f"output {i}: {error}"
            worst = max(worst, found)
            if not found < limit:
                return case.WRONG, found, seconds, f"output {i} differs by {found:.1e} of its range"
    return case.PASS, worst, seconds, ""


def slug(name):
    return re.sub(r"\W+", "_", name).strip("_")


def check(options, entry, exporter):
    row = results.Row(entry.name, entry.group, exporter)
    folder = options.folder / slug(entry.name) / exporter
    record = exporting.export(entry, exporter, folder, options.fresh)
    if "refused" in record:
        row.verdict, row.detail = results.REFUSED, record["refused"]
        return row
    row.nodes = record["nodes"]
    if options.export_only:
        return row
    row.verdict, row.error, row.seconds, row.detail = run(options, "cpu", folder, record, entry.limit)
    if row.verdict == case.PASS and entry.interpreter:
        row.verdict, row.interpreter_error, _, row.detail = run(options, "interpreter", folder, record, entry.limit)
        row.detail = row.detail and f"interpreter: {row.detail}"
    if exporter == "dynamo":
        row.detail = row.detail or entry.note
    return row


def versions():
    return ", ".join(f"{module.__name__} {module.__version__.split('+')[0]}" for module in (torch, torchvision, transformers))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmd", default=f"{ROOT}/build/aglow run", help="program and options")
    parser.add_argument("--filter", default="*", metavar="GLOB", help="names of models")
    parser.add_argument("--group", default="*", metavar="GLOB", help="kinds of models")
    parser.add_argument("--exporter", choices=exporting.EXPORTERS, action="append")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--fresh", action="store_true", help="exports again")
    parser.add_argument("--export-only", action="store_true")
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()

    rows = []
    for entry in ENTRIES:
        if not fnmatch.fnmatch(entry.name, options.filter) or not fnmatch.fnmatch(entry.group, options.group):
            continue
        for exporter in options.exporter or exporting.EXPORTERS:
            rows.append(check(options, entry, exporter))
            print(results.line(rows[-1]), flush=True)
    if not rows:
        sys.exit("no model has such a name")
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(results.markdown(rows, versions()), encoding="utf-8")
    print(results.totals(rows))
    return 0 if all(row.verdict in (results.PASS, results.REFUSED) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
