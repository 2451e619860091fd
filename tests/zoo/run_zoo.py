#!/usr/bin/env python3
"""Models of torchvision and transformers, exported by both of torch's exporters, run by Aglow and compared with torch.

    ./dev zoo [--filter GLOB] [--exporter trace|dynamo] [--group NAME]

An export is kept in build/zoo/NAME/EXPORTER; --fresh makes it anew. Free sizes (batch, length of a text, of its past)
differ between exporting and running. A model passes when every output has torch's shape and kind and differs by less
than 1e-3 of the output's range. --markdown writes the table of results.
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
import text  # noqa: E402
import vision  # noqa: E402
from harness import case, process  # noqa: E402

LIMIT = 1e-3
ENTRIES = [*vision.ENTRIES, *text.ENTRIES]
REFUSED = "exporter refuses"


@dataclasses.dataclass
class Row:
    name: str
    group: str
    exporter: str
    nodes: int = 0
    verdict: str = case.PASS
    error: float | None = None
    seconds: float | None = None
    interpreter_error: float | None = None
    detail: str = ""


def difference(expected, got):
    """The largest difference as a part of the range of what is expected; exact kinds have to be equal."""
    if expected.shape != got.shape or expected.dtype != got.dtype:
        raise ValueError(f"expected {expected.dtype}{list(expected.shape)}, got {got.dtype}{list(got.shape)}")
    if expected.size == 0:
        return 0.0
    if expected.dtype.kind != "f":
        return 0.0 if numpy.array_equal(expected, got) else numpy.inf
    wide, other = expected.astype(numpy.float64), got.astype(numpy.float64)
    same = (wide == other) | (numpy.isnan(wide) & numpy.isnan(other))
    distance = numpy.where(same, 0.0, numpy.abs(wide - other))
    finite = wide[numpy.isfinite(wide)]
    extent = numpy.ptp(finite) if finite.size else 0.0
    worst = distance.max() / (extent or max(abs(finite).max(initial=0.0), 1e-6))
    return float("inf") if numpy.isnan(worst) else float(worst)


def run(options, backend, folder, record):
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
                found = difference(numpy.load(folder / f"out_{i}.npy"), got)
            except (OSError, ValueError) as error:
                return case.WRONG, None, seconds, f"output {i}: {error}"
            worst = max(worst, found)
            if not found < LIMIT:
                return case.WRONG, found, seconds, f"output {i} differs by {found:.1e} of its range"
    return case.PASS, worst, seconds, ""


def slug(name):
    return re.sub(r"\W+", "_", name).strip("_")


def check(options, entry, exporter):
    row = Row(entry.name, entry.group, exporter)
    folder = options.folder / slug(entry.name) / exporter
    record = exporting.export(entry, exporter, folder, options.fresh)
    if "refused" in record:
        row.verdict, row.detail = REFUSED, record["refused"]
        return row
    row.nodes = record["nodes"]
    if options.export_only:
        return row
    row.verdict, row.error, row.seconds, row.detail = run(options, "cpu", folder, record)
    if row.verdict == case.PASS and entry.interpreter:
        row.verdict, row.interpreter_error, _, row.detail = run(options, "interpreter", folder, record)
        row.detail = row.detail and f"interpreter: {row.detail}"
    return row


def show(row):
    error = "" if row.error is None else f"{row.error:.1e}"
    seconds = "" if row.seconds is None else f"{row.seconds:.1f} s"
    print(f"{row.name:40}{row.exporter:8}{row.nodes:6} {row.verdict:17}{error:>8}{seconds:>9}  {row.detail[:200]}", flush=True)


def number(value):
    return "" if value is None else f"{value:.1e}"


def markdown(rows):
    passed = sum(row.verdict == case.PASS for row in rows)
    refused = sum(row.verdict == REFUSED for row in rows)
    lines = [
        "# Models", "",
        "Written by `./dev zoo`: architectures of torchvision and transformers with random weights, exported by torch's",
        "exporter by tracing (`trace`, `dynamo=False`) and by its newer one (`dynamo`), run with other sizes of batch and",
        "text than they were exported with, and compared with torch. The error is the largest difference of an output as a",
        f"part of its range; below {LIMIT:g} passes. Seconds are processor time of the whole `aglow run` on the `cpu`",
        "backend: reading, compiling and running, without the cache of code. What the exporter itself refuses has no file to run.", "",
        f"torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}, "
        f"transformers {transformers.__version__}: {passed} of {len(rows) - refused} exports pass, "
        f"{refused} are refused by the exporter.", ""]
    for group in dict.fromkeys(row.group for row in rows):
        lines += [f"## {group.capitalize()}", "", "| model | exporter | nodes | verdict | error | interpreter | seconds |",
                  "|---|---|---|---|---|---|---|"]
        notes = []
        for row in (row for row in rows if row.group == group):
            mark = ""
            if row.detail:
                if row.detail not in notes:
                    notes.append(row.detail)
                mark = f" ({notes.index(row.detail) + 1})"
            lines.append(f"| {row.name} | {row.exporter} | {row.nodes or ''} | {row.verdict}{mark} | {number(row.error)} | "
                         f"{number(row.interpreter_error)} | {'' if row.seconds is None else row.seconds} |")
        lines += [""] + [f"{i + 1}. `{note.replace('`', chr(39))}`" for i, note in enumerate(notes)] + ([""] if notes else [])
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cmd", default=f"{ROOT}/build/aglow run", help="program and options")
    parser.add_argument("--filter", default="*", metavar="GLOB", help="names of models")
    parser.add_argument("--group", default="*", metavar="GLOB", help="kinds of models")
    parser.add_argument("--exporter", choices=exporting.EXPORTERS, action="append")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "zoo")
    parser.add_argument("--fresh", action="store_true", help="exports anew")
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
            show(rows[-1])
    if not rows:
        sys.exit("no model has such a name")
    if options.json:
        options.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")
    failed = sum(row.verdict not in (case.PASS, REFUSED) for row in rows)
    print(f"{len(rows)} exports: {sum(row.verdict == case.PASS for row in rows)} pass, {failed} fail, "
          f"{sum(row.verdict == REFUSED for row in rows)} refused by the exporter")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
