"""From floats to integers by profile: what the digits model loses, and what happens to samples and files that do not fit."""
import json
import shutil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from conftest import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
IMAGES = ROOT / "examples" / "digits" / "images"
LABELS = [0, 1, 2, 3, 4, 5, 7, 9]
BACKENDS = ["interpreter", "cpu"]


def sqnr(expected, got):
    """Signal over the noise of quantization, in decibels."""
    noise = np.square(np.asarray(expected, np.float64) - got).sum()
    return 10 * np.log10(np.square(np.asarray(expected, np.float64)).sum() / noise) if noise else np.inf


@pytest.fixture
def profile(aglow, tmp_path):
    done = aglow("profile", DIGITS, "--data", IMAGES, "-o", tmp_path / "p.json", "--backend", "interpreter")
    assert done.code == 0, done.err
    return tmp_path / "p.json"


def outputs(aglow, tmp_path, *options):
    results = []
    for label in LABELS:
        done = aglow("run", DIGITS, "--input", f"image={IMAGES / f'{label}.npy'}", "-o", tmp_path / "out", *options)
        assert done.code == 0, done.err
        results.append(np.load(tmp_path / "out" / "0.npy"))
    return np.concatenate(results)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_digits_stay_what_they_are(aglow, tmp_path, profile, backend):
    expected = outputs(aglow, tmp_path, "--backend", backend)
    got = outputs(aglow, tmp_path, "--backend", backend, "--precision", "int8", "--profile", profile)
    assert (got != expected).any() and (got.argmax(1) == LABELS).all()
    assert sqnr(expected, got) >= 25


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_way_to_choose_ranges_is_good_enough(tmp_path, profile, backend):
    aglow = pytest.importorskip("aglow")
    images = np.concatenate([np.load(IMAGES / f"{label}.npy") for label in LABELS])
    exact = aglow.compile(DIGITS, backend=backend)
    expected = np.concatenate([exact(image[None]) for image in images])

    def reached(**options):
        model = aglow.compile(DIGITS, backend=backend, precision="int8", profile=profile, **options)
        return sqnr(expected, np.concatenate([model(image[None]) for image in images]))

    for calibration in ("min-max", "percentile", "percentile=99.9", "mse", "kl"):
        assert reached(calibration=calibration) >= 25, calibration
    for schema in ("asymmetric", "symmetric", "symmetric-uint8", "power-of-two"):
        assert reached(schema=schema) >= 25, schema
    assert reached(schema="symmetric-int16") >= 40
    # Less that is rounded is never worse by much; nothing that is rounded is exact.
    assert reached(keep_float=["Conv"]) >= 25
    assert reached(keep_float=["Conv", "MatMul"]) == np.inf


def test_a_profile_is_the_same_however_it_is_made(aglow, tmp_path, profile):
    one = tmp_path / "one.json"
    for folder, labels in {"a": LABELS[:3], "b": LABELS[3:]}.items():
        (tmp_path / folder).mkdir()
        for label in labels:
            shutil.copy(IMAGES / f"{label}.npy", tmp_path / folder)
    common = ["profile", DIGITS, "--backend", "interpreter"]
    assert aglow(*common, "--data", tmp_path / "b", "-o", one).code == 0
    assert aglow(*common, "--data", tmp_path / "a", "-o", tmp_path / "both.json", "--merge", one).code == 0
    assert (tmp_path / "both.json").read_text() == profile.read_text()
    report = json.loads(profile.read_text())
    assert report["samples"] == 8 and report["version"] == 2
    assert all(sum(map(sum, value["counts"].values())) > 0 for value in report["values"].values())
    assert report["values"]["@image"]["min"] == 0


