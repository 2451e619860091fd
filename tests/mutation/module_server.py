"""Uses the Python module right and wrong: forks for each execution, as server.cpp does for the program."""
import json
import os
import random as randoms
import resource
import select
import signal
import sys
import time
import traceback

import numpy as np

import aglow

BROKEN = 70  # the module broke its own word


def odd_array(random, array):
    return random.choice([
        lambda: array,
        lambda: np.asfortranarray(array),
        lambda: array[..., ::-1] if array.ndim else array,
        lambda: array.astype("f8") if array.dtype.kind in "fiub" else array,
        lambda: array.tolist(),
        lambda: None,
        lambda: "word",
        lambda: np.broadcast_to(array.flat[0], array.shape) if array.size else array,
        lambda: array[None],
        lambda: [array],
        lambda: array.astype(array.dtype.newbyteorder()) if array.dtype.kind in "fiu" else array,
        lambda: 3,
        lambda: object(),
    ])()


def arrays_of(model, random):
    generator = np.random.default_rng(random.randrange(1 << 32))
    odd, arrays = random.random() < 0.3, {}
    for spec in model.inputs:
        shape = [d if isinstance(d, int) and 0 <= d < 4096 else 2 for d in spec.shape or ()]
        dtype = spec.dtype or np.dtype("f4")
        if np.prod(shape, dtype=float) > 1 << 20 or spec.has_default and random.random() < 0.5:
            continue
        array = generator.uniform(-1, 1, shape) if dtype.kind in "fV" else generator.integers(0, 3, shape)
        array = array.astype(dtype)
        arrays[spec.name] = odd_array(random, array) if odd else [array] if spec.is_sequence else array
    return arrays


def options_of(random):
    options = {"cache": False, "memory_limit": 256 << 20}
    while random.random() < 0.25:
        options.update(random.choice([
            {"threads": random.choice([1, 2, 0, -1, "x"])}, {"opt_level": random.choice([0, 3, 9, -1])},
            {"dims": {"batch": random.choice([2, 0, -1, 1 << 62, (1, 2), ()])}}, {"pad": True},
            {"shapes": {"x": random.choice([(2, 3), (), (-1,), (1 << 40,)])}}, {"disable": ["share"]},
            {"disable": ["no"]}, {"memory_limit": random.choice([1, 0, -1])}, {"values": {"x": 1}},
            {"backend": "none"}, {"init": b"\x0a"}]))
    return options


def use(path, seed, backend):
    random = randoms.Random(int(seed))
    binary = not path.endswith((".graph", ".ir")) and random.random() < 0.5
    source = path
    if binary:
        with open(path, "rb") as file:
            source = file.read()
    options = {"backend": backend, **options_of(random)}
    folder = os.path.dirname(path) or "."
    init = [name for name in os.listdir(folder) if name.startswith("init.")]
    if init and "init" not in options:
        options["init"] = init[0]
        if binary:
            with open(init[0], "rb") as file:
                options["init"] = file.read()
    model = aglow.compile(source, **options)
    repr(model)
    arrays = arrays_of(model, random)
    first = model.run(arrays)
    # State, as the counters of what draws, begins anew with the model.
    again = aglow.compile(source, **options).run(arrays) if random.random() < 0.5 else first
    for name, value in first.items():
        if isinstance(value, np.ndarray) and value.tobytes() != again[name].tobytes() and value.dtype != object:
            raise AssertionError(f"two first runs differ in '{name}'")
    if random.random() < 0.2:
        model.graph(random.choice(["import", "optimize", "layout", "nothing"]))
        model.program(random.choice(["memory", "fuse"]))
    if random.random() < 0.1:
        model.export("out.onnx", "optimize")


def execute(request):
    os.setpgid(0, 0)
    os.chdir(request["folder"])
    for name, to in (("stdout.txt", 1), ("stderr.txt", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), to)
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, request["cpu_s"]),
                       (resource.RLIMIT_AS, request["memory_mb"] << 20)):
        if most or what == resource.RLIMIT_CORE:
            resource.setrlimit(what, (most, most))
    try:
        use(*request["args"])
    except aglow.Error as error:
        print(error, file=sys.stderr)
        return error.exit
    except (TypeError, OverflowError) as error:  # as Python refuses arguments of another type
        if traceback.extract_tb(error.__traceback__)[-1].name in ("use", "options_of", "arrays_of", "odd_array"):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1
    except MemoryError:
        print("[E402] memory", file=sys.stderr)
        return 4
    return 0


def serve(request):
    start, late = time.monotonic(), False
    child = os.fork()
    if child == 0:
        code = BROKEN
        try:
            code = execute(request)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    handle = os.pidfd_open(child)
    if not select.select([handle], [], [], request["wall_s"])[0]:
        late = True
        os.kill(child, signal.SIGKILL)
    os.close(handle)
    _, status, usage = os.wait4(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "late": late, "cpu_s": usage.ru_utime + usage.ru_stime,
            "wall_s": time.monotonic() - start, "peak_mb": usage.ru_maxrss >> 10}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
