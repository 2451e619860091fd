"""Builders of models that break a rule, and the check that the program refuses them as it should."""
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
ERROR_LINE = re.compile(r"^error\[E[1-689]\d\d\] ", re.M)
MESSAGE_LIMIT = 64 << 10


def model(nodes, inputs=(), constants=(), outputs=("y",), opsets=(("", 17),), functions=()):
    """A model; `inputs` maps names to arrays, `constants` maps names to arrays or is a list of TensorProto."""
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
              for name, a in dict(inputs).items()]
    tensors = ([numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()]
               if isinstance(constants, dict) else list(constants))
    results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "graph", values, results, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*pair) for pair in opsets], ir_version=8,
                             functions=list(functions))


def node(kind, inputs, outputs=("y",), name="culprit", **attributes):
    return helper.make_node(kind, list(inputs), list(outputs), name=name, **attributes)


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


# ---- protobuf by hand, for what the onnx package refuses to write

def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, payload):
    """A number, or bytes with their length."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    if isinstance(payload, str):
        payload = payload.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def raw_model(graph):
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def raw_node(kind, inputs, outputs, attributes=b"", name="n"):
    return field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name) +
                 field(4, kind) + attributes)


def raw_subgraph(name, graph):
    """An attribute of a node that holds a graph."""
    return field(5, field(1, name) + field(6, graph) + field(20, onnx.AttributeProto.GRAPH))


# ---- the check

class Refusal:
    """Runs the program on a bad model and checks the manner of its refusal."""

    def __init__(self, aglow, folder, sanitized):
        self.aglow, self.folder, self.out = aglow, folder, folder / "out"
        # A sanitized build keeps freed memory for a while and is several times slower.
        self.slow = 4 if sanitized else 1

    def write(self, content, name="model.onnx"):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
        return path

    def run(self, content, inputs=(), options=(), **limits):
        """`aglow run` on a model (bytes, ModelProto or path), with arrays as inputs."""
        path = content if hasattr(content, "is_file") else self.write(content)
        arguments = []
        for number, (name, array) in enumerate(dict(inputs).items()):
            file = self.folder / f"input_{number}.npy"
            np.save(file, array)
            arguments += ["--input", f"{name}={file}"]
        limits.setdefault("timeout", 20 * self.slow)
        limits.setdefault("memory_mb", 2048)
        return self.aglow("run", path, *arguments, *options, "--output-dir", self.out, **limits)

    def inspect(self, content):
        return self.aglow("inspect", self.write(content), timeout=20 * self.slow, memory_mb=2048)

    def check(self, outcome, codes, *words, peak_mb=600):
        """Asserts a code of `codes`, a message with all `words`, no output, and bounded time and memory."""
        said = f"code {outcome.code}, stderr: {outcome.err[:2000]}"
        assert not outcome.timed_out, "the program hangs"
        assert outcome.code in codes, said
        assert ERROR_LINE.search(outcome.err), said
        assert len(outcome.err) < MESSAGE_LIMIT, f"{len(outcome.err)} bytes of message"
        for word in words:
            assert word in outcome.err, f"'{word}' is not named; {said}"
        assert outcome.out == "", outcome.out[:500]
        left = sorted(path.name for path in self.out.rglob("*")) if self.out.is_dir() else []
        assert left == [], f"output was left behind: {left}"
        assert outcome.peak_mb < peak_mb * self.slow, f"{outcome.peak_mb:.0f} MB of memory"

    def refuse(self, content, codes, *words, inputs=(), options=(), **limits):
        self.check(self.run(content, inputs, options, **limits), codes, *words)
