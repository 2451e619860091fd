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
