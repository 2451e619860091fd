"""Small models with maps: what converters of classifiers write, and what vectorizers read."""
import numpy as np
from onnx import TensorProto, helper

ML = "ai.onnx.ml"
FLOAT, DOUBLE, INT64, STRING = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64, TensorProto.STRING


def map_type(key, value):
    return helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))


def maps_type(key, value):
    return helper.make_sequence_type_proto(map_type(key, value))


def model(nodes, inputs, outputs, initializers=()):
    """Inputs and outputs are types by name."""
    graph = helper.make_graph(nodes, "g", [helper.make_value_info(name, kind) for name, kind in inputs.items()],
                              [helper.make_value_info(name, kind) for name, kind in outputs.items()], initializers)
    return helper.make_model(graph, ir_version=8,
                             opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid(ML, 1)])


def ml_node(name, inputs, outputs, **attributes):
    return helper.make_node(name, inputs, outputs, domain=ML, **attributes)


def zip_map(labels, shape=("n", None)):
    """One node: rows of numbers to maps."""
    words = isinstance(labels[0], str)
    node = ml_node("ZipMap", ["x"], ["maps"], **{"classlabels_strings" if words else "classlabels_int64s": labels})
    return model([node], {"x": helper.make_tensor_type_proto(FLOAT, shape)},
                 {"maps": maps_type(STRING if words else INT64, FLOAT)})


def classifier(labels):
    """A linear classifier of four features and as many classes as labels, with its probabilities as maps."""
    random = np.random.default_rng(5)
    count, words = len(labels), isinstance(labels[0], str)
    weights = random.normal(size=(count, 4)).astype(np.float32)
    offsets = random.normal(size=count).astype(np.float32)
    nodes = [
        ml_node("LinearClassifier", ["x"], ["label", "raw"], coefficients=weights.ravel().tolist(), intercepts=offsets.tolist(),
                post_transform="SOFTMAX", multi_class=0,
                **{"classlabels_strings" if words else "classlabels_ints": labels}),
        ml_node("Normalizer", ["raw"], ["normal"], norm="L1"),
        ml_node("ZipMap", ["normal"], ["probabilities"],
                **{"classlabels_strings" if words else "classlabels_int64s": labels})]
    kind = STRING if words else INT64
    proto = model(nodes, {"x": helper.make_tensor_type_proto(FLOAT, ["n", 4])},
                  {"label": helper.make_tensor_type_proto(kind, ["n"]), "probabilities": maps_type(kind, FLOAT)})

    def expected(x):
        scores = x @ weights.T + offsets
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        return [labels[i] for i in scores.argmax(1)], shares

    return proto, expected


def features(rows):
    return np.random.default_rng(7).normal(size=(rows, 4)).astype(np.float32)
