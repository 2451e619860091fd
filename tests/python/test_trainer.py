"""aglow.Trainer: what is trained and how, checkpoints, what is exported, and every fault."""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import bundles
import module_models as models
import training_models as training
from caffe2_nets import Net, Op, fill
from conftest import PROGRAM, ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

X, LABELS = training.clusters()
MODELS = pathlib.Path(os.environ.get("AGLOW_MODELS", ROOT.parent / "shared" / "models"))


@pytest.fixture(params=["interpreter", "cpu"])
def backend(request):
    if request.param not in aglow.backends():
        pytest.skip(f"this build has no {request.param} backend")
    return request.param


def trainer(**options):
    options.setdefault("backend", "interpreter")
    return aglow.Trainer(options.pop("model", training.classifier()), **options)


def weights(made):
    return {name: made.state[name] for name in made.variables}


def reference(x, labels, *, order, rate, batch, epochs):
    """Gradient descent on the classifier in numpy; order(epoch) gives the samples."""
    w = {t.name: numpy_helper.to_array(t).astype("f8") for t in training.classifier().graph.initializer}
    for epoch in range(epochs):
        rows = order(epoch)
        for at in range(0, len(rows), batch):
            some = rows[at:at + batch]
            a = x[some].astype("f8") @ w["first.weight"] + w["first.bias"]
            b = np.maximum(a, 0)
            y = b @ w["last.weight"] + w["last.bias"]
            p = np.exp(y - y.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            dy = (p - np.eye(y.shape[1])[labels[some]]) / len(some)
            da = (dy @ w["last.weight"].T) * (a > 0)
            for name, gradient in {"last.weight": b.T @ dy, "last.bias": dy.sum(0), "first.weight": x[some].T @ da,
                                   "first.bias": da.sum(0)}.items():
                w[name] = w[name] - rate * gradient
    return w


@pytest.mark.parametrize("options", [{}, {"accumulate": 3}, {"model": training.classifier(batch=5)}])
def test_steps_are_gradient_descent(backend, options):
    """Whole batches, batches cut into runs, and a model with a batch of its own: all give what numpy gives, with a last
    batch that is not full."""
    made = trainer(optimizer="sgd", batch=20, backend=backend, **options)
    made.fit(X, LABELS, epochs=3, rate=0.1, shuffle=False)
    assert made.steps == 15
    wanted = reference(X, LABELS, order=lambda _: np.arange(len(X)), rate=0.1, batch=20, epochs=3)
    for name, value in weights(made).items():
        np.testing.assert_allclose(value, wanted[name], atol=2e-5)


def test_an_output_of_probabilities_is_compared_before_its_softmax():
    plain, softmax = trainer(), trainer(model=training.classifier(softmax=True))
    for made in (plain, softmax):
        made.fit(X, LABELS, epochs=2)
    for name, value in weights(plain).items():
        np.testing.assert_array_equal(value, softmax.state[name])
    assert np.allclose(softmax.predict(X).sum(1), 1, atol=1e-5)


def test_learns_validates_and_reports(backend):
    made = trainer(backend=backend, batch=16)
    seen = []
    history = made.fit(X, LABELS, epochs=12, rate=0.02, schedule="cosine,warmup=4",
                       validation=training.clusters(seed=5), callbacks=[seen.append])
    epochs = [report for report in seen if report.of_epoch]
    assert tuple(epochs) == history.reports and len(epochs) == 12 and history.steps == 72
    assert len(seen) == 72 + 12 and seen[0].step == 1 and seen[0].steps == 6 and 0 < seen[0].rate < 0.02
    assert epochs[-1].loss < 0.3 * epochs[0].loss and epochs[-1].accuracy > 0.95
    found = made.evaluate(*training.clusters(seed=5))
    assert found.accuracy == epochs[-1].accuracy and found.loss == pytest.approx(epochs[-1].validation_loss)
    assert "validation loss" in str(epochs[-1]) and "accuracy" in str(epochs[-1])


def test_the_rate_may_be_a_function_of_the_step():
    steps = []
    made = trainer(optimizer="sgd", batch=48)
    before = weights(made)
    made.fit(X, LABELS, epochs=2, schedule=lambda step: steps.append(step) or 0.0)
    assert steps == [0, 1, 2, 3]
    for name, value in weights(made).items():
        np.testing.assert_array_equal(value, before[name])


def test_callbacks_end_a_training_and_may_raise():
    made = trainer(batch=32)
    assert made.fit(X, LABELS, epochs=9, callbacks=[lambda report: report.of_epoch and report.epoch == 2]).epochs == 2
    with pytest.raises(ZeroDivisionError):
        made.fit(X, LABELS, callbacks=[lambda report: 1 / 0])


def test_only_what_is_named_changes():
    made = trainer(train=["last.*", "!last.bias"])
    assert made.variables == ("last.weight",)
    made.fit(X, LABELS)
    assert set(made.state) == {"last.weight", "last.weight.mean", "last.weight.square", "train.steps"}


def test_what_constants_are_folded_to_can_be_trained():
    """A weight in a Constant node, and one that is computed from others when compiling."""
    weight = np.arange(8, dtype=np.float32).reshape(2, 4)
    proto = models.model([models.node("Constant", "", "held", value=numpy_helper.from_array(weight)),
                          models.node("Transpose", "held", "turned", perm=[1, 0]),
                          models.node("MatMul", "x turned", "y")],
                         [models.value("x", ["n", 4])], [models.value("y", ["n", 2])])
    target = np.ones((len(X), 2), np.float32)
    exported = {}
    for name in ("held", "turned"):
        made = trainer(model=proto, loss="squared-error", optimizer="sgd", train=name)
        made.fit(X, target, rate=0.01)
        exported[name] = made.predict(X)
        assert np.abs(made.state[name] - (weight if name == "held" else weight.T)).max() > 1e-3
    np.testing.assert_allclose(exported["held"], exported["turned"], rtol=1e-4, atol=1e-5)


def steps_of_time(softmax, turned, batch="n"):
    """Scores for each step of time, [time, batch, classes] if `turned`, by a recurrence over both axes."""
    rng = np.random.default_rng(0)
    nodes = [models.node("MatMul", "x weight", "a"), models.node("CumSum", "a time", "b"),
             models.node("Tanh", "b", "c"), models.node("MatMul", "c head", "d" if softmax else "y")]
    if softmax:
        nodes.append(models.node("Softmax", "d", "y", axis=-1))
    first = [5, batch] if turned else [batch, 5]
    return models.model(nodes, [models.value("x", [*first, 4])], [models.value("y", [*first, 3])],
                        {"weight": rng.standard_normal((4, 6)).astype("f4"), "time": np.int64(0 if turned else 1),
                         "head": rng.standard_normal((6, 3)).astype("f4")})


@pytest.mark.parametrize("options", [{}, {"softmax": True}, {"batch": 2}])
def test_samples_along_another_axis(tmp_path, backend, options):
    """Time before batch, in the input and the output: the same as for the model that has samples first, from the same
    arrays; and what is exported takes what the model takes."""
    options = {"softmax": False} | options
    rng = np.random.default_rng(1)
    x = rng.standard_normal((10, 5, 4)).astype("f4")
    labels = x.cumsum(1)[:, :, :3].argmax(-1)
    plain = trainer(model=steps_of_time(turned=False, **options), batch=4, backend=backend)
    turned = trainer(model=steps_of_time(turned=True, **options), batch=4, backend=backend,
                     sample_axes={"x": 1, "y": -2})
    assert turned.inputs[0].shape == (None, 5, 4)
    for made in (plain, turned):
        made.fit(x, labels, epochs=4, rate=0.05)
    for name, value in weights(plain).items():
        np.testing.assert_allclose(turned.state[name], value, rtol=1e-4, atol=1e-5)
    assert turned.evaluate(x, labels).accuracy == plain.evaluate(x, labels).accuracy > 0.5
    np.testing.assert_allclose(turned.predict(x), plain.predict(x), rtol=1e-3, atol=1e-4)
    turned.export(tmp_path / "out.onnx")
    rows = np.ascontiguousarray(x[:2].transpose(1, 0, 2))
    np.testing.assert_allclose(aglow.compile(tmp_path / "out.onnx", backend=backend)(rows).transpose(1, 0, 2),
                               turned.predict(x[:2]), rtol=1e-4, atol=1e-5)


def test_first_values(tmp_path, backend):
    """Of single variables and of patterns: the last that fits counts; biases are too small for xavier."""
    given = np.arange(48, dtype=np.float32).reshape(16, 3)
    np.save(tmp_path / "w.npy", given)

    def made(seed=0, **more):
        return trainer(backend=backend, seed=seed, initialize={
            "*": "constant:value=0.5", "first.*": "xavier", "last.weight": tmp_path / "w.npy", **more})

    one = made()
    first = one.state["first.weight"]
    bound = np.sqrt(6 / 20)
    assert np.abs(first).max() < bound and np.abs(first).max() > 0.8 * bound and len(np.unique(first)) == first.size
    np.testing.assert_array_equal(one.state["first.bias"], np.full(16, 0.5, "f4"))
    np.testing.assert_array_equal(one.state["last.weight"], given)
    np.testing.assert_array_equal(made().state["first.weight"], first)
    assert not np.array_equal(made(seed=1).state["first.weight"], first)
    # Fans of what multiplies from the right: 4 inputs, 16 outputs.
    he = made(**{"first.weight": "he"}).state["first.weight"]
    assert abs(he.std() - np.sqrt(2 / 4)) < 0.15
    # They are where a training begins again, what modules begin with, and part of what is exported.
    one.fit(X, LABELS)
    one.state.reset()
    np.testing.assert_array_equal(one.state["first.weight"], first)
    one.export(tmp_path / "m.onnx")
    exported = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "m.onnx").graph.initializer}
    np.testing.assert_array_equal(exported["first.weight"], first)
    one.export_module(tmp_path / "steps.graph")
    np.testing.assert_array_equal(aglow.compile(tmp_path / "steps.graph", backend=backend).state["first.weight"], first)


