"""Mutations of an ONNX model's structure: functions of a graph (the model's or a body's), in the table below."""
import copy

import onnx
from onnx import AttributeProto, TensorProto, helper

from byte_mutations import ODD_NUMBERS

ODD_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-30, 3e38, float("inf"), float("-inf"), float("nan"), 2.5, 1e10]
SMALL = [0, 1, 2, 3, 4, 5, 7, 8, 16, 17]
ELEMENTS = list(range(0, 27)) + [99, -1]


def number(random):
    return random.choice(SMALL if random.random() < 0.6 else ODD_NUMBERS)


def graphs_of(graph):
    """The graph and all bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                if body.node or body.output:
                    yield from graphs_of(body)


def values_of(graph):
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    return names + [name for node in graph.node for name in node.output]


def pick(random, items):
    return random.choice(list(items)) if items else None


# ---- nodes

def drop_node(graph, random, donor):
    if graph.node:
        del graph.node[random.randrange(len(graph.node))]


def repeat_node(graph, random, donor):
    if node := pick(random, graph.node):
        again = copy.deepcopy(node)
        if random.random() < 0.7:
            again.output[:] = [name + "_again" for name in again.output]
            if node.output and random.random() < 0.5:  # so that somebody reads it
                again.input[:] = [node.output[0]] + list(again.input)[1:]
                for value in graph.output:
                    if value.name in node.output:
                        value.name += "_again"
        graph.node.append(again)


def shuffle_nodes(graph, random, donor):
    nodes = [copy.deepcopy(node) for node in graph.node]
    random.shuffle(nodes)
    del graph.node[:]
    graph.node.extend(nodes)


def borrow_node(graph, random, donor):
    """A node of another model that reads values of this one."""
    if donor is None or not donor.graph.node:
        return
    node = copy.deepcopy(random.choice(list(donor.graph.node)))
    names = values_of(graph)
    node.input[:] = [random.choice(names) if names and random.random() < 0.9 else name for name in node.input]
    node.output[:] = [f"{name}_{random.randrange(99)}" for name in node.output]
    known = {tensor.name for tensor in graph.initializer}
    graph.initializer.extend(t for t in donor.graph.initializer if t.name in node.input and t.name not in known)
    graph.node.append(node)
    if node.output and random.random() < 0.8:
        graph.output.append(onnx.ValueInfoProto(name=node.output[0]))


def rename_operator(graph, random, donor):
    if node := pick(random, graph.node):
        other = pick(random, donor.graph.node) if donor else None
        odd = random.choice(["", "relu", node.op_type * 2])
        node.op_type = other.op_type if other and random.random() < 0.8 else odd
        if other and random.random() < 0.5:
            node.domain = other.domain


def change_domain(graph, random, donor):
    if node := pick(random, graph.node):
        node.domain = random.choice(["", "ai.onnx", "ai.onnx.ml", "com.microsoft", "ai.aglow", "nowhere", "\n"])


def change_operands(graph, random, donor):
    node = pick(random, graph.node)
    if node is None:
        return
    names = list(node.input)
    way = random.randrange(6)
    if way == 0 and names:
        del names[random.randrange(len(names))]
    elif way == 1:
        names.insert(random.randrange(len(names) + 1), random.choice(values_of(graph) + ["", "nowhere"]))
    elif way == 2:
        random.shuffle(names)
    elif way == 3 and names:
        names[random.randrange(len(names))] = random.choice(values_of(graph) + ["", "nowhere"])
    elif way == 4:
        names = names * random.choice([2, 3, 40])
    elif names:
        names[random.randrange(len(names))] = ""
    node.input[:] = names


def change_results(graph, random, donor):
    if node := pick(random, graph.node):
        way = random.randrange(4)
        if way == 0 and node.output:
            node.output[random.randrange(len(node.output))] = random.choice(["", *values_of(graph)])
        elif way == 1:
            node.output.append(f"more{random.randrange(9)}")
        elif way == 2 and node.output:
            del node.output[random.randrange(len(node.output))]
        elif node.output:
            graph.output.append(onnx.ValueInfoProto(name=random.choice(list(node.output))))


# ---- attributes

def change_attribute(graph, random, donor):
    nodes = [node for node in graph.node if node.attribute]
    if not nodes:
        return add_attribute(graph, random, donor)
    attribute = random.choice(list(random.choice(nodes).attribute))
    kind = attribute.type
    if kind == AttributeProto.INT:
        attribute.i = number(random)
    elif kind == AttributeProto.FLOAT:
        attribute.f = random.choice(ODD_FLOATS)
    elif kind == AttributeProto.INTS:
        change_list(attribute.ints, random, number(random))
    elif kind == AttributeProto.FLOATS:
        change_list(attribute.floats, random, random.choice(ODD_FLOATS))
    elif kind == AttributeProto.STRING:
        attribute.s = random.choice([b"", b"\xff\x00", b"linear", b"cubic", b"SAME_UPPER", b"VALID", b"reverse",
                                     b"bidirectional"])
    elif kind == AttributeProto.STRINGS:
        change_list(attribute.strings, random, random.choice([b"", b"\xc3", b"Relu", b"BRANCH_LEQ", b"LEAF"]))
    elif kind == AttributeProto.TENSOR:
        change_tensor(attribute.t, random)
    else:
        attribute.type = random.randrange(16)


def change_list(items, random, value):
    way = random.randrange(4)
    if way == 0 or not items:
        items.append(value)
    elif way == 1:
        del items[random.randrange(len(items))]
    elif way == 2:
        items[random.randrange(len(items))] = value
    else:
        items.extend(list(items) * random.choice([1, 1, 20]))


def drop_attribute(graph, random, donor):
    nodes = [node for node in graph.node if node.attribute]
    if nodes:
        attributes = random.choice(nodes).attribute
        del attributes[random.randrange(len(attributes))]


def add_attribute(graph, random, donor):
    """One that the operator may know: of the same operator elsewhere, or of any."""
    node = pick(random, graph.node)
    if node is None or donor is None:
        return
    found = [a for other in donor.graph.node for a in other.attribute]
    if found:
        node.attribute.append(copy.deepcopy(random.choice(found)))
    else:
        name = random.choice(["axis", "axes", "keepdims", "to", "group", "strides", "mode", "k"])
        node.attribute.append(helper.make_attribute(name, random.choice([number(random), [1, 2], 0.5, "x"])))


def change_attribute_type(graph, random, donor):
    nodes = [node for node in graph.node if node.attribute]
    if nodes:
        random.choice(list(random.choice(nodes).attribute)).type = random.randrange(16)


# ---- tensors and types

def change_tensor(tensor, random):
    way = random.randrange(8)
    if way == 0:
        change_list(tensor.dims, random, number(random))
    elif way == 1:
        tensor.data_type = random.choice(ELEMENTS)
    elif way == 2 and tensor.raw_data:
        data = bytearray(tensor.raw_data)
        at = random.randrange(len(data))
        width = random.choice([1, 4, 8])
        data[at:at + width] = random.choice([bytes(width), b"\xff" * width, b"\0\0\xc0\x7f", b"\0\0\x80\xff",
                                             (random.choice(SMALL)).to_bytes(width, "little")])
        tensor.raw_data = bytes(data)
    elif way == 3:
        tensor.raw_data = random.choice([b"", tensor.raw_data[:-1], tensor.raw_data + b"\0", tensor.raw_data * 2])
    elif way == 4:
        field = random.choice([tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data])
        change_list(field, random, random.choice(SMALL))
    elif way == 5 and tensor.int64_data:
        tensor.int64_data[random.randrange(len(tensor.int64_data))] = random.choice([-1 << 63, -1, 0, (1 << 63) - 1, 5])
    elif way == 6:
        tensor.data_location = TensorProto.EXTERNAL
        location = random.choice(["w.bin", "../x", "/dev/zero", ""])
        for key, value in (("location", location), ("offset", "-1"), ("length", "8")):
            if random.random() < 0.8:
                tensor.external_data.add(key=key, value=value)
    elif tensor.float_data:
        tensor.float_data[random.randrange(len(tensor.float_data))] = random.choice(ODD_FLOATS)


def change_initializer(graph, random, donor):
    if tensor := pick(random, graph.initializer):
        change_tensor(tensor, random)


def move_initializer(graph, random, donor):
    """To an input, away, twice, or under another name."""
    if not graph.initializer:
        return
    at, way = random.randrange(len(graph.initializer)), random.randrange(4)
    tensor = graph.initializer[at]
    if way == 0:
        graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    if way == 1:
        graph.initializer.append(copy.deepcopy(tensor))
    elif way == 2:
        tensor.name = random.choice(["", *values_of(graph)])
    else:
        del graph.initializer[at]


def change_type(type_proto, random):
    kind = type_proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type") and random.random() < 0.6:
        return change_type(getattr(type_proto, kind).elem_type, random)
    tensor = type_proto.tensor_type
    way = random.randrange(7)
    if way == 0:
        tensor.elem_type = random.choice(ELEMENTS)
    elif way == 1:
        tensor.ClearField("shape")
    elif way == 2:
        tensor.shape.dim.add().dim_value = number(random)
    elif way == 3 and tensor.shape.dim:
        del tensor.shape.dim[random.randrange(len(tensor.shape.dim))]
    elif way == 4 and tensor.shape.dim:
        random.choice(list(tensor.shape.dim)).dim_param = random.choice(["n", "batch", "", "a b", "-1", "1"])
    elif way == 5:
        inner = copy.deepcopy(type_proto)
        getattr(type_proto, random.choice(["sequence_type", "optional_type"])).elem_type.CopyFrom(inner)
    elif tensor.shape.dim:
        random.choice(list(tensor.shape.dim)).dim_value = number(random)


def change_value_type(graph, random, donor):
    if value := pick(random, [*graph.input, *graph.output, *graph.value_info]):
        change_type(value.type, random)


def change_values(graph, random, donor):
    """Inputs and outputs: dropped, repeated, renamed, in another order."""
    values = random.choice([graph.input, graph.output])
    if not values:
        values.append(onnx.ValueInfoProto(name=random.choice(values_of(graph) or ["x"])))
        return
    at, way = random.randrange(len(values)), random.randrange(4)
    if way == 0:
        del values[at]
    elif way == 1:
        values.append(copy.deepcopy(values[at]))
    elif way == 2:
        values[at].name = random.choice(["", "\n", "é", *values_of(graph)])
    else:
        kept = [copy.deepcopy(value) for value in values]
        random.shuffle(kept)
        del values[:]
        values.extend(kept)


def rename_everywhere(graph, random, donor):
    """A name becomes an odd or another one, wherever it stands."""
    names = values_of(graph)
    if not names:
        return
    old = random.choice(names)
    new = random.choice(["", " ", "a=b", "/", "..", "%x", "é", "\x01", "if", "n" * 300, random.choice(names)])
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = new if value.name == old else value.name
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        node.output[:] = [new if name == old else name for name in node.output]


def wrap_in_branch(graph, random, donor):
    """The nodes become a branch of an If (or the body of a Loop) of no inputs."""
    if not graph.node or not graph.output:
        return
    body = onnx.GraphProto(name="body")
    body.node.extend(graph.node)
    outputs = [value.name for value in graph.output]
    body.output.extend(graph.output)
    other = copy.deepcopy(body)
    del graph.node[:]
    condition = helper.make_node("Constant", [], ["wrap_cond"], value=helper.make_tensor("c", TensorProto.BOOL, [],
                                                                                        [random.random() < 0.5]))
    graph.node.extend([condition, helper.make_node("If", ["wrap_cond"], outputs, then_branch=body, else_branch=other)])


GRAPH_MUTATIONS = [drop_node, repeat_node, shuffle_nodes, borrow_node, borrow_node, rename_operator, change_domain,
                   change_operands, change_operands, change_results, change_attribute, change_attribute,
                   change_attribute, drop_attribute, add_attribute, change_attribute_type, change_initializer,
                   change_initializer, change_initializer, move_initializer, change_value_type, change_value_type,
                   change_value_type, change_values, rename_everywhere, wrap_in_branch]


def change_versions(model, random, donor):
    way = random.randrange(5)
    if way == 0:
        model.ir_version = random.choice([0, 1, 3, 7, 10, 13, 99, -1])
    elif way == 1 and model.opset_import:
        random.choice(list(model.opset_import)).version = random.choice([0, 1, 5, 7, 9, 10, 11, 13, 17, 21, 24, 99, -1])
    elif way == 2:
        domain = random.choice(["", "com.microsoft", "ai.onnx.ml", "x"])
        model.opset_import.add(domain=domain, version=random.choice([1, 3, 9]))
    elif way == 3 and model.opset_import:
        del model.opset_import[random.randrange(len(model.opset_import))]
    elif donor is not None:
        model.functions.extend(donor.functions)


def structural_mutant(model, random, donor):
    for _ in range(random.choice([1, 1, 1, 1, 2, 2, 4])):
        if random.random() < 0.07:
            change_versions(model, random, donor)
        else:
            graph = random.choice(list(graphs_of(model.graph)))
            try:
                random.choice(GRAPH_MUTATIONS)(graph, random, donor)
            except (ValueError, TypeError, OverflowError):
                pass  # protobuf refuses the value: the mutant goes without it
    return model
