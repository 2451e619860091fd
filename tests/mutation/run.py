"""Runs mutants of models through the program, the Python module and the C interface, on both backends.

    build/venv/bin/python tests/mutation/run.py --executions 50000 --seed 1

What breaks a promise (see checks.py) is made smaller and stays in build/mutation/findings; --replay runs it again.
The same seed gives the same cases.
"""
import argparse
import collections
import hashlib
import json
import multiprocessing
import os
import pathlib
import random as randoms
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import checks  # noqa: E402
import commands  # noqa: E402
import minimize  # noqa: E402
import seeds  # noqa: E402
from harness import process  # noqa: E402

ROOT = HERE.parents[1]


class Servers:
    """The processes that execute, started when they are needed, with a folder to work in."""

    def __init__(self, build, folder):
        self.folder, self.children = folder, {}
        program = str(build / "tests/mutation/mutation_server")
        module = [sys.executable, str(HERE / "module_server.py")]
        self.words = {"aglow": [program], "c": [program], "python": module}
        self.sanitized = process.is_sanitized(program)
        self.env = {**os.environ, "AGLOW_CACHE_DIR": "off", "PYTHONPATH": str(build / "python"),
                    "OPENBLAS_NUM_THREADS": "1",
                    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
                    "UBSAN_OPTIONS": "abort_on_error=1:print_stacktrace=1"}

    def ask(self, execution):
        words = tuple(self.words[execution.tool])
        if words not in self.children:
            self.children[words] = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env,
                                                    text=True)
        child = self.children[words]
        request = {"tool": execution.tool, "args": execution.args, "folder": str(self.folder),
                   "cpu_s": 300 if self.sanitized else 40, "wall_s": 600, "memory_mb": 0 if self.sanitized else 4096}
        print(json.dumps(request), file=child.stdin, flush=True)
        return json.loads(child.stdout.readline())

    def fill(self, files):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, data in files.items():
            (self.folder / name).write_bytes(data)

    def clean(self, given):
        for entry in os.scandir(self.folder):
            if entry.name not in given and not entry.name.startswith("kept"):
                shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)

    def close(self):
        for child in self.children.values():
            child.stdin.close()
            child.wait()


def follows(execution):
    """Whether it needs what the execution before it has written."""
    return execution.tool == "c" and execution.args[0] == "bundle"


def run_case(servers, case):
    """[(execution, outcome, finding or None)]; outputs of both backends are compared."""
    servers.fill(case.files)
    results, ran = [], {}
    odd = any(checks.is_odd(data) for name, data in case.files.items() if name.endswith(".npy"))
    for execution in case.executions:
        bundle = follows(execution)
        if not bundle:
            servers.clean(case.files)
        given = set(case.files) | (set(checks.files_below(servers.folder)) if bundle else set())
        outcome = servers.ask(execution)
        finding = checks.check(execution, outcome, servers.folder, given)
        if execution.tool == "aglow" and execution.args[0] == "run" and outcome["code"] == 0:
            backend = option(execution, "--backend")
            if (servers.folder / "out").is_dir():
                ran[backend] = f"kept-{backend}"
                os.rename(servers.folder / "out", servers.folder / ran[backend])
            if len(ran) == 2 and not finding:
                finding = checks.compare(servers.folder, ran["interpreter"], ran["cpu"], odd)
        results.append((execution, outcome, finding))
    return results


def store(folder, case, execution, finding, servers, seconds):
    """Keeps a finding, as small as it gets in some seconds."""
    files = case.files

    def shows(files, execution):
        found = run_case(servers, commands.Case(case.seed, files, before + [execution]))[-1][2]
        return found is not None and found.kind == finding.kind and found.signature[:60] == finding.signature[:60]

    at = case.executions.index(execution)
    before = []
    if follows(execution):
        before = case.executions[at - 1:at]
    elif finding.kind == "differs":
        before = case.executions[:1]
    if not before:
        files, execution = minimize.minimize(files, execution, shows, seconds)
    servers.fill(files)
    found = run_case(servers, commands.Case(case.seed, files, before + [execution]))[-1]
    errors = checks.read(servers.folder, "stderr.txt")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    everything = [[e.tool, e.args] for e in before + [execution]]
    (folder / "case.json").write_text(json.dumps({"seed": case.seed, "finding": finding.detail, "kind": finding.kind,
                                                  "outcome": found[1], "executions": everything}, indent=1))
    lines = [shlex.join([tool, *args]) for tool, args in everything]
    (folder / "stderr").write_text("\n".join(lines) + "\n\n" + errors)