def test_first_values_of_a_text_form(tmp_path):
    text = "module {\n  constant @w : f32[2,2] = [1, 2, 3, 4]\n  placeholder @x : f32[4,2]\n" \
           "  placeholder @y : f32[4,2]\n  func @main {\n    %y = MatMul(@x, @w)\n    Save(%y, @y)\n  }\n}\n"
    (tmp_path / "m.graph").write_text(text)
    made = trainer(model=tmp_path / "m.graph", loss="squared-error", initialize={"w": "orthogonal"})
    w = made.state["w"]
    np.testing.assert_allclose(w @ w.T, np.eye(2), atol=1e-6)


def test_a_checkpoint_goes_on_whatever_the_first_values_were(tmp_path):
    made = trainer(initialize={"first.*": "he"})
    made.fit(X, LABELS, checkpoint=tmp_path / "c")
    other = trainer()
    other.load(tmp_path / "c")
    np.testing.assert_array_equal(other.state["first.weight"], made.state["first.weight"])


def test_constants_that_decide_shapes_are_left_alone():
    proto = models.model([models.node("Cast", "sizes", "whole", to=onnx.TensorProto.INT64),
                          models.node("Reshape", "x whole", "a"), models.node("MatMul", "a weight", "y")],
                         [models.value("x", ["n", 2, 2])], [models.value("y", ["n", 3])],
                         {"sizes": np.float32([-1, 4]), "weight": np.ones((4, 3), "f4")})
    made = trainer(model=proto, loss="squared-error")
    assert made.variables == ("weight",)
    made.fit(X.reshape(-1, 2, 2), np.ones((len(X), 3), "f4"))
    with pytest.raises(aglow.UsageError, match="'sizes' cannot be trained: .* decides a shape"):
        trainer(model=proto, loss="squared-error", train=["sizes", "weight"])


