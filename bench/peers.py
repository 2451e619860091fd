#!/usr/bin/env python3
"""Measures Aglow beside ONNX Runtime, OpenVINO and torch.compile on the same models, inputs and processors.

Every engine runs in a process of its own with one model and one number of threads, pinned to as many processors.
Outputs are compared with a float64 reference first: what is wrong is not timed. Then all engines of a model take turns,
round after round, so that what else happens on the machine meets all of them. With --streams as many requests are in
flight at a time, and runs a second are compared instead of latencies.
"""
import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import engines
import export_models
import int8

ROOT = export_models.ROOT
# Of the largest absolute value of the reference: far above what fp32 and Winograd cost, far below any real fault.
TOLERANCE = 1e-3
# Of quantized models, where each rounding to a neighbouring step moves what comes after it.
QUANTIZED_TOLERANCE = 0.1


def error_of(output, expected):
    import numpy
    if output.shape != expected.shape:
        raise engines.Unavailable(f"output {output.shape}, expected {expected.shape}")
    return float(numpy.max(numpy.abs(output - expected)) / numpy.max(numpy.abs(expected)))


def start(engine, model, threads, options):
    if engine != "aglow":
        return engines.Peer(engine, model, threads, options.streams)
    words = ["--backend", options.backend] if options.backend else []
    return engines.Aglow(model, threads, options.program, words, options.streams)


def prepare(engine, model, threads, options):
    """A running engine whose output is right, and its row of the results; or a row that says why not."""
    import numpy
    row = {"model": model, "threads": threads, "engine": engine}
    runner = None
    try:
        runner = start(engine, model, threads, options)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "output.npy"
            runner.output(file)
            row["error"] = error_of(numpy.load(file), numpy.load(export_models.expected_file(model)))
        row["version"] = runner.version
        if not row["error"] <= (TOLERANCE if model in export_models.MODELS else QUANTIZED_TOLERANCE):
            raise engines.Unavailable(f"wrong: differs from the reference by {row['error']:.1e} of its range")
        return runner, row
    except engines.Unavailable as fault:
        if runner:
            runner.close()
        return None, row | {"fault": str(fault)}


def compare(model, threads, options):
    """All engines on one model, in turns."""
    running, rows = [], []
    for engine in options.engines:
        print(f"  {model}, {threads} threads: starting {engine}", file=sys.stderr, flush=True)
        runner, row = prepare(engine, model, threads, options)
        rows.append(row)
        if runner:
            running.append((runner, row))
            row["rounds"] = []
    for number in range(options.rounds):
        for runner, row in running:
            print(f"  {model}, {threads} threads: round {number + 1}, {row['engine']}", file=sys.stderr, flush=True)
            time.sleep(options.pause)  # threads of the one before may still spin
            row["rounds"].append(runner.measure(options.seconds))
    for runner, row in running:
        medians = [r["median"] for r in row["rounds"]]
        row |= {"median_ms": statistics.median(medians), "best_ms": min(r["best"] for r in row["rounds"]),
                "spread": (max(medians) - min(medians)) / min(medians), "load_s": runner.load_s,
                "per_s": statistics.median(r["per_s"] for r in row["rounds"]), "peak_rss_mb": runner.peak_rss_mb}
        runner.close()
    own = next((row for row in rows if row["engine"] == "aglow" and "median_ms" in row), None)
    for row in rows:
        if own and "median_ms" in row:
            row["to_aglow"] = (row["median_ms"] / own["median_ms"] if options.streams == 1 else
                               own["per_s"] / row["per_s"])
    return rows


def table(rows):
    lines = [f"{'model':<14} {'threads':>7}  {'engine':<12} {'median ms':>10} {'best ms':>10} {'spread':>7} "
             f"{'runs/s':>9} {'x aglow':>8} {'error':>8} {'MB':>7} {'load s':>7}"]
    for row in rows:
        head = f"{row['model']:<14} {row['threads']:>7}  {row['engine']:<12}"
        if "median_ms" not in row:
            lines.append(f"{head} {row['fault']}")
            continue
        ratio = f"{row['to_aglow']:.3f}" if "to_aglow" in row else "-"
        lines.append(f"{head} {row['median_ms']:>10.3f} {row['best_ms']:>10.3f} {row['spread']:>6.1%} "
                     f"{row['per_s']:>9.2f} {ratio:>8} {row['error']:>8.1e} {row['peak_rss_mb']:>7.0f} "
                     f"{row['load_s']:>7.2f}")
    return "\n".join(lines)


def speedups(rows):
    """How much faster more threads are than one, for each engine and model."""
    found = {(row["model"], row["engine"], row["threads"]): row["median_ms"] for row in rows if "median_ms" in row}
    lines = [f"{model:<14} {engine:<12} {threads} threads: {found[model, engine, 1] / median:.2f} x one thread"
             for (model, engine, threads), median in found.items()
             if threads > 1 and (model, engine, 1) in found]
    return "\n".join(lines)


def processor():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.partition(":")[2].strip() for line in info if line.startswith("model name")]
    return names[0] if names else platform.machine()


def best_backend(program):
    """The compiled one where the program has it."""
    text = subprocess.run([str(program), "bench", "--help"], capture_output=True, text=True, check=True).stdout
    names = text.partition("--backend")[2].partition("--")[0]
    return "cpu" if "cpu" in names.replace(",", " ").split() else None


def parse():
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--models", type=words, default=list(export_models.MODELS), metavar="NAME,…",
                        help=f"some of: {', '.join(export_models.MODELS)}")
    parser.add_argument("--engines", type=words, default=["aglow", *engines.PEERS], metavar="NAME,…",
                        help=f"some of: aglow, {', '.join(engines.PEERS)}")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2], metavar="N,…")
    parser.add_argument("--streams", type=int, default=1, metavar="N",
                        help="requests in flight at a time (default: %(default)s); torch takes part with one only")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each engine (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="time of a turn (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.3, help="seconds between turns (default: %(default)s)")
    parser.add_argument("--backend", help="Aglow's backend (default: cpu where there is one)")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build" / "aglow")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "build" / "bench-results", metavar="DIR",
                        help="where the figures go as JSON")
    options = parser.parse_args()
    for name in {name.removesuffix(int8.SUFFIX) for name in options.models} - set(export_models.MODELS):
        parser.error(f"there is no model '{name}'")
    for name in set(options.engines) - {"aglow", *engines.PEERS}:
        parser.error(f"there is no engine '{name}'")
    options.backend = options.backend or best_backend(options.program)
    return options


def main(summary=None):
    """Measures what the command line asks for; `summary` makes text of the rows, to be printed after the table."""
    options = parse()
    for model in options.models:
        export_models.export(model)
    rows = []
    for model in options.models:
        for threads in options.threads:
            rows += compare(model, threads, options)
    print(table(rows))
    print(f"x aglow: {'the median' if options.streams == 1 else 'the time of a run, as runs/s have it,'} against "
          "Aglow's; above 1 Aglow is faster. error: of the reference's range.")
    print(speedups(rows))
    if summary:
        print(summary(rows))
    options.results.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    file = options.results / f"peers-{now:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps({"time": now.isoformat(timespec="seconds"), "processor": processor(),
                                "seconds": options.seconds, "streams": options.streams, "results": rows},
                               indent=1) + "\n", encoding="utf-8")
    print(file)
    return 0 if all("median_ms" in row for row in rows if row["engine"] == "aglow") else 1


if __name__ == "__main__":
    sys.exit(main())