def option(execution, name):
    """The word after an option, or nothing."""
    words = execution.args
    return words[words.index(name) + 1] if name in words[:-1] else ""


def label(execution):
    if execution.tool != "aglow":
        return f"{execution.tool} {execution.args[0]}" if execution.tool == "c" else "python"
    command = execution.args[0]
    backend = option(execution, "--backend") if command in ("run", "bench") else ""
    code = {"bundle", "so", "obj", "asm", "llvm"} & set(option(execution, "--emit").split(","))
    return " ".join(filter(None, [command, backend, "code" if command == "compile" and code else ""]))


def work(number, options, all_seeds, queue, known):
    """One of several processes, each with every `jobs`-th case. One that fails is missed by none of the others."""
    try:
        run_cases(number, options, all_seeds, queue, known)
        queue.put(None)
    except Exception:
        queue.put(f"worker {number} failed:\n{traceback.format_exc()}")


def run_cases(number, options, all_seeds, queue, known):
    servers = Servers(options.build, options.work / str(number))
    done, index = 0, number
    deadline = time.monotonic() + options.seconds if options.seconds else None
    while done * options.jobs < options.executions and (deadline is None or time.monotonic() < deadline):
        random = randoms.Random(f"{options.seed}/{index}")
        case = commands.make(random, all_seeds)
        rows = []
        for execution, outcome, finding in run_case(servers, case):
            rows.append((label(execution), outcome["code"], outcome["cpu_s"], outcome["peak_mb"],
                         finding and (finding.kind, finding.detail, finding.signature), index))
            done += 1
            if finding and finding.signature not in known:
                known[finding.signature] = index
                name = f"{finding.kind}-{hashlib.sha256(finding.signature.encode()).hexdigest()[:8]}"
                store(options.folder / "findings" / name, case, execution, finding, servers, options.minimize)
        queue.put(rows)
        index += options.jobs
    servers.close()


class Table:
    """What ran and how it ended, per tool and command."""

    def __init__(self):
        self.codes, self.cpu = collections.defaultdict(collections.Counter), collections.Counter()
        self.findings, self.slowest, self.largest, self.count = collections.Counter(), [], 0, 0

    def add(self, rows):
        for name, code, cpu, peak, finding, index in rows:
            self.count += 1
            self.codes[name][code] += 1
            self.cpu[name] += cpu
            self.slowest = sorted(self.slowest + [(round(cpu, 1), name, index)], reverse=True)[:5]
            self.largest = max(self.largest, peak)
            if finding:
                self.findings[finding[2]] += 1

    def text(self):
        codes = sorted({code for counts in self.codes.values() for code in counts})
        lines = [f"{'':22}{'total':>8}{'ms each':>9}" + "".join(f"{code:>8}" for code in codes)]
        for name in sorted(self.codes):
            counts = self.codes[name]
            total = counts.total()
            lines.append(f"{name:22}{total:>8}{1000 * self.cpu[name] / total:>9.1f}" +
                         "".join(f"{counts[code] or '':>8}" for code in codes))
        sums = collections.Counter()
        for counts in self.codes.values():
            sums += counts
        lines.append(f"{'all':22}{self.count:>8}{1000 * self.cpu.total() / max(1, self.count):>9.1f}" +
                     "".join(f"{sums[code]:>8}" for code in codes))
        lines.append(f"most memory {self.largest} MB; slowest: " +
                     ", ".join(f"{cpu} s {name} (case {index})" for cpu, name, index in self.slowest))
        return "\n".join(lines)