def test_seeds_decide_on_everything():
    def result(**options):
        made = trainer(batch=10, **options)
        made.fit(X, LABELS, epochs=2)
        return made.state["last.weight"]

    np.testing.assert_array_equal(result(seed=3), result(seed=3))
    assert not np.array_equal(result(seed=3), result(seed=4))


def test_values_are_computed_again_to_the_same_bits(tmp_path, backend):
    """Dropout draws the same numbers again, and weights are read before they change."""
    def made(bytes):
        return aglow.Trainer(training.deep(layers=12), "softmax-cross-entropy", "adam", batch=16, recompute=bytes, backend=backend)

    with pytest.raises(aglow.ResourceError, match=r"E401.*at least \d+ bytes") as refused:
        made(1)
    least = int(re.search(r"at least (\d+) bytes", str(refused.value))[1])
    plain, again = made(None), made(least)
    for one in (plain, again):
        one.fit(*training.images(), epochs=3, rate=0.01, progress=False)
    for name in plain.state:
        assert np.asarray(plain.state[name]).tobytes() == np.asarray(again.state[name]).tobytes(), name

    def arena(*options):
        command = [PROGRAM, "inspect", tmp_path / "steps.graph", "--function", "train", "--memory", "--json",
                   "--backend", backend, *options]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout)["memory"]["arena_bytes"]

    plain.export_module(tmp_path / "steps.graph")
    assert arena("--recompute", str(least)) <= least < 0.7 * arena()


