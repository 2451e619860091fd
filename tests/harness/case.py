"""One test case on disk (a model, inputs as the program's files, expected outputs) and its run through the program.

The folder of a case holds, for each data set k, the inputs k/in_<i> and the expected outputs k/out_<i>.
The record of a case is JSON: {"inputs": [[[name, file], ...] per set], "outputs": [element type, ...],
"expected": number of outputs given per set, "rtol": ..., "atol": ...}.
"""
import dataclasses
import filecmp
import os
import shlex
import tempfile

from harness import process, tensors

# How a case may end. The last three are faults of the program, whatever was expected of the case.
PASS, UNSUPPORTED, WRONG = "pass", "unsupported", "wrong"
ERROR, CRASH, HANG = "error", "crash", "hang"
FAULTS = (ERROR, CRASH, HANG)
VERDICTS = (PASS, UNSUPPORTED, WRONG) + FAULTS
NOT_SUPPORTED_CODE = 3


@dataclasses.dataclass
class Verdict:
    kind: str
    detail: str
    seconds: float


def write_case(folder, model, sets, rtol, atol):
    """Writes the data of a case below `folder` and returns its record. `sets` has (inputs, outputs) for each set."""
    preset = {tensor.name for tensor in model.graph.initializer}
    free = [value for value in model.graph.input if value.name not in preset]
    record = {"inputs": [], "expected": [], "rtol": rtol, "atol": atol,
              "outputs": [tensors.element_type(value.type) for value in model.graph.output]}
    for number, (inputs, outputs) in enumerate(sets):
        where = os.path.join(folder, str(number))
        os.makedirs(where)
        # A data set that covers more than the free inputs means all of them.
        slots = free if len(inputs) <= len(free) else model.graph.input
        files = [[slot.name, tensors.save(os.path.join(where, f"in_{i}"), tensors.from_proto(value))]
                 for i, (slot, value) in enumerate(zip(slots, inputs))]
        record["inputs"].append([[name, os.path.relpath(file, folder) if file != "@none" else file]
                                 for name, file in files])
        for i, value in enumerate(outputs):
            if tensors.save(os.path.join(where, f"out_{i}"), tensors.from_proto(value)) == "@none":
                open(os.path.join(where, f"out_{i}.none"), "wb").close()
        record["expected"].append(len(outputs))
    return record


def run_case(command, model, folder, record, *, timeout, memory_mb, identical=None):
    """Runs all data sets of a case; the first one that does not pass decides. A second command, if there is one, has to
    write the same bytes."""
    seconds = 0.0
    for number, inputs in enumerate(record["inputs"]):
        arguments = [*shlex.split(command), os.fspath(model)]
        for name, file in inputs:
            arguments += ["--input", f"{name}={file if file == '@none' else os.path.join(folder, file)}"]
        with tempfile.TemporaryDirectory(prefix="aglow_case_") as out:
            outcome = process.run(arguments + ["--output-dir", out], timeout=timeout, memory_mb=memory_mb)
            seconds += outcome.seconds
            verdict = judge(outcome, timeout)
            if verdict is None:
                try:
                    for i in range(record["expected"][number]):
                        element = record["outputs"][i]
                        expected = tensors.load(os.path.join(folder, str(number), f"out_{i}"), element)
                        got = tensors.load(os.path.join(out, str(i)), element)
                        tensors.compare(expected, got, record["rtol"], record["atol"], f"output {i}")
                except tensors.Mismatch as error:
                    verdict = WRONG, str(error)
            if verdict is None and identical:
                again = [*shlex.split(identical), *arguments[len(shlex.split(command)):]]
                verdict = differs(again, out, timeout, memory_mb)
        if verdict:
            return Verdict(*verdict, round(seconds, 3))
    return Verdict(PASS, "", round(seconds, 3))


def differs(arguments, folder, timeout, memory_mb):
    """(kind, detail) unless the command writes the files of the folder, byte by byte."""
    with tempfile.TemporaryDirectory(prefix="aglow_case_") as out:
        verdict = judge(process.run(arguments + ["--output-dir", out], timeout=timeout, memory_mb=memory_mb), timeout)
        if verdict:
            return verdict
        comparison = filecmp.dircmp(folder, out)
        other = comparison.left_only + comparison.right_only + comparison.funny_files
        _, changed, unreadable = filecmp.cmpfiles(folder, out, comparison.common_files, shallow=False)
        other += changed + unreadable
        return (WRONG, f"{', '.join(sorted(other))} differ with: {shlex.join(arguments)}"[:400]) if other else None


def judge(outcome, timeout):
    """(kind, detail) of a run that wrote no outputs to compare, else None."""
    lines = [line.strip() for line in outcome.err.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith("error[")), lines[-1] if lines else "")[:400]
    if outcome.timed_out:
        return HANG, f"still running after {timeout:g} s"
    if outcome.code < 0:
        return CRASH, f"{outcome.signal}: {lines[0][:300] if lines else ''}"
    if outcome.code == NOT_SUPPORTED_CODE:
        return UNSUPPORTED, said
    if outcome.code != 0:
        return ERROR, f"exit code {outcome.code}: {said}"
    return None
