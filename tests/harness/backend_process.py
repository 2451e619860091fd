"""Cases run through a Python backend (onnx.backend.base.Backend), in processes of their own that serve many cases.

`run_case` is the caller's side; the module run as a program, `python -m harness.backend_process MODULE[:CLASS]`, is the
other: it reads a case per line as JSON and answers with a verdict per line.
"""
import importlib
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

from harness import case, tensors

_own = threading.local()


class BackendProcess:
    """A process that loads a backend and runs one case after the other; a new one takes its place when it dies."""

    def __init__(self, spec, memory_mb):
        folder = str(pathlib.Path(__file__).resolve().parents[1])
        limits = ["prlimit", "--core=0"] + ([f"--as={memory_mb << 20}"] if memory_mb else [])
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        self.err = tempfile.TemporaryFile()
        self.child = subprocess.Popen([*limits, "--", sys.executable, "-m", "harness.backend_process", spec],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.err,
                                      env={**os.environ, "PYTHONPATH": path}, start_new_session=True)
        self.said = b""

    def ask(self, request, timeout):
        """The answer, or None when the time is over or the process has died."""
        try:
            self.child.stdin.write(json.dumps(request).encode() + b"\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            return None
        end = time.monotonic() + timeout
        while b"\n" not in self.said:
            if not select.select([self.child.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                return None
            data = os.read(self.child.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.said += data
        line, _, self.said = self.said.partition(b"\n")
        return json.loads(line)

    def end(self):
        """Kills the process, unless it is dead; returns the signal it died of before, and its last words."""
        died = self.child.poll()
        if died is None:
            try:
                died = self.child.wait(0.5)
            except subprocess.TimeoutExpired:
                os.killpg(self.child.pid, signal.SIGKILL)
                self.child.wait()
        self.err.seek(0)
        lines = self.err.read().decode("utf-8", "replace").strip().splitlines()
        return died, lines[-1] if lines else ""


def run_case(spec, model, folder, record, *, timeout, memory_mb):
    """The verdict of one case."""
    if getattr(_own, "process", None) is None:
        _own.process = BackendProcess(spec, memory_mb)
    start = time.monotonic()
    answer = _own.process.ask({"model": os.fspath(model), "folder": folder, "record": record}, timeout)
    seconds = round(time.monotonic() - start, 3)
    if answer is not None:
        return case.Verdict(*answer, seconds)
    died, words = _own.process.end()
    _own.process = None
    if died is None:
        return case.Verdict(case.HANG, f"still running after {timeout:g} s", seconds)
    return case.Verdict(case.CRASH, f"ended with {died}: {words}", seconds)


# ---- the other side

def verdict_of(backend, model_file, folder, record):
    import onnx
    model = onnx.load(model_file)
    element = {value.name: tensors.element_type(value.type) for value in model.graph.input}
    try:
        prepared = backend.prepare(model, "CPU")
        for number, inputs in enumerate(record["inputs"]):
            given = [None if file == "@none" else
                     tensors.load(os.path.join(folder, file.removesuffix(".npy")), element[name]) for name, file in inputs]
            outputs = prepared.run(given)
            for i in range(record["expected"][number]):
                expected = tensors.load(os.path.join(folder, str(number), f"out_{i}"), record["outputs"][i])
                tensors.compare(expected, outputs[i], record["rtol"], record["atol"], f"output {i}")
    except tensors.Mismatch as fault:
        return case.WRONG, str(fault)
    except NotImplementedError as fault:
        return case.UNSUPPORTED, f"error{fault}".splitlines()[0][:400]
    except Exception as fault:
        return case.ERROR, f"{type(fault).__name__}: {fault}"[:400]
    return case.PASS, ""


def main():
    module, _, name = sys.argv[1].partition(":")
    backend = importlib.import_module(module)
    if name:
        backend = getattr(backend, name)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(verdict_of(backend, request["model"], request["folder"], request["record"])), file=answers,
              flush=True)


if __name__ == "__main__":
    main()