def test_products_of_bf16_learn_as_well(backend):
    def losses(model, data, optimizer, **options):
        made = aglow.Trainer(model, "softmax-cross-entropy", optimizer, batch=16, backend=backend, **options)
        reports = made.fit(*data, epochs=5, rate=0.01, progress=False).reports
        assert all(np.asarray(made.state[name]).dtype == np.float32 for name in made.variables)
        return np.array([report.loss for report in reports])

    for model, data, optimizer in ((training.deep(layers=3, dropout=False), training.images(64), "adam"),
                                   (training.classifier(inputs=48, hidden=64), training.clusters(96, 48), "sgd")):
        whole, halves = losses(model, data, optimizer), losses(model, data, optimizer, precision="bf16")
        assert whole[-1] < 0.9 * whole[0] and not np.array_equal(whole, halves)
        np.testing.assert_allclose(halves, whole, rtol=0.02)


def test_threads_change_nothing():
    if "cpu" not in aglow.backends():
        pytest.skip("this build has no cpu backend")
    results = []
    for threads in (1, 2):
        made = trainer(batch=32, backend="cpu", threads=threads)
        made.fit(X, LABELS, epochs=2)
        results.append(made.state["first.weight"])
    np.testing.assert_array_equal(*results)


def test_a_training_goes_on_to_the_same_bits(tmp_path, backend):
    whole = trainer(batch=20, backend=backend)
    whole.fit(X, LABELS, epochs=4)
    kept = tmp_path / "run.ckpt"
    cut = trainer(batch=20, backend=backend)
    cut.fit(X, LABELS, epochs=4, checkpoint=kept, checkpoint_every=1,
            callbacks=[lambda report: (report.epoch, report.step) == (2, 3)])
    again = trainer(batch=20, backend=backend)
    history = again.fit(X, LABELS, epochs=4, checkpoint=kept, resume=True)
    assert history.steps == whole.steps == 20 and [report.epoch for report in history.reports] == [2, 3, 4]
    for name in whole.state:
        np.testing.assert_array_equal(again.state[name], whole.state[name], name)
    assert list(tmp_path.iterdir()) == [kept]


def test_stops_early_with_the_best():
    """What is learned says nothing about these labels, so that validation soon gets worse."""
    made, other = trainer(batch=32), (X, np.roll(LABELS, 1))
    history = made.fit(X, LABELS, epochs=60, rate=0.05, validation=other, patience=3, restore_best=True)
    losses = [report.validation_loss for report in history.reports]
    assert history.stopped_early and len(losses) == losses.index(min(losses)) + 4 < 60
    assert made.evaluate(*other).loss == pytest.approx(min(losses), rel=1e-6)


def test_exports_differ_in_the_variables_alone(tmp_path, backend):
    proto = training.classifier()
    proto.doc_string = "kept"
    helper.set_model_props(proto, {"license": "mine"})
    made = trainer(model=proto, train="last.*", backend=backend)
    made.fit(X, LABELS, epochs=3)
    made.export(tmp_path / "out.onnx")
    exported = onnx.load(tmp_path / "out.onnx")
    onnx.checker.check_model(exported, full_check=True)
    values = {t.name: numpy_helper.to_array(t) for t in exported.graph.initializer}
    before = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    assert sorted(values) == sorted(before)
    for name, value in values.items():
        np.testing.assert_array_equal(value, made.state[name] if name in made.variables else before[name])
    for model in (exported, proto):
        del model.graph.initializer[:]
    assert exported == proto
    np.testing.assert_allclose(aglow.compile(tmp_path / "out.onnx", backend=backend)(X), made.predict(X), atol=1e-5)


def test_exports_hold_what_lay_in_other_files(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(training.classifier(), path, save_as_external_data=True, size_threshold=0)
    made = trainer(model=path, train="last.*")
    made.export(tmp_path / "elsewhere.onnx")
    (tmp_path / "elsewhere.onnx").rename(tmp_path / "moved.onnx")
    exported = onnx.load(tmp_path / "moved.onnx", load_external_data=False)
    assert not any(t.external_data for t in exported.graph.initializer)
    wanted = {t.name: numpy_helper.to_array(t) for t in training.classifier().graph.initializer}
    for tensor in exported.graph.initializer:
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), wanted[tensor.name])


