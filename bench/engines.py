"""The engines that peers.py compares, each in a process of its own, pinned to as many processors as it has threads."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import export_models

HERE = pathlib.Path(__file__).resolve().parent
PEERS = ("onnxruntime", "openvino", "torch")


class Unavailable(Exception):
    """Why an engine cannot take part."""


def pinned(threads):
    """The words before a command that keep it on the first processors."""
    return ["taskset", "-c", ",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:threads])]


def environment(threads):
    return os.environ | {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
                         "TORCHINDUCTOR_CACHE_DIR": str(export_models.ROOT / "build" / "bench-cache")}


def last_lines(text, count=3):
    return " / ".join(text.strip().splitlines()[-count:])


class Aglow:
    """The program; every round compiles again, as it has no process that stays."""

    def __init__(self, model, threads, program, options, streams=1):
        # As many callers as that keep the processors busy with one thread each.
        self.words = [str(export_models.model_file(model)), "--threads", str(threads if streams < threads else 1),
                      *options]
        self.streams = ["--streams", str(streams)] if streams > 1 else []
        for name, path in export_models.input_files(model).items():
            self.words += ["--input", f"{name}={path}"]
        self.command = [*pinned(threads), str(program)]
        self.threads = threads
        self.version = subprocess.run([str(program), "--version"], capture_output=True, text=True,
                                      check=True).stdout.split()[1]
        self.load_s = self.peak_rss_mb = None

    def call(self, command, *words):
        done = subprocess.run([*self.command, command, *self.words, *words], capture_output=True, text=True,
                              env=environment(self.threads), check=False)
        if done.returncode != 0:
            raise Unavailable(last_lines(done.stderr))
        return done.stdout

    def output(self, file):
        import numpy
        with tempfile.TemporaryDirectory() as folder:
            self.call("run", "--output-dir", folder)
            numpy.save(file, numpy.load(pathlib.Path(folder) / "0.npy"))

    def measure(self, seconds):
        found = json.loads(self.call("bench", "--json", "--seconds", str(seconds), *self.streams))
        self.load_s = found["load_s"] + found["compile_s"]
        self.peak_rss_mb = max(found["peak_rss_mb"], self.peak_rss_mb or 0)
        return {"median": found["median_ms"], "best": found["best_ms"], "runs": found["runs"],
                "per_s": found["runs_per_s"]}

    def close(self):
        pass


class Peer:
    """A rival in peer_worker.py."""

    def __init__(self, engine, model, threads, streams=1):
        command = [*pinned(threads), sys.executable, str(HERE / "peer_worker.py"), engine, model, str(threads),
                   str(streams)]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        text=True, env=environment(threads))
        self.peak_rss_mb = None
        hello = self.answer()
        self.version, self.load_s = hello["version"], hello["load_s"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise Unavailable(last_lines(self.errors.read(), 1) or f"ended with {self.process.returncode}")
        return json.loads(line)

    def ask(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def output(self, file):
        self.ask(do="output", file=str(file))

    def measure(self, seconds):
        found = self.ask(do="measure", seconds=seconds)
        self.peak_rss_mb = found["peak_rss_mb"]
        times = found["times_ms"]
        return {"median": statistics.median(times), "best": min(times), "runs": len(times), "per_s": found["per_s"]}

    def close(self):
        self.process.stdin.close()
        self.process.wait()