def compile_with(servers):
    def compile_to(seed, options):
        servers.fill(seed.files)
        servers.ask(commands.Execution("aglow", ["compile", seed.model, *options, "-o", "out"]))
        out = servers.folder / "out"
        return {path.name: path.read_bytes() for path in sorted(out.iterdir(), reverse=True)} if out.is_dir() else {}
    return compile_to


def replay(options):
    servers = Servers(options.build, options.folder / "replay")
    failed = 0
    for path in sorted(options.replay.rglob("case.json")):
        record = json.loads(path.read_text())
        files = {file.name: file.read_bytes() for file in sorted(path.parent.iterdir())
                 if file.name not in ("case.json", "stderr")}
        executions = [commands.Execution(*pair) for pair in record["executions"]]
        found = [finding for _, _, finding in run_case(servers, commands.Case("", files, executions)) if finding]
        print(f"{path.parent.name}: {found[0].kind + ': ' + found[0].detail[:300] if found else 'holds'}")
        failed += bool(found)
    servers.close()
    return failed


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=50000)
    parser.add_argument("--seconds", type=float, help="ends earlier")
    parser.add_argument("--seed", default="1")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="what to test")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build/mutation", help="for findings")
    parser.add_argument("--shared", type=pathlib.Path, default=ROOT.parent / "shared", help="a folder of models")
    parser.add_argument("--minimize", type=float, default=30, help="seconds for each finding")
    parser.add_argument("--replay", type=pathlib.Path, help="runs the findings in this folder again")
    parser.add_argument("--case", type=int, help="runs this one case, and leaves its files")
    return parser.parse_args()


def show_case(options, all_seeds):
    servers = Servers(options.build, options.folder / "case")
    case = commands.make(randoms.Random(f"{options.seed}/{options.case}"), all_seeds)
    print(case.seed)
    for execution, outcome, finding in run_case(servers, case):
        print(shlex.join([execution.tool, *execution.args]), outcome, finding or "", sep="\n  ")
    servers.close()


def main():
    options = arguments()
    options.build, options.folder = options.build.resolve(), options.folder.resolve()
    if options.replay:
        return 1 if replay(options) else 0
    # In memory where that is possible: the program waits for the disk at the end of each file.
    work_in = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    options.work = pathlib.Path(work_in.name)
    servers = Servers(options.build, options.work / "0")
    all_seeds = seeds.collect(ROOT / "build/onnx-cases", options.shared, compile_with(servers))
    servers.close()
    print(f"seeds: {seeds.summary(all_seeds)}", flush=True)
    if options.case is not None:
        return show_case(options, all_seeds)
    shutil.rmtree(options.folder / "findings", ignore_errors=True)
    context = multiprocessing.get_context("fork")
    queue, table, start = context.Queue(), Table(), time.monotonic()
    with context.Manager() as manager:
        known = manager.dict()
        workers = [context.Process(target=work, args=(i, options, all_seeds, queue, known))
                   for i in range(options.jobs)]
        for worker in workers:
            worker.start()
        open_ends, failures, shown = len(workers), [], time.monotonic()
        while open_ends:
            rows = queue.get()
            if rows is None or isinstance(rows, str):
                open_ends -= 1
                failures += [rows] if rows else []
                continue
            table.add(rows)
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                kinds = f"{len(table.findings)} kinds of findings"
                print(f"{table.count} executions, {kinds}, {shown - start:.0f} s", flush=True)
        for worker in workers:
            worker.join()
    print(table.text())
    for signature, count in table.findings.most_common():
        print(f"{count:6}  {signature}")
    print(f"{table.count} executions in {time.monotonic() - start:.0f} s, {table.findings.total()} findings of "
          f"{len(table.findings)} kinds" + (f" in {options.folder / 'findings'}" if table.findings else ""))
    print(*failures, sep="\n", end="")
    return 1 if table.findings or failures else 0


if __name__ == "__main__":
    sys.exit(main())