def test_exports_of_old_models_and_of_narrow_kinds(tmp_path):
    """Before IR version 4 initializers are inputs too; values of 4 bits share bytes, also those that move in."""
    proto = models.model([models.node("Constant", "", "held", value=numpy_helper.from_array(np.ones((4, 2), "f4"))),
                          models.node("MatMul", "x held", "y")], [models.value("x", ["n", 4])],
                         [models.value("y", ["n", 2])], opset=8)
    proto.ir_version = 3
    made = trainer(model=proto, loss="squared-error")
    made.export(tmp_path / "old.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "old.onnx"))
    np.testing.assert_allclose(aglow.compile(tmp_path / "old.onnx")(X), X @ np.ones((4, 2), "f4"), rtol=1e-5)

    narrow = helper.make_tensor("narrow", onnx.TensorProto.INT4, [4, 2], [1, -2, 3, -4, 5, -6, 7, -8])
    proto = models.model([models.node("DequantizeLinear", "narrow scale", "held"), models.node("MatMul", "x held", "a"),
                          models.node("Add", "a bias", "y")], [models.value("x", ["n", 4])],
                         [models.value("y", ["n", 2])], {"scale": np.float32(0.5), "bias": np.zeros(2, "f4")})
    proto.graph.initializer.append(narrow)
    onnx.save(proto, tmp_path / "narrow.onnx", save_as_external_data=True, size_threshold=0, convert_attribute=False)
    made = trainer(model=tmp_path / "narrow.onnx", loss="squared-error")
    assert made.variables == ("bias",)
    made.export(tmp_path / "out.onnx")
    exported = {t.name: t for t in onnx.load(tmp_path / "out.onnx", load_external_data=False).graph.initializer}
    assert not exported["narrow"].external_data
    np.testing.assert_array_equal(numpy_helper.to_array(exported["narrow"]), numpy_helper.to_array(narrow))


def test_batch_norms_train_with_their_batch(tmp_path, backend):
    """The statistics of the batch are used, the running ones move towards them, and both are exported."""
    proto = models.model([models.node("BatchNormalization", "x scale shift mean variance", "a"),
                          models.node("MatMul", "a weight", "y")], [models.value("x", ["n", 4])],
                         [models.value("y", ["n", 3])],
                         {"scale": np.ones(4, "f4"), "shift": np.zeros(4, "f4"), "mean": np.zeros(4, "f4"),
                          "variance": np.ones(4, "f4"), "weight": np.ones((4, 3), "f4")})
    fixed = trainer(model=proto, batch=32, backend=backend)
    assert "mean" not in fixed.state and fixed.variables == ("scale", "shift", "weight")
    made = trainer(model=proto, batch=32, backend=backend, batch_norm_momentum=0.75)
    made.fit(X[:32], LABELS[:32], shuffle=False, rate=0.01)
    np.testing.assert_allclose(made.state["mean"], 0.25 * X[:32].mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(made.state["variance"], 0.75 + 0.25 * X[:32].var(0, ddof=1), rtol=1e-4)
    made.fit(X, LABELS, epochs=20, rate=0.02, drop_last=True)
    assert made.evaluate(X, LABELS).accuracy > 0.95
    made.export(tmp_path / "out.onnx")
    values = {t.name: numpy_helper.to_array(t) for t in onnx.load(tmp_path / "out.onnx").graph.initializer}
    for name in ("mean", "variance", "scale", "weight"):
        np.testing.assert_array_equal(values[name], made.state[name])
    np.testing.assert_allclose(aglow.compile(tmp_path / "out.onnx")(X), made.predict(X), atol=1e-4)


def test_threads_take_turns():
    made = trainer(batch=8)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(made.fit, X, LABELS, epochs=2) for _ in range(3)]
        jobs += [pool.submit(made.evaluate, X, LABELS) for _ in range(5)] + [pool.submit(made.predict, X)]
        for job in jobs:
            job.result(60)
    assert made.steps == 3 * 2 * 12
    assert made.fit(X, LABELS, callbacks=[lambda report: made.evaluate(X, LABELS).loss < 0]).steps == 84


def test_nets_of_caffe2_are_trained_and_become_onnx(tmp_path):
    (tmp_path / "net.pbtxt").write_text(Net("net", [Op("FC", ["x", "w", "b"], ["y"])], ["x", "w", "b"], ["y"]).text())
    init = Net("init", [fill("w", np.ones((3, 4), "f4")), fill("b", np.zeros(3, "f4"))], [], ["w", "b"])
    (tmp_path / "init.pbtxt").write_text(init.text())
    made = trainer(model=tmp_path / "net.pbtxt", init=tmp_path / "init.pbtxt", shapes={"x": (16, 4)}, batch=16)
    assert made.variables == ("b", "w")
    made.fit(X, LABELS, epochs=3, rate=0.05)
    made.export(tmp_path / "out.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "out.onnx"))
    np.testing.assert_allclose(aglow.compile(tmp_path / "out.onnx")(X[:16]), made.predict(X[:16]), atol=1e-5)


def test_a_module_that_trains(tmp_path):
    trainer(batch=8, optimizer="sgd").export_module(tmp_path / "steps.graph")
    module = aglow.compile(tmp_path / "steps.graph", backend="interpreter")
    assert set(module.functions) == {"main", "evaluate", "train"}
    train = module["train"]
    weights = np.full(8, 1 / 8, np.float32)
    losses = [train.run({"x": X[:8], "target": LABELS[:8], "weights": weights, "rate": np.float32(0.1)})["loss"]
              for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_module_goes_on_with_the_weights_of_now(tmp_path, backend, accumulate):
    """Statistics of batch norms are among them; a module before any step has those of the model."""
    given = {"w": np.random.default_rng(0).standard_normal((4, 3)).astype("f4"), "scale": np.ones(3, "f4"),
             "shift": np.zeros(3, "f4"), "mean": np.zeros(3, "f4"), "variance": np.ones(3, "f4")}
    proto = models.model([models.node("MatMul", "x w", "a"),
                          models.node("BatchNormalization", "a scale shift mean variance", "y")],
                         [models.value("x", ["n", 4])], [models.value("y", ["n", 3])], given)
    made = trainer(model=proto, batch=16, backend=backend, batch_norm_momentum=0.9, accumulate=accumulate)

    def exported():
        made.export_module(tmp_path / "steps.graph")
        module = aglow.compile(tmp_path / "steps.graph", backend=backend)
        return module, {name: module.state[name] for name in given}

    for name, value in exported()[1].items():
        np.testing.assert_array_equal(value, given[name])
    made.fit(X, LABELS, epochs=2, rate=0.05)
    module, now = exported()
    for name, value in now.items():
        np.testing.assert_array_equal(value, made.state[name])
        assert not np.array_equal(value, given[name]), name
    size = 16 // accumulate
    np.testing.assert_array_equal(module["main"].run({"x": X[:size]})["y"], made.predict(X[:size]))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_program_in_c_trains_to_the_same_bits(tmp_path, optimizer):
    """Steps, evaluation and prediction are entries of one bundle over one state; no runtime is linked."""
    if "cpu" not in aglow.backends() or shutil.which("cc") is None:
        pytest.skip("needs the cpu backend and cc")
    batch, epochs, rate = 16, 4, 0.05
    made = trainer(backend="cpu", batch=batch, optimizer=optimizer)
    made.export_module(tmp_path / "steps.graph")
    bundles.check(PROGRAM, "compile", tmp_path / "steps.graph", "--emit", "bundle", "-o", tmp_path / "out")
    bundles.check("cc", "-std=c99", *bundles.STRICT, "-O1", f"-I{tmp_path / 'out'}",
                  bundles.HERE / "train_loop.c", tmp_path / "out" / "steps.o", "-o", tmp_path / "loop", "-lm")
    (tmp_path / "x.bin").write_bytes(X.tobytes())
    (tmp_path / "target.bin").write_bytes(LABELS.astype("i8").tobytes())
    lines = bundles.check(tmp_path / "loop", tmp_path / "out" / "steps.weights.bin", tmp_path / "x.bin",
                          tmp_path / "target.bin", len(X) // batch, epochs * len(X) // batch, rate).splitlines()
    said = {word: [float.fromhex(line.split()[1]) for line in lines if line.startswith(word)]
            for word in ("step", "evaluate", "main")}
    losses = []
    made.fit(X, LABELS, epochs=epochs, rate=rate, shuffle=False,
             callbacks=[lambda report: None if report.of_epoch else losses.append(report.loss)])
    assert said["step"] == losses and len(losses) == 24 and losses[-1] < 0.2 * losses[0]
    each = [made.evaluate(X[at:at + batch], LABELS[at:at + batch]).loss for at in range(0, len(X), batch)]
    assert said["evaluate"] == each
    assert said["main"] == made.predict(X[:batch]).ravel().tolist()


def answers_of_others(path, feeds):
    """What another runtime gives for a file: onnxruntime where it is installed, else onnx's own reference."""
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator
        return ReferenceEvaluator(str(path)).run(None, feeds)[0]
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


# The last block of a network: its convolutions, with the batch norms that were folded into them, and the classes.
LAST_BLOCK = ["const_fold_opt__121", "const_fold_opt__122", "const_fold_opt__123", "const_fold_opt__112",
              "*conv2d_6/BiasAdd*", "*conv2d_7/BiasAdd*", "*conv2d_8/BiasAdd*", "*dense/BiasAdd*"]


@pytest.mark.parametrize("name, train, loss", [
    ("mnist_cntk", ["Parameter193", "Parameter194"], "softmax-cross-entropy"),
    ("mlperf_resnet8_float", LAST_BLOCK, "softmax-cross-entropy"),
    ("tract_keras_example", ["all"], "squared-error"), ("hello_world", ["all"], "squared-error")])
def test_models_of_others_are_tuned(tmp_path, name, train, loss):
    """Their last layers, a last block, or all; the exported file computes what the trainer predicts, here and in other
    runtimes, and all that was not trained has its bytes."""
    path = MODELS / name / "model.onnx"
    if not path.is_file():
        pytest.skip("the models are not here")
    made = aglow.Trainer(path, loss, "adam", train=train, batch=4)
    rng = np.random.default_rng(0)
    bright = 255 if name == "mlperf_resnet8_float" else 1
    samples = {spec.name: bright * rng.random((8, *spec.shape[1:])).astype(spec.dtype) for spec in made.inputs}
    outputs = made.predict(samples)
    target = np.arange(8) % outputs.shape[-1] if loss == "softmax-cross-entropy" else outputs + 1
    before = made.evaluate(samples, target).loss
    made.fit(samples, target, epochs=15, rate=0.01)
    assert made.evaluate(samples, target).loss < 0.9 * before
    made.export(tmp_path / "tuned.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "tuned.onnx"))
    exported = aglow.compile(tmp_path / "tuned.onnx")
    first = {key: value[:1] for key, value in samples.items()}
    wanted = made.predict(first)
    np.testing.assert_allclose(exported.run(first)[exported.outputs[0].name], wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(answers_of_others(tmp_path / "tuned.onnx", first), wanted, rtol=1e-4, atol=1e-4)
    old, new = ({t.name: t.SerializeToString() for t in onnx.load(file).graph.initializer}
                for file in (path, tmp_path / "tuned.onnx"))
    assert {key for key in old if old[key] != new[key]} == set(made.variables)


INTERRUPTED = """
import os, signal, sys, threading
sys.path[:0] = {path!r}
import aglow, training_models as training
x, labels = training.clusters()
made = aglow.Trainer(training.classifier(), backend="interpreter", batch=8)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which background jobs ignore
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    made.fit(x, labels, epochs=10**9)
except KeyboardInterrupt:
    print(made.steps > 0, made.evaluate(x, labels).loss >= 0)
"""


def test_ctrl_c_ends_a_training():
    script = INTERRUPTED.format(path=[str(PROGRAM.parent / "python"), str(pathlib.Path(__file__).parent)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True True\n", done.stderr


# ---------------------------------------------------------------- faults

@pytest.mark.parametrize("options, says", [
    ({"loss": "softmax"}, ["no loss 'softmax'"]),
    ({"optimizer": "adm"}, ["no optimizer 'adm'", "did you mean 'adam'?"]),
    ({"train": "last.wieght"}, ["no variable 'last.wieght'", "did you mean 'last.weight'?"]),
    ({"train": "tail.*"}, ["no variable 'tail.*'", "the model has 'first.weight'"]),
    ({"train": ["all", "!*"]}, ["nothing of the model is left"]),
    ({"train": "y"}, ["'y' cannot be trained"]),
    ({"output": "z"}, ["no output 'z'"]),
    ({"settings": {"decey": 1}}, ["no setting of 'adam' 'decey'", "did you mean 'decay'?"]),
    ({"initialize": {"last.weight": "xavir"}}, ["no initializer 'xavir'", "did you mean 'xavier'?"]),
    ({"initialize": {"last.wieght": "xavier"}}, ["no variable 'last.wieght'", "did you mean 'last.weight'?"]),
    ({"initialize": {"last.bias": "xavier"}}, ["'last.bias'", "needs weights [outputs, inputs, ...], got f32[3]"]),
    ({"initialize": {"*.bias": "he"}}, ["no variable that fits '*.bias' has the axes that initializer 'he' needs"]),
    ({"train": "first.*", "initialize": {"last.*": "zero"}}, ["no variable 'last.*'"]),
    ({"initialize": {"last.bias": "constant:value=x"}}, ["expected SETTING=NUMBER, got 'value=x'"]),
    ({"sample_axes": {"z": 1}}, ["there is no input with samples, or output that is compared, 'z'"]),
    ({"sample_axes": {"x": 2}}, ["the samples of 'x', which has 2 axes, cannot lie along axis 2"]),
    ({"model": training.classifier(batch=5), "sample_axes": {"x": 1}},
     ["expected samples along the first axis of the output 'y'", "--sample-axis"]),
    ({"batch": 4, "accumulate": 5}, ["a batch of 4 samples cannot be cut into 5 runs"]),
    ({"recompute": 0}, ["recompute is 0; expected a number of bytes"]),
    ({"precision": "int8"}, ["precision is 'int8'; expected float or bf16"]),
])
def test_wrong_plans(options, says):
    with pytest.raises(aglow.UsageError) as raised:
        trainer(**options)
    for words in says:
        assert words in str(raised.value)


def test_wrong_data():
    made = trainer(batch=8)

    def refused(*data, **options):
        with pytest.raises(aglow.UsageError) as raised:
            made.fit(*data, **options)
        return str(raised.value)

    assert "label 7 of sample 5 is out of range: expected 0 to 2" in refused(X, np.where(np.arange(96) == 5, 7, LABELS))
    assert "label -1 of sample 0" in refused(X, LABELS - LABELS[0] - 1)
    assert "expected i64[N] for the target, got f32[96]" in refused(X, LABELS.astype("f4"))
    assert "96 samples, but the target has 95" in refused(X, LABELS[:95])
    assert "expected f32[N,4]" in refused(X[:, :3], LABELS)
    assert "no input 'z'" in refused({"z": X}, LABELS)
    assert "data for validation" in refused(X, LABELS, validation=(X, LABELS + 3))
    assert "'cosin' is not a schedule" in refused(X, LABELS, schedule="cosin")
    assert "less than a batch" in refused(X[:5], LABELS[:5], drop_last=True)
    assert "needs data for validation" in refused(X, LABELS, patience=2)
    assert "there are no samples" in refused(X[:0], LABELS[:0])


def test_the_first_operator_that_is_not_finite_is_named(backend):
    proto = models.model([models.node("Mul", "x scale", "a"), models.node("Log", "a", "b"),
                          models.node("Mul", "b two", "y")],
                         [models.value("x", ["n", 1])], [models.value("y", ["n", 1])],
                         {"scale": np.ones(1, "f4"), "two": np.full(1, 2, "f4")})
    made = trainer(model=proto, loss="squared-error", train="scale", batch=2, backend=backend)
    x = np.float32([[1], [2], [3], [4], [5], [0]])
    with pytest.raises(aglow.BadModelError, match=r"the loss is infinite in step 3 of epoch 1: "
                       r"node 'Log_node' \(Log\) made the first infinity of finite values"):
        made.fit(x, np.zeros_like(x), shuffle=False, rate=1e-6)
    x[3] = np.nan
    with pytest.raises(aglow.BadModelError, match="the loss is NaN in step 2 of epoch 1: input 'x' holds NaN"):
        trainer(model=proto, loss="squared-error", train="scale", batch=2).fit(x, np.zeros_like(x), shuffle=False)


def test_checkpoints_of_others_and_damaged_ones(tmp_path):
    kept = tmp_path / "c"
    made = trainer()
    made.fit(X, LABELS, checkpoint=kept)
    for other, says in ((trainer(optimizer="sgd"), "optimizer sgd"), (trainer(batch=16), "another model"),
                        (trainer(model=training.classifier(hidden=8)), "another model")):
        with pytest.raises(aglow.UsageError, match=says):
            other.load(kept)
    with pytest.raises(aglow.UsageError, match="seed 0, this training 1"):
        trainer(seed=1).fit(X, LABELS, checkpoint=kept, resume=True)
    before = {name: made.state[name] for name in made.state}
    content = kept.read_bytes()
    for size in (0, 10, 60, len(content) // 2, len(content) - 1):
        kept.write_bytes(content[:size])
        with pytest.raises(aglow.BadModelError, match="checkpoint"):
            made.load(kept)
    for name, value in before.items():
        np.testing.assert_array_equal(made.state[name], value)
    with pytest.raises(aglow.FileError):
        made.load(tmp_path / "missing")


LIMITED = """
import resource, sys
sys.path[:0] = {path!r}
import numpy as np
import aglow, training_models as training
x, labels = training.clusters()
made = aglow.Trainer(training.classifier(), backend="interpreter", batch=32)
made.fit(x, labels, checkpoint={kept!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    made.fit(x, labels, checkpoint={kept!r})
except aglow.FileError as fault:
    print(fault.code)
"""


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path):
    kept = tmp_path / "c"
    script = LIMITED.format(path=[str(PROGRAM.parent / "python"), str(pathlib.Path(__file__).parent)], kept=str(kept))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "E802\n", done.stderr
    made = trainer()
    made.load(kept)
    assert made.steps == 3 and list(tmp_path.iterdir()) == [kept]
