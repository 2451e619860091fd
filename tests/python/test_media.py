"""Images and sounds as inputs, images as outputs, and files that are damaged."""
import json
import random
import wave

import numpy as np
import pytest
from module_models import model, node, save, unary, value
from onnx import TensorProto, numpy_helper

from conftest import ROOT

FILES = ROOT / "tests" / "media"
PIXELS = np.load(FILES / "gradient.npy")  # 12 rows of 16 pixels
EXACT = ["gradient.png", "gradient.webp", "gradient.tiff", "gradient.jp2", "gradient.bmp", "gradient.ppm", "alpha.png"]
NEAR = {"gradient.jpg": 4, "progressive.jpg": 14, "inks.jpg": 1, "palette.bmp": 64}


def identity(folder, shape, element=TensorProto.FLOAT):
    return save(unary("Identity", element, shape), folder / "identity.onnx")


@pytest.fixture
def load(aglow, tmp_path):
    """load(file, shape, *options): what an input of that shape gets."""
    def call(file, shape, *options, element=TensorProto.FLOAT):
        path = identity(tmp_path, shape, element)
        outcome = aglow("run", path, "--input", file, "-o", tmp_path / "out", *options)
        assert outcome.code == 0, outcome.err
        return np.load(tmp_path / "out" / "0.npy")
    return call


@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_formats(load, name):
    got = load(FILES / name, [1, "h", "w", 3], element=TensorProto.UINT8)
    assert got.shape == (1, *PIXELS.shape)
    assert np.abs(got[0].astype(int) - PIXELS).max() <= NEAR.get(name, 0)


def test_layouts_and_kinds(load):
    png = FILES / "gradient.png"
    scaled = PIXELS.astype(np.float32) / np.float32(255)
    np.testing.assert_allclose(load(png, [1, 3, 12, 16])[0], scaled.transpose(2, 0, 1), atol=1e-7)
    np.testing.assert_allclose(load(png, [12, 16, 3]), scaled, atol=1e-7)
    np.testing.assert_array_equal(load(png, ["n", 3, "h", "w"], "--scale", "1", "--channels", "bgr")[0],
                                  PIXELS[:, :, ::-1].transpose(2, 0, 1))
    gray = (PIXELS.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 0x8000) >> 16
    np.testing.assert_array_equal(load(png, [1, 1, "h", "w"], element=TensorProto.UINT8)[0, 0], gray)
    np.testing.assert_array_equal(load(png, ["h", "w"], element=TensorProto.UINT8), gray)


def test_sizes(load, aglow, tmp_path):
    png = FILES / "gradient.png"
    # By hand: each new pixel of half as many weighs its two old ones, and those beside them, by 3, 3, 1 and 1.
    assert load(png, [1, 3, 6, 8]).shape == (1, 3, 6, 8)
    half = load(png, [1, "h", "w", 3], "--resize", "8x6", element=TensorProto.UINT8)[0]
    np.testing.assert_array_equal(half[:2, :3], [[[11, 14, 12], [40, 14, 29], [72, 14, 47]],
                                                 [[11, 50, 29], [40, 50, 46], [72, 50, 64]]])
    assert load(png, [1, 3, "h", "w"], "--resize", "24").shape == (1, 3, 24, 32)
    middle = load(png, [1, "h", "w", 3], "--crop", "4x6", element=TensorProto.UINT8)[0]
    np.testing.assert_array_equal(middle, PIXELS[3:9, 6:10])
    outcome = aglow("run", identity(tmp_path, [1, 3, "h", "w"]), "--input", png, "--crop", "20")
    assert outcome.code == 1 and "cannot be cropped to 20 by 20" in outcome.err


