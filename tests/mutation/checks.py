"""What must hold for every execution, and for two backends on the same mutant."""
import dataclasses
import io
import json
import os
import re
import signal
import subprocess

import numpy as np

EXITS = {0, 1, 2, 3, 4, 5, 6, 8}
ERROR = re.compile(r"^(?:error)?\[E(\d)\d\d\]", re.M)


@dataclasses.dataclass
class Finding:
    kind: str  # signal, hang, exit, silent, left-over, output, differs
    detail: str

    @property
    def signature(self):
        """The same for the same fault in other mutants, as far as words tell."""
        words = re.sub(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|-?\d[\d.e+-]*|\[[^\]]*\]|\S*/\S+", "_", self.detail)
        return f"{self.kind}: {words[:160]}"


def read(folder, name, most=1 << 16):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read(most)
    except OSError:
        return ""


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(path, name), folder)
                  for path, _, names in os.walk(folder) for name in names)


def left_over(folder, given, failed):
    """Files that nobody asked for. What passes dump and what a cache keeps may stay after a failure."""
    for name in files_below(folder):
        if name in given or name in ("stdout.txt", "stderr.txt"):
            continue
        temporary = name.endswith(".tmp") or "/.aglow" in f"/{name}"
        if temporary or failed and not name.startswith(("dump/", "cache/", "kept")):
            what = "a temporary file" if temporary else "a file after a failure"
            return Finding("left-over", f"{what}: *{os.path.splitext(name)[1]}")
    return None


def ending(execution, outcome, errors):
    """How it ended: no signal, no hang, a code that is documented, and a message that goes with it."""
    code, tool = outcome["code"], execution.tool
    command = execution.args[0] if tool == "aglow" else tool
    if outcome["late"] or code == -signal.SIGXCPU:
        return Finding("hang", f"{command}: more than {outcome['cpu_s']:.0f} s of processor time")
    if code < 0:
        return Finding("signal", f"{signal.Signals(-code).name} in {command}: {errors.strip()[-300:]}")
    if code not in EXITS:
        lines = errors.strip().splitlines() or [""]
        first = next((line for line in lines if "E7" in line or "broken" in line), lines[-1])
        return Finding("exit", f"{code} in {command}: {first}")
    if code == 0 or tool == "c" and execution.args[0] == "bundle" or tool == "python" and code == 1:
        return None
    if not errors.strip():
        return Finding("silent", f"exit {code} in {command} without a message")
    if str(code) not in ERROR.findall(errors) and (tool, errors.strip()) != ("c", "out of memory"):
        return Finding("silent", f"exit {code} in {command} with the message of another: {errors.strip()[:200]}")
    return None


def output(execution, outcome, folder):
    if outcome["code"] != 0 or execution.tool != "aglow":
        return None
    if "--json" in execution.args and not {"--print-after"} & set(execution.args):
        try:
            with open(os.path.join(folder, "stdout.txt"), encoding="utf-8") as file:
                json.load(file)
        except ValueError as fault:
            return Finding("output", f"{execution.args[0]} --json: {fault}")
    headers = [name for name in files_below(os.path.join(folder, "out")) if name.endswith(".h")]
    for name in headers if execution.args[0] == "compile" else ():
        words = ["cc", "-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror", "-x", "c", "-std=c99"]
        done = subprocess.run([*words, os.path.join(folder, "out", name)], capture_output=True, text=True)
        if done.returncode:
            return Finding("output", f"header: {done.stderr.strip().splitlines()[0]}")
    return None


def check(execution, outcome, folder, given):
    errors = read(folder, "stderr.txt")
    return (ending(execution, outcome, errors) or output(execution, outcome, folder) or
            left_over(folder, given, outcome["code"] != 0))


# ---- two backends

TOLERANCES = {"f8": (1e-5, 1e-3), "f4": (1e-5, 1e-3), "f2": (1e-3, 1e-2)}


def is_odd(data):
    """Whether a .npy file holds values that are not finite, or so large that sums of them are not."""
    try:
        array = np.load(io.BytesIO(data))
    except Exception:  # numpy raises all kinds on damaged files
        return True
    with np.errstate(all="ignore"):
        return array.dtype.kind == "f" and not (abs(array.astype("f4")) < 1e18).all()


def compare(folder, one, other, odd):
    """The outputs of two runs, as `aglow verify` compares them; tolerances grow with the largest element. `odd`: inputs
    have infinities or NaN, of which rules of the optimizer may make another value."""
    names = files_below(os.path.join(folder, one))
    if names != files_below(os.path.join(folder, other)):
        return Finding("differs", f"files {names} and {files_below(os.path.join(folder, other))}")
    for name in names:
        if not name.endswith(".npy"):
            continue
        a, b = (np.load(os.path.join(folder, where, name)) for where in (one, other))
        if a.shape != b.shape or a.dtype != b.dtype:
            return Finding("differs", f"{name}: {a.dtype}{a.shape} and {b.dtype}{b.shape}")
        if a.dtype.kind != "f":
            # Bits of narrow floats look like integers: these may be one step apart.
            near = 1 if a.dtype.kind == "u" else 0
            same = a == b if a.dtype.kind in "bSU" else abs(a.astype(float) - b.astype(float)) <= near
        else:
            finite = abs(a[np.isfinite(a)].astype(float))
            atol, rtol = TOLERANCES[a.dtype.str[1:]]
            same = np.isclose(b, a, rtol, atol * max(1.0, finite.max(initial=0)), equal_nan=True)
            same |= odd & ~(np.isfinite(a) & np.isfinite(b))
        if not same.all():
            at = tuple(np.argwhere(~np.atleast_1d(same))[0])
            values = f"{np.atleast_1d(a)[at]} and {np.atleast_1d(b)[at]}"
            where = tuple(map(int, at))
            return Finding("differs", f"{a.dtype}: {values} at {where} of {name}, {(~same).sum()} of {a.size}")
    return None
