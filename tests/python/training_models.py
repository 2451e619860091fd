"""Small models to be trained, and what they learn from."""
import numpy as np

import module_models as models


def normal(rng, *shape, fan):
    return (rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)


def classifier(inputs=4, hidden=16, classes=3, batch="n", softmax=False, seed=0):
    """Two layers; `batch` may be a number, which the model then has for itself."""
    rng = np.random.default_rng(seed)
    nodes = [models.node("Gemm", "x first.weight first.bias", "a"), models.node("Relu", "a", "b"),
             models.node("Gemm", "b last.weight last.bias", "c" if softmax else "y")]
    if softmax:
        nodes.append(models.node("Softmax", "c", "y", axis=-1))
    return models.model(nodes, [models.value("x", [batch, inputs])], [models.value("y", [batch, classes])],
                        {"first.weight": normal(rng, inputs, hidden, fan=inputs), "first.bias": np.zeros(hidden, "f4"),
                         "last.weight": normal(rng, hidden, classes, fan=hidden), "last.bias": np.zeros(classes, "f4")})


def clusters(samples=96, inputs=4, classes=3, seed=1):
    """Points around as many centres as there are classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, samples)
    centres = 2 * np.random.default_rng(99).standard_normal((classes, inputs))
    return (centres[labels] + 0.5 * rng.standard_normal((samples, inputs))).astype(np.float32), labels


def deep(layers=6, channels=8, size=12, dropout=True, seed=0):
    """Convolutions one after the other, some of whose results are dropped, and a layer that tells three classes apart."""
    rng = np.random.default_rng(seed)
    nodes, weights, last = [], {"half": np.float32(0.25), "yes": np.array(True)}, "x"
    for i in range(layers):
        weights[f"w{i}"] = normal(rng, channels, channels if i else 1, 3, 3, fan=9 * channels)
        nodes += [models.node("Conv", f"{last} w{i}", f"c{i}", pads=[1, 1, 1, 1]), models.node("Tanh", f"c{i}", f"t{i}")]
        last = f"t{i}"
        if dropout and i % 2:
            nodes.append(models.node("Dropout", f"{last} half yes", f"d{i}"))
            last = f"d{i}"
    weights["head"] = normal(rng, channels, 3, fan=channels)
    nodes += [models.node("GlobalAveragePool", last, "p"), models.node("Flatten", "p", "f"),
              models.node("MatMul", "f head", "y")]
    return models.model(nodes, [models.value("x", ["n", 1, size, size])], [models.value("y", ["n", 3])], weights)


def images(samples=32, size=12, seed=1):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, samples)
    return (rng.standard_normal((samples, 1, size, size)) + labels[:, None, None, None]).astype(np.float32), labels