def test_mean_and_deviation(load, tmp_path):
    png = FILES / "gradient.png"
    mean, deviation = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    wanted = ((PIXELS / 255 - mean) / deviation).transpose(2, 0, 1)
    words = ["--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225"]
    np.testing.assert_allclose(load(png, [1, 3, "h", "w"], *words)[0], wanted, rtol=1e-5, atol=1e-6)
    settings = tmp_path / "preprocess.json"
    for keys in ({"mean": mean.tolist(), "std": deviation.tolist()},
                 {"image_mean": mean.tolist(), "image_std": deviation.tolist(), "rescale_factor": 1 / 255,
                  "size": {"shortest_edge": 12}, "crop_size": {"width": 16, "height": 12}}):
        settings.write_text(json.dumps(keys), encoding="utf-8")
        np.testing.assert_allclose(load(png, [1, 3, "h", "w"], "--preprocess", settings)[0], wanted, rtol=1e-5, atol=1e-6)
    preset = load(png, [1, 3, 224, 224], "--imagenet")
    assert preset.shape == (1, 3, 224, 224) and preset.min() >= -2.2 and preset.max() <= 2.7


def test_what_does_not_fit(aglow, tmp_path):
    png = FILES / "gradient.png"
    outcome = aglow("run", identity(tmp_path, [5, 7]), "--input", f"x={png}")
    assert outcome.code == 0  # brightness, resized
    for shape, words in (([1, 4, 8, 8], "1 or 3 channels"), ([2, 3, 8, 8], "one image is given for a batch of 2"),
                         ([7], "rank 2, 3 or 4")):
        outcome = aglow("run", identity(tmp_path, shape), "--input", png)
        assert outcome.code == 1 and words in outcome.err, outcome.err
    assert "deviation is not positive" in aglow("run", identity(tmp_path, [1, 3, 8, 8]), "--input", png, "--std", "0").err
    assert "is not a number of pixels" in aglow("run", identity(tmp_path, [1, 3, 8, 8]), "--input", png, "--resize", "0").err


def test_outputs_as_images(aglow, tmp_path):
    path = identity(tmp_path, [1, 3, "h", "w"])
    for ending in ("png", "bmp", "ppm"):
        outcome = aglow("run", path, "--input", FILES / "gradient.png", "--save", tmp_path / f"out.{ending}")
        assert outcome.code == 0 and outcome.out == "", outcome.err
        again = aglow("run", path, "--input", tmp_path / f"out.{ending}", "--save", tmp_path / "again.npy")
        assert again.code == 0, again.err
        np.testing.assert_allclose(np.load(tmp_path / "again.npy")[0], PIXELS.transpose(2, 0, 1) / 255, atol=1e-6)
    assert aglow("run", path, "--input", FILES / "gradient.png", "--save", f"y={tmp_path / 'out.jpg'}").code == 0
    assert (tmp_path / "out.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    wrong = aglow("run", path, "--input", FILES / "gradient.png", "--save", tmp_path / "out.gif")
    assert wrong.code == 1 and ".png" in wrong.err


def test_outputs_as_text_and_json(aglow, tmp_path):
    path = identity(tmp_path, ["n"])
    np.save(tmp_path / "x.npy", np.array([0.5, -2], np.float32))
    outcome = aglow("run", path, "--input", tmp_path / "x.npy", "--save", tmp_path / "y.txt", "--save", tmp_path / "y.json",
                    "--save", tmp_path / "y.npz")
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "y.txt").read_text() == "0.5\n-2\n"
    assert json.loads((tmp_path / "y.json").read_text())["elements"] == [0.5, -2.0]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npz")["y"], [0.5, -2])


def test_segments_become_colours(aglow, tmp_path):
    path = save(unary("Identity", shape=[1, 6, 2, 2]), tmp_path / "m.onnx")
    scores = np.zeros((1, 6, 2, 2), np.float32)
    scores[0, [0, 1, 2, 5], [0, 0, 1, 1], [0, 1, 0, 1]] = 1
    np.save(tmp_path / "x.npy", scores)
    assert aglow("run", path, "--input", tmp_path / "x.npy", "--save", tmp_path / "y.ppm").code == 0
    pixels = np.frombuffer((tmp_path / "y.ppm").read_bytes()[-12:], np.uint8).reshape(2, 2, 3)
    assert pixels.tolist() == [[[0, 0, 0], [128, 0, 0]], [[0, 128, 0], [128, 0, 128]]]


