"""Caffe2 nets for tests, written in protobuf's text and binary forms without Caffe2.

net = Net("relu", [Op("Relu", ["x"], ["y"])], ["x"], ["y"]); net.text(), net.binary()
"""
import dataclasses
import struct

FLOATS, INTS = 5, 6


@dataclasses.dataclass
class Op:
    type: str
    inputs: list
    outputs: list
    args: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Net:
    name: str
    ops: list
    inputs: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)

    def text(self):
        lines = [f"name: {quoted(self.name)}"]
        for op in self.ops:
            lines.append("op {")
            lines += [f"  input: {quoted(blob)}" for blob in op.inputs]
            lines += [f"  output: {quoted(blob)}" for blob in op.outputs]
            lines.append(f"  type: {quoted(op.type)}")
            for name, value in op.args.items():
                lines.append(f"  arg {{ name: {quoted(name)} {' '.join(text_value(value))} }}")
            lines.append("}")
        lines += [f"external_input: {quoted(blob)}" for blob in self.inputs]
        lines += [f"external_output: {quoted(blob)}" for blob in self.outputs]
        return "\n".join(lines) + "\n"

    def binary(self):
        out = field(1, self.name)
        for op in self.ops:
            body = b"".join(field(1, blob) for blob in op.inputs) + b"".join(field(2, blob) for blob in op.outputs)
            body += field(4, op.type)
            for name, value in op.args.items():
                body += field(5, field(1, name) + binary_value(value))
            out += field(2, body)
        return out + b"".join(field(7, b) for b in self.inputs) + b"".join(field(8, b) for b in self.outputs)


def quoted(text):
    data = text if isinstance(text, bytes) else text.encode()
    return '"' + "".join(f"\\{byte:03o}" if byte < 32 or byte > 126 or chr(byte) in "\"\\" else chr(byte)
                         for byte in data) + '"'


def text_value(value):
    if isinstance(value, Net):
        return ["n {", value.text(), "}"]
    if isinstance(value, (list, tuple)):
        names = {float: "floats", int: "ints", str: "strings", bytes: "strings"}
        return [f"{names[type(item)]}: {quoted(item) if isinstance(item, (str, bytes)) else repr(item)}"
                for item in value]
    if isinstance(value, (str, bytes)):
        return [f"s: {quoted(value)}"]
    return [f"f: {value!r}" if isinstance(value, float) else f"i: {int(value)}"]


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, payload):
    data = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(at, value):
    """A float or an int in a field that is not packed, as Caffe2 writes them."""
    if isinstance(value, float):
        return varint(at << 3 | 5) + struct.pack("<f", value)
    return varint(at << 3) + varint(int(value))


def binary_value(value):
    if isinstance(value, Net):
        return field(8, value.binary())
    if isinstance(value, (list, tuple)):
        return b"".join(field(7, item) if isinstance(item, (str, bytes))
                        else number(FLOATS if isinstance(item, float) else INTS, item) for item in value)
    if isinstance(value, (str, bytes)):
        return field(4, value)
    return number(2 if isinstance(value, float) else 3, value)


def fill(name, array):
    """The operator that gives a blob its values."""
    kinds = {"f4": ("GivenTensorFill", float), "i4": ("GivenTensorIntFill", int), "i8": ("GivenTensorInt64Fill", int),
             "b1": ("GivenTensorBoolFill", int)}
    shape = [int(extent) for extent in array.shape]
    if array.dtype.str[1:] == "u1":
        return Op("GivenTensorByteStringToUInt8Fill", [], [name], {"shape": shape, "values": [array.tobytes()]})
    op, kind = kinds[array.dtype.str[1:]]
    return Op(op, [], [name], {"shape": shape, "values": [kind(value) for value in array.ravel()]})
