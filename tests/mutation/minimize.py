"""Makes a case smaller while it still shows the same fault: fewer words, then a smaller model."""
import time

from commands import Execution
from seeds import proto_of


def without(items, start, length):
    return items[:start] + items[start + length:]


def fewer(items, fails, deadline):
    """Drops parts of a list, large ones first."""
    length = max(1, len(items) // 2)
    while items and time.monotonic() < deadline:
        start = 0
        while start < len(items) and time.monotonic() < deadline:
            smaller = without(items, start, length)
            if fails(smaller):
                items = smaller
            else:
                start += length
        if length == 1:
            break
        length //= 2
    return items


def smaller_onnx(data, fails, deadline):
    model = proto_of(data)
    if model is None or not fails(model.SerializeToString()):
        return fewer_bytes(data, fails, deadline)

    def shrink(owner, field):
        # Protobuf copies what it takes, and lets go of what it clears.
        items = [copy_of(item) for item in getattr(owner, field)]

        def put(kept):
            owner.ClearField(field)
            getattr(owner, field).extend(kept)

        def still(kept):
            put(kept)
            return fails(model.SerializeToString())

        put(fewer(items, still, deadline))

    for field in ("functions", "opset_import"):
        shrink(model, field)
    for field in ("node", "initializer", "value_info", "output", "input"):
        shrink(model.graph, field)
    for node in model.graph.node:
        for field in ("attribute", "input", "output"):
            shrink(node, field)
    return model.SerializeToString()


def copy_of(item):
    if not hasattr(item, "CopyFrom"):
        return item
    out = type(item)()
    out.CopyFrom(item)
    return out


def fewer_bytes(data, fails, deadline):
    return b"".join(fewer([bytes([byte]) for byte in data], lambda parts: fails(b"".join(parts)), deadline))


def fewer_lines(data, fails, deadline):
    return b"".join(fewer(data.splitlines(keepends=True), lambda lines: fails(b"".join(lines)), deadline))


def minimize(files, execution, shows, seconds):
    """(files, execution), smaller; `shows(files, execution)` says whether the fault is still there."""
    deadline = time.monotonic() + seconds
    if not shows(files, execution):
        return files, execution
    fixed = 2 if execution.tool == "aglow" else len(execution.args)
    head = execution.args[:fixed]
    words = fewer(execution.args[fixed:], lambda kept: shows(files, Execution(execution.tool, head + kept)), deadline)
    execution = Execution(execution.tool, head + words)
    name = next(iter(files))
    way = smaller_onnx if name.endswith(".onnx") else \
        fewer_lines if name.endswith((".graph", ".ir", ".pbtxt")) else fewer_bytes
    model = way(files[name], lambda data: shows({**files, name: data}, execution), deadline)
    return {**files, name: model}, execution
