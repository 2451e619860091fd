"""Runs a program under limits of time and memory, and says how it ended."""
import dataclasses
import functools
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time


@dataclasses.dataclass
class Outcome:
    code: int  # the exit code, or minus the signal
    out: str
    err: str
    seconds: float
    cpu_seconds: float  # of all threads; other than `seconds` it hardly depends on what else the machine does
    peak_mb: float
    timed_out: bool

    @property
    def signal(self):
        return signal.Signals(-self.code).name if self.code < 0 else None


@functools.lru_cache
def is_sanitized(program):
    """Whether the program is an AddressSanitizer build, which reserves terabytes of addresses."""
    path = shutil.which(program) or program
    try:
        with open(path, "rb") as file:
            return b"__asan_init" in file.read()
    except OSError:
        return False


def run(command, *, timeout=60.0, memory_mb=None, cwd=None, env=None):
    """Runs `command` in a process group of its own. `memory_mb` limits its address space (not for sanitized builds)."""
    command = [os.fspath(word) for word in command]
    limits = ["prlimit", "--core=0"]
    if memory_mb and not is_sanitized(command[0]):
        limits.append(f"--as={int(memory_mb) << 20}")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        child = subprocess.Popen(limits + ["--"] + command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                                 env=None if env is None else {**os.environ, **env}, start_new_session=True)
        expired = threading.Event()

        def kill():
            expired.set()
            os.killpg(child.pid, signal.SIGKILL)

        timer = threading.Timer(timeout, kill)
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Outcome(child.returncode, *texts, time.monotonic() - start, usage.ru_utime + usage.ru_stime,
                       usage.ru_maxrss / 1024, expired.is_set())


def machine_memory_mb():
    return os.sysconf("SC_PHYS_PAGES") * resource.getpagesize() >> 20