def test_ranking(aglow, tmp_path):
    path = identity(tmp_path, ["n", 4])
    np.save(tmp_path / "x.npy", np.array([[0.1, 0.7, 0.05, 0.15], [1, 2, 3, 4]], np.float32))
    (tmp_path / "labels.txt").write_text("cat\ndog\r\nfish\n", encoding="utf-8")
    outcome = aglow("run", path, "--input", tmp_path / "x.npy", "--top", "2", "--labels", tmp_path / "labels.txt")
    rows = [line.split() for line in outcome.out.splitlines()]
    assert rows == [["y[0]"], ["0.7", "1", "dog"], ["0.15", "3"], ["y[1]"], ["4", "3"], ["3", "2", "fish"]], outcome.err
    ranking = json.loads(aglow("run", path, "--input", tmp_path / "x.npy", "--top", "1", "--json").out)["ranking"]
    assert [row["top"][0]["index"] for row in ranking] == [1, 3]


# ---------------------------------------------------------------- other files

def test_sounds(load, aglow, tmp_path):
    samples = np.array([0, 16384, -32768, 32767], "<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    np.testing.assert_allclose(load(tmp_path / "a.wav", [1, "t"])[0], samples / 32768, atol=1e-7)
    outcome = aglow("run", identity(tmp_path, [1, 1, 6]), "--input", tmp_path / "a.wav", "--json")
    assert "4 samples at 16000 Hz become 6" in outcome.err
    assert json.loads(outcome.out)["outputs"][0]["elements"][4:] == [0.0, 0.0]
    with wave.open(str(tmp_path / "b.wav"), "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(3)
        file.setframerate(8000)
        file.writeframes(b"\0\0\x40\0\0\x20" * 2)
    np.testing.assert_allclose(load(tmp_path / "b.wav", ["t"]), [0.375, 0.375])


def test_archives_protos_and_json(load, aglow, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "one.npz", anything=x)
    np.savez(tmp_path / "more.npz", x=x, other=x + 1)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    (tmp_path / "x.json").write_text("[[0, 1, 2], [3, 4, 5]]", encoding="utf-8")
    for name in ("one.npz", "more.npz", "x.pb", "x.json"):
        np.testing.assert_array_equal(load(tmp_path / name, ["n", 3]), x)
    np.testing.assert_array_equal(load(f"{tmp_path / 'more.npz'}:other", ["n", 3]), x + 1)
    np.savez(tmp_path / "others.npz", a=x, b=x)
    outcome = aglow("run", identity(tmp_path, ["n", 3]), "--input", tmp_path / "others.npz")
    assert outcome.code == 1 and "it holds: a, b" in outcome.err, outcome.err
    for text in ("[[0, 1], [2]]", "[0, [1]]", "{", '["a"]', "[[[]]"):
        (tmp_path / "x.json").write_text(text, encoding="utf-8")
        outcome = aglow("run", identity(tmp_path, ["n", 3]), "--input", tmp_path / "x.json")
        assert outcome.code in (1, 8) and "error[" in outcome.err, text


def test_strings_as_json(aglow, tmp_path):
    path = save(unary("Identity", TensorProto.STRING), tmp_path / "m.onnx")
    (tmp_path / "x.json").write_text('["ä", "b"]', encoding="utf-8")
    document = json.loads(aglow("run", path, "--input", tmp_path / "x.json", "--json").out)
    assert document["outputs"][0]["elements"] == ["ä", "b"]


# ---------------------------------------------------------------- the operator, and damaged files

def decoder(folder, pixel_format="RGB"):
    proto = model([node("ImageDecoder", "x", "y", pixel_format=pixel_format)], [value("x", ["n"], TensorProto.UINT8)],
                  [value("y", ["h", "w", "c"], TensorProto.UINT8)])
    return save(proto, folder / "decoder.onnx")


def test_the_operator_takes_the_file(aglow, tmp_path):
    outcome = aglow("run", decoder(tmp_path, "BGR"), "--input", FILES / "gradient.png", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "0.npy"), PIXELS[:, :, ::-1])


def test_the_operator_refuses(aglow, tmp_path):
    np.save(tmp_path / "x.npy", np.frombuffer(b"no image", np.uint8))
    outcome = aglow("run", decoder(tmp_path), "--input", tmp_path / "x.npy")
    assert outcome.code == 8 and "no image file that is known" in outcome.err
    outcome = aglow("run", decoder(tmp_path, "CMYK"), "--input", FILES / "gradient.png")
    assert outcome.code == 2 and "RGB, BGR or Grayscale" in outcome.err


@pytest.mark.parametrize("name", [*EXACT[:6], "gradient.jpg", "progressive.jpg", "palette.bmp"])
def test_damaged_files(aglow, tmp_path, name):
    """Cut and changed files give pixels or an error, and take no more memory than what they hold."""
    rng = random.Random(name)
    whole = (FILES / name).read_bytes()
    path = identity(tmp_path, [1, "h", "w", 3], TensorProto.UINT8)
    damaged = [whole[:len(whole) * i // 5] for i in range(5)]
    for _ in range(8):
        changed = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        damaged.append(bytes(changed))
    for data in damaged:
        file = tmp_path / f"damaged{name[name.rfind('.'):]}"
        file.write_bytes(data)
        outcome = aglow("run", path, "--input", file, "-o", tmp_path / "out", "--threads", "1", memory_mb=3000)
        assert outcome.code == 0 or (outcome.code in (1, 4, 8) and "error[" in outcome.err), (outcome.code, outcome.err)


def test_claims_are_not_believed(aglow, tmp_path):
    path = identity(tmp_path, [1, "h", "w", 3], TensorProto.UINT8)
    png = bytearray((FILES / "gradient.png").read_bytes())
    png[16:24] = (60000).to_bytes(4, "big") * 2
    for name, data in {"a.ppm": b"P6\n999999999 999999999\n255\n", "b.ppm": b"P6\n60000 60000\n255\n", "c.png": bytes(png),
                       "d.bmp": b"BM" + bytes(8) + b"\x36\0\0\0\x28\0\0\0" + b"\xff\xff\0\0" * 2 + b"\1\0\x18\0" + bytes(24)}.items():
        (tmp_path / name).write_bytes(data)
        outcome = aglow("run", path, "--input", tmp_path / name, memory_mb=1500)
        assert outcome.code == 8 and "cannot be read" in outcome.err, (name, outcome.err)


def sized(name, height, width):
    """A JPEG file that claims another size in the header of its frame."""
    jpeg = bytearray((FILES / name).read_bytes())
    at = next(at for at in (jpeg.find(b"\xff\xc0"), jpeg.find(b"\xff\xc2")) if at > 0)
    jpeg[at + 5:at + 9] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return bytes(jpeg)


def test_few_bytes_are_no_large_image(aglow, tmp_path):
    """What claims many pixels a byte, or goes over its pixels again and again, is refused before the time is spent."""
    path = identity(tmp_path, [1, "h", "w", 3], TensorProto.UINT8)
    scans = sized("progressive.jpg", 4000, 4000)
    last, end = scans.rfind(b"\xff\xda"), scans.rfind(b"\xff\xd9")
    for data, expected in ((sized("gradient.jpg", 4000, 60000), "60000 by 4000 pixels in 747 bytes"),
                           (sized("inks.jpg", 4000, 60000), "60000 by 4000 pixels in 508 bytes"),
                           (scans[:end] + scans[last:end] * 300 + scans[end:], "scans or more, each of 16000000 pixels")):
        (tmp_path / "claims.jpg").write_bytes(data)
        outcome = aglow("run", path, "--input", tmp_path / "claims.jpg", memory_mb=1500)
        assert outcome.code == 8 and expected in outcome.err, outcome.err