def test_a_profile_is_the_same_on_any_number_of_threads(aglow, tmp_path):
    """Values of several units on blocks that are filled up: all that is counted is counted once, by every thread."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("Conv", ["x", "v"], ["first"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["first"], ["positive"]),
             helper.make_node("Conv", ["positive", "w"], ["y"])]
    size = [2, 3, 90, 91]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, size)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, 90, 91])],
                              [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
                               for name, shape in (("v", (21, 3, 3, 3)), ("w", (5, 21, 1, 1)))])
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
    (tmp_path / "data").mkdir()
    samples = [rng.standard_normal(size).astype(np.float32) for _ in range(2)]
    for i, sample in enumerate(samples):
        np.save(tmp_path / "data" / f"{i}.npy", sample)

    def profile(*how):
        done = aglow("profile", model, "--data", tmp_path / "data", "-o", tmp_path / "p.json", *how)
        assert done.code == 0, done.err
        return (tmp_path / "p.json").read_text()

    one = profile("--backend", "cpu", "--threads", "1")
    assert profile("--backend", "cpu", "--threads", "3") == one
    cpu, plain = json.loads(one), json.loads(profile("--backend", "interpreter"))
    assert cpu["values"].keys() == plain["values"].keys() and cpu["values"]["@x"] == plain["values"]["@x"]
    for name, seen in cpu["values"].items():
        channels = cpu["channels"][name]
        assert seen["not_finite"] == 0
        assert sum(map(sum, seen["counts"].values())) == 2 * 2 * 90 * 91 * len(channels["min"])
        assert (seen["min"], seen["max"]) == (min(channels["min"]), max(channels["max"]))
        for key in ("min", "max", "mean", "square"):
            np.testing.assert_allclose(channels[key], plain["channels"][name][key], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cpu["channels"]["@x"]["square"],
                               sum((np.float64(x) ** 2).mean((0, 2, 3)) for x in samples), atol=1e-8)


def test_archives_are_samples(aglow, tmp_path, profile):
    for folder, name in {"named": "image", "unnamed": "arr_0"}.items():
        (tmp_path / folder).mkdir()
        for label in LABELS:
            np.savez(tmp_path / folder / f"{label}.npz", **{name: np.load(IMAGES / f"{label}.npy")})
        done = aglow("profile", DIGITS, "--data", tmp_path / folder, "-o", tmp_path / "z.json", "--backend", "interpreter")
        assert done.code == 0, done.err
        assert (tmp_path / "z.json").read_text() == profile.read_text()
    file = tmp_path / "named" / "3.npz"
    run = aglow("run", DIGITS, "--input", f"image={file}:image", "--backend", "interpreter")
    assert run.code == 0 and run.out == aglow("run", DIGITS, "--input", f"image={IMAGES / '3.npy'}", "--backend",
                                              "interpreter").out
    other = aglow("run", DIGITS, "--input", f"image={file}:imag", "--backend", "interpreter")
    assert other.code == 1 and "did you mean 'image'?" in other.err
    whole = file.read_bytes()
    for size in range(0, len(whole), 41):
        file.write_bytes(whole[:size])
        assert aglow("run", DIGITS, "--input", f"image={file}:image", "--backend", "interpreter").code == 8
    np.savez_compressed(file, image=np.load(IMAGES / "3.npy"))
    packed = aglow("profile", DIGITS, "--data", tmp_path / "named", "-o", tmp_path / "z.json")
    assert packed.code == 8 and "is compressed" in packed.err and "np.savez" in packed.err


def test_images_are_samples(tmp_path):
    aglow = pytest.importorskip("aglow")
    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    (tmp_path / "b.ppm").write_bytes(b"P6\n# made by hand\n5 4\n255\n" + pixels.tobytes())
    (tmp_path / "a.pgm").write_bytes(b"P5 5 4 255\n" + pixels[..., 0].tobytes())
    (tmp_path / "notes.txt").write_text("no image")
    grey, colour = aglow.images(tmp_path, mean=(0.5, 0.25, 0), std=2)
    assert grey.shape == colour.shape == (1, 3, 4, 5) and colour.dtype == np.float32
    np.testing.assert_allclose(colour[0], (pixels.transpose(2, 0, 1) / 255 - [[[0.5]], [[0.25]], [[0]]]) / 2, atol=1e-6)
    np.testing.assert_allclose(grey[0, 2], pixels[..., 0] / 255 / 2, atol=1e-6)
    _, turned = aglow.images(tmp_path, channels="BGR", layout="NHWC", scale=1)
    np.testing.assert_array_equal(turned[0], pixels[..., ::-1])
    assert [image.shape for image in aglow.images(tmp_path, channels="L")] == [(1, 1, 4, 5)] * 2
    (tmp_path / "b.ppm").write_bytes(b"P6 5 4 255\n" + pixels.tobytes()[:9])
    with pytest.raises(aglow.FileError):
        list(aglow.images(tmp_path))
    (tmp_path / "empty").mkdir()
    with pytest.raises(aglow.UsageError, match="no images"):
        next(aglow.images(tmp_path / "empty"))
    with pytest.raises(aglow.FileError):
        next(aglow.images(tmp_path / "nowhere"))
    with pytest.raises(aglow.UsageError, match="layout"):
        next(aglow.images(tmp_path, layout="CHW"))


def test_python_has_the_same(tmp_path, profile):
    aglow = pytest.importorskip("aglow")
    images = [np.load(IMAGES / f"{label}.npy") for label in LABELS]
    made = aglow.profile(DIGITS, images[:4], backend="interpreter")
    made += aglow.profile(DIGITS, ({"image": image} for image in images[4:]), backend="interpreter")
    assert made == aglow.Profile.load(profile)
    made.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == profile.read_text()
    model = aglow.compile(DIGITS, backend="interpreter", precision="int8", profile=made)
    assert all(model(image).argmax() == label for image, label in zip(images, LABELS))
    assert "QuantizeLinear" in model.graph("insert-conversions")
    with pytest.raises(aglow.UsageError, match="there are no samples"):
        aglow.profile(DIGITS, [])
    with pytest.raises(aglow.UsageError, match="no input 'picture'"):
        aglow.profile(DIGITS, [{"picture": images[0]}])
    with pytest.raises(aglow.UsageError, match="expected one of float, int8"):
        aglow.compile(DIGITS, precision="int4")
    with pytest.raises(aglow.UsageError, match="needs a profile"):
        aglow.compile(DIGITS, precision="int8")


@pytest.mark.parametrize("backend", BACKENDS)
def test_samples_that_do_not_fit(aglow, tmp_path, backend):
    def profiled(name, array=None):
        folder = tmp_path / name
        folder.mkdir()
        if array is not None:
            np.save(folder / "0.npy", array)
        done = aglow("profile", DIGITS, "--data", folder, "-o", tmp_path / "x.json", "--backend", backend)
        assert not (tmp_path / "x.json").exists()
        return done

    image = np.load(IMAGES / "3.npy")
    empty = profiled("empty")
    assert empty.code == 1 and "the folder holds no samples" in empty.err and "for each sample" in empty.err
    shape = profiled("shape", image[:, :, :4])
    assert shape.code == 1 and "image" in shape.err and "[1,1,4,8]" in shape.err, shape.err
    kind = profiled("kind", image.astype(np.float64))
    assert kind.code == 1 and "E102" in kind.err
    for name, number in {"nan": np.nan, "inf": -np.inf}.items():
        odd = image.copy()
        odd[0, 0, 1, 2] = number
        done = profiled(name, odd)
        assert done.code == 1 and f"input 'image' has {number} at element 10" in done.err, done.err
    missing = aglow("profile", DIGITS, "--data", tmp_path / "nowhere", "-o", tmp_path / "x.json")
    assert missing.code == 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_profiles_that_do_not_fit(aglow, tmp_path, profile, backend):
    def compiled(*options, model=DIGITS):
        return aglow("compile", model, "--stop-after", "quantize", "--precision", "int8", "--backend", backend, *options)

    assert compiled("--profile", profile).code == 0
    text = profile.read_text()
    bad = tmp_path / "bad.json"
    bad.write_text(text[:1000])
    assert compiled("--profile", bad).code == 8 and "ends too early" in compiled("--profile", bad).err
    bad.write_text(text.replace('"version": 2', '"version": 7'))
    assert "has version 7; expected version 2" in compiled("--profile", bad).err
    other = onnx.load(DIGITS)
    weights = next(t for t in other.graph.initializer if len(t.dims) == 4)
    weights.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weights) * 2, weights.name))
    onnx.save(other, tmp_path / "other.onnx")
    refused = compiled("--profile", profile, model=tmp_path / "other.onnx")
    assert refused.code == 1 and "the profile is of another model" in refused.err
    unknown = compiled("--profile", profile, "--keep-float", "Convv")
    assert unknown.code == 1 and "did you mean 'Conv'?" in unknown.err
    assert "needs a profile" in compiled().err
    assert "did you mean 'percentile'?" in compiled("--profile", profile, "--calibration", "percentil").err
    assert "did you mean 'symmetric'?" in compiled("--profile", profile, "--schema", "symmetri").err
    alone = aglow("run", DIGITS, "--profile", profile)
    assert alone.code == 1 and "are for --precision int8" in alone.err


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_sample_with_constant_channels_is_enough(aglow, tmp_path, backend):
    """Half of the image is one number; the answer is still right."""
    image = np.load(IMAGES / "3.npy")
    image[..., 6:] = 0
    (tmp_path / "one").mkdir()
    np.save(tmp_path / "one" / "3.npy", image)
    done = aglow("profile", DIGITS, "--data", tmp_path / "one", "-o", tmp_path / "p.json", "--backend", backend)
    assert done.code == 0 and "of 1 samples" in done.out
    outputs = []
    for options in [], ["--precision", "int8", "--profile", tmp_path / "p.json"]:
        run = aglow("run", DIGITS, "--input", f"image={tmp_path / 'one' / '3.npy'}", "-o", tmp_path / "out", "--backend",
                    backend, *options)
        assert run.code == 0, run.err
        outputs.append(np.load(tmp_path / "out" / "0.npy"))
    assert sqnr(*outputs) >= 25 and outputs[0].argmax() == outputs[1].argmax()


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_to_learn_is_safe(aglow, tmp_path, backend):
    """Weights and a channel of zeros, and a sample that is constant."""
    filters = np.zeros((2, 3, 1, 1), np.float32)
    filters[1, 2] = 0.5
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], "conv"), helper.make_node("Relu", ["c"], ["r"], "relu"),
             helper.make_node("Conv", ["r", "v"], ["y"], "last")]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 4])],
                              [numpy_helper.from_array(filters, "w"),
                               numpy_helper.from_array(np.zeros((2, 2, 1, 1), np.float32), "v")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "only.npy", np.zeros((1, 3, 4, 4), np.float32))
    assert aglow("profile", tmp_path / "m.onnx", "--data", tmp_path / "data", "-o", tmp_path / "p.json",
                 "--backend", backend).code == 0
    done = aglow("run", tmp_path / "m.onnx", "--precision", "int8", "--profile", tmp_path / "p.json", "--backend", backend,
                 "--input", f"x={tmp_path / 'data' / 'only.npy'}", "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert (np.load(tmp_path / "out" / "0.npy") == 0).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_layers_with_too_much_noise_stay_in_floats(aglow, tmp_path, backend):
    """The second product takes differences of numbers that are nearly equal: with steps of a 255th nothing is left."""
    rng = np.random.default_rng(3)
    differences = np.zeros((64, 32), np.float32)
    for column in range(32):
        differences[2 * column : 2 * column + 2, column] = 1, -1
    nodes = [helper.make_node("MatMul", ["x", "v"], ["a"], "first"), helper.make_node("Add", ["a", "b"], ["c"], "up"),
             helper.make_node("Relu", ["c"], ["r"], "relu"), helper.make_node("MatMul", ["r", "w"], ["y"], "last")]
    weights = {"v": rng.standard_normal((64, 64)).astype(np.float32) / 64, "b": np.full(64, 100, np.float32),
               "w": differences}
    model, data = tmp_path / "m.onnx", tmp_path / "data"
    data.mkdir()
    samples = rng.standard_normal((16, 64)).astype(np.float32)

    def shaped(*outer):
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*outer, 64])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*outer, 32])],
                                  [numpy_helper.from_array(array, name) for name, array in weights.items()])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        np.save(data / "0.npy", samples.reshape(*outer, 64))

    def profiled(*options):
        done = aglow("profile", model, "--data", data, "-o", tmp_path / "p.json", "--backend", backend, *options)
        assert done.code == 0, done.err
        report = aglow("quant-report", model, "--profile", tmp_path / "p.json", "--data", data, "--backend", backend,
                       "--no-layers", "--json")
        assert report.code == 0, report.err
        said = json.loads(report.out)
        return done.out, said, said["outputs"][0]["sqnr_db"]

    # Rows of classes have to stay largest where they are.
    shaped(16)
    assert profiled("--reach", "none")[1]["same_argmax"] < 16
    out, said, _ = profiled()
    assert said["same_argmax"] == said["rows"] == 16
    assert "to reach 25 dB and the same first places in 99.5 % of rows these layers stay in floats: " in out
    # Other outputs need the decibels alone.
    shaped(1, 2, 2, 4)
    out, said, decibels = profiled()
    assert decibels >= 25
    assert json.loads((tmp_path / "p.json").read_text())["keep_float"] == ["last"]
    assert "to reach 25 dB these layers stay in floats: last" in out
    assert said["in_floats"] == [{"name": "last", "op": "MatMul", "reason":
                                  "the samples of the profile showed too much noise with it in integers"}]
    kept = tmp_path / "kept.json"
    (tmp_path / "p.json").rename(kept)
    _, said, decibels = profiled("--reach", "none")
    assert decibels < 10 and not said["in_floats"] and "keep_float" not in (tmp_path / "p.json").read_text()
    # Where profiles meet, what one of them keeps stays.
    _, said, decibels = profiled("--reach", "none", "--merge", kept)
    assert decibels >= 25 and [layer["name"] for layer in said["in_floats"]] == ["last"]
    wrong = aglow("profile", model, "--data", data, "-o", tmp_path / "p.json", "--reach", "loud")
    assert wrong.code == 1 and "expected decibels, as in 30dB" in wrong.err
    kept.write_text(kept.read_text().replace('["last"]', '"last"'))
    broken = aglow("run", model, "--precision", "int8", "--profile", kept, "--input", f"x={data / '0.npy'}")
    assert broken.code == 8 and "expected a list of names 'keep_float'" in broken.err


def test_python_profiles_are_checked_too(tmp_path):
    aglow = pytest.importorskip("aglow")
    images = [np.load(IMAGES / f"{label}.npy") for label in LABELS]
    assert aglow.profile(DIGITS, images, backend="interpreter").keep_float == []
    kept = aglow.profile(DIGITS, images, backend="interpreter", reach=60)
    assert kept.keep_float == ["batchnormalization1.9.2"]
    model = aglow.compile(DIGITS, backend="interpreter", precision="int8", profile=kept)
    exact = aglow.compile(DIGITS, backend="interpreter")
    assert sqnr(*(np.concatenate([one(image) for image in images]) for one in (exact, model))) >= 60
    assert aglow.profile(DIGITS, images, backend="interpreter", reach=None).keep_float == []
    with pytest.raises(aglow.UsageError, match="expected decibels"):
        aglow.profile(DIGITS, images, reach=-1)


def test_a_model_without_products_has_nothing_to_profile(aglow, tmp_path):
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    np.save(tmp_path / "x.npy", np.ones(4, np.float32))
    done = aglow("profile", tmp_path / "m.onnx", "--data", tmp_path, "-o", tmp_path / "p.json")
    assert done.code == 3 and "nothing of it would become integers" in done.err


def test_the_quantized_model_is_an_onnx_file(aglow, tmp_path, profile):
    """Which the reference runs with the same answers, and Aglow with the same bits."""
    from onnx.reference import ReferenceEvaluator
    words = ["compile", DIGITS, "--precision", "int8", "--profile", profile, "--emit", "onnx-qdq"]
    done = aglow(*words, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    model = onnx.load(tmp_path / "out" / "digits.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}
    assert sum(node.op_type == "QuantizeLinear" for node in model.graph.node) >= 5
    session = ReferenceEvaluator(model)
    for label in LABELS[:2]:
        image = IMAGES / f"{label}.npy"
        run = aglow("run", DIGITS, "--input", f"image={image}", "-o", tmp_path / "run", "--backend", "interpreter",
                    "--precision", "int8", "--profile", profile)
        assert run.code == 0, run.err
        again = aglow("run", tmp_path / "out" / "digits.onnx", "--input", f"image={image}", "-o", tmp_path / "again",
                      "--backend", "interpreter")
        assert again.code == 0, again.err
        got = np.load(tmp_path / "run" / "0.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "again" / "0.npy"), got)
        [expected] = session.run(None, {"image": np.load(image)})
        np.testing.assert_allclose(got, expected, atol=0.02)
    assert "not for the screen" in aglow(*words).err
    floats = aglow("compile", DIGITS, "--emit", "onnx-qdq", "-o", tmp_path / "x")
    assert floats.code == 1 and "needs --precision int8" in floats.err


def test_pools_say_only_what_is_not_the_default(aglow, tmp_path):
    """Engines have average pools of integers without the attribute."""
    for dilations in ([1, 1], [2, 1]):
        node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 2], dilations=dilations)
        graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 5, 5])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), tmp_path / "m.onnx")
        assert aglow("compile", tmp_path / "m.onnx", "--stop-after", "import", "--emit", "onnx", "-o", tmp_path).code == 0
        [made] = onnx.load(tmp_path / "m.onnx").graph.node
        assert any(one.name == "dilations" for one in made.attribute) == (dilations != [1, 1])


@pytest.mark.parametrize("backend, kept", [("interpreter", []), ("cpu", ["grouped"])])
def test_backends_keep_in_floats_what_is_faster_there(aglow, tmp_path, backend, kept):
    """Groups of a few channels have no kernel of bytes on the CPU: the report says so."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("Conv", ["x", "v"], ["whole"], name="whole"),
             helper.make_node("Conv", ["whole", "w"], ["y"], name="grouped", group=8)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 32, 6, 6])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 32, 6, 6])],
                              [numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
                               for name, shape in (("v", (32, 32, 1, 1)), ("w", (32, 4, 1, 1)))])
    model = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), model)
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "0.npy", rng.standard_normal((1, 32, 6, 6)).astype(np.float32))
    assert aglow("profile", model, "--data", tmp_path / "data", "-o", tmp_path / "p.json").code == 0
    words = ["quant-report", model, "--profile", tmp_path / "p.json", "--data", tmp_path / "data", "--backend", backend]
    done = aglow(*words, "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert [layer["name"] for layer in said["in_floats"]] == kept
    assert sorted([layer["name"] for layer in said["layers"]] + kept) == ["grouped", "whole"]
    for layer in said["in_floats"]:
        assert layer["reason"] == "groups of 4 and 4 channels are not whole vectors"
    text = aglow(*words, "--no-layers", "--html", tmp_path / "r.html").out
    assert ("grouped (Conv): groups of 4 and 4 channels are not whole vectors" in text) == bool(kept)
    row = "<tr><td>grouped<td>Conv<td>groups of 4 and 4 channels are not whole vectors"
    assert (row in (tmp_path / "r.html").read_text()) == bool(kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_report_ranks_values_and_layers(aglow, tmp_path, profile, backend):
    words = ["quant-report", DIGITS, "--data", IMAGES, "--profile", profile, "--backend", backend, "--json"]
    report = json.loads(aglow(*words, "--html", tmp_path / "r.html").out)
    assert report["samples"] == report["rows"] == report["same_argmax"] == 8
    [output] = report["outputs"]
    assert output["sqnr_db"] >= 25
    ratios = {row["name"]: row["sqnr_db"] for row in report["values"]}
    assert ratios.pop("@image") is None and set(ratios) < set(json.loads(profile.read_text())["values"])
    assert list(ratios.values()) == sorted(ratios.values()) and min(ratios.values()) >= 20
    alone = [row["sqnr_db"] for row in report["layers"]]
    assert len(alone) == 5 and alone == sorted(alone) and alone[0] > output["sqnr_db"] - 1
    # Their noises add up to about that of all, which is rounded in more places.
    assert abs(10 * np.log10(1 / sum(10 ** (-ratio / 10) for ratio in alone)) - output["sqnr_db"]) < 6
    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg") == 8 and "%relu9" in page and "http" not in page
    floats = json.loads(aglow(*words, "--keep-float", "Conv,MatMul").out)
    assert all(row["sqnr_db"] is None for row in floats["values"] + floats["outputs"]) and floats["layers"] == []
    missing = aglow("quant-report", DIGITS, "--data", IMAGES)
    assert missing.code == 1 and "needs a profile" in missing.err


def test_a_report_finds_what_to_keep(aglow, tmp_path, profile):
    words = ["quant-report", DIGITS, "--data", IMAGES, "--profile", profile, "--backend", "interpreter", "--json"]
    report = json.loads(aglow(*words, "--reach", "60dB").out)
    found, names = report["reach"], [row["name"] for row in report["layers"]]
    assert 0 < len(found["keep_float"]) < 5 and found["keep_float"] == names[:len(found["keep_float"])]
    assert found["outputs"][0]["sqnr_db"] >= 60
    # Both passes are worth it.
    gains = {row["name"]: report["outputs"][0]["sqnr_db"] - row["sqnr_db_without"] for row in report["gains"]}
    assert set(gains) == {"equalize", "correct-bias"} and gains["correct-bias"] > 3
    plain = json.loads(aglow(*words, "--no-layers", "--disable", "equalize,correct-bias").out)
    assert plain["outputs"][0]["sqnr_db"] < report["outputs"][0]["sqnr_db"] - 3 and plain["gains"] == []
    kept = json.loads(aglow(*words, "--no-layers", "--keep-float", ",".join(found["keep_float"])).out)
    assert kept["outputs"] == found["outputs"] and kept["layers"] == []
    assert json.loads(aglow(*words, "--reach", "40").out)["reach"]["keep_float"] == []
    everything = json.loads(aglow(*words, "--reach", "300dB").out)["reach"]
    assert len(everything["keep_float"]) == 5 and everything["outputs"][0]["sqnr_db"] is None
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(map(str, LABELS)) + "\n")
    judged = json.loads(aglow(*words, "--labels", labels, "--drop", "0").out)
    assert judged["metric"] == judged["float_metric"] == 1 and judged["reach"]["keep_float"] == []
    labels.write_text("0\nseven\n")
    wrong = aglow(*words, "--labels", labels)
    assert wrong.code == 1 and "labels.txt:2" in wrong.err
    labels.write_text("0\n7\n")
    few = aglow(*words, "--labels", labels)
    assert few.code == 1 and "there are 2 labels, and 8 rows" in few.err
    assert aglow(*words, "--reach", "many").code == 1 and aglow(*words, "--drop", "0.1").code == 1


def test_python_reports_with_any_metric(profile):
    aglow = pytest.importorskip("aglow")
    images = [np.load(IMAGES / f"{label}.npy") for label in LABELS]

    def likelihood(samples):
        return np.mean([np.log(outputs[0][0, label]) for outputs, label in zip(samples, LABELS)])

    report = aglow.quant_report(DIGITS, profile, images, metric=likelihood, drop=1e-4, backend="interpreter")
    assert report.data["metric_name"] == "likelihood" and "likelihood" in str(report) and "<svg" in report.html
    assert report.data["reach"]["metric"] >= report.data["float_metric"] - 1e-4
    layers = [row["metric"] for row in report.data["layers"]]
    assert layers == sorted(layers) and report.keep_float == [row["name"] for row in report.data["layers"]][:len(
        report.keep_float)]

    def broken(_):
        raise KeyError("no such metric")

    with pytest.raises(KeyError, match="no such metric"):
        aglow.quant_report(DIGITS, profile, images[:1], metric=broken, backend="interpreter")
    with pytest.raises(aglow.UsageError, match="there is none"):
        aglow.quant_report(DIGITS, profile, images[:1], drop=0.1, backend="interpreter")
    with pytest.raises(aglow.UsageError, match="there are no samples"):
        aglow.quant_report(DIGITS, profile, [])
