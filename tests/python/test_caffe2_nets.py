"""Whole Caffe2 nets through the program: pairs of files in both forms, blobs written in place, quantized layers,
recurrent nets, and what is said of nets that are not right."""
import numpy as np
import pytest

from caffe2_nets import Net, Op, field, fill

RANDOM = np.random.default_rng(3)


def f32(*shape):
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


@pytest.fixture
def run(aglow, tmp_path):
    """run(net, init, inputs, ...): the net's outputs, or the outcome of a run that fails."""

    def call(net, init, inputs, *options, form="binary", command="run", fails=False):
        names = {"binary": ("predict_net.pb", "init_net.pb"), "text": ("predict_net.pbtxt", "init_net.pbtxt")}[form]
        for name, content in zip(names, (net, init)):
            if isinstance(content, Net):
                content = content.binary() if form == "binary" else content.text().encode()
            if content is not None:
                (tmp_path / name).write_bytes(content)
        arguments = [command, tmp_path / names[0], *options]
        if init is not None:
            arguments += ["--init", tmp_path / names[1]]
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
            arguments.append(f"--input={name}={tmp_path}/{name}.npy")
        if command == "run":
            arguments += ["--output-dir", tmp_path / "out"]
        outcome = aglow(*arguments)
        if fails or command != "run":
            assert (outcome.code != 0) == fails, outcome.err
            return outcome
        assert outcome.code == 0, outcome.err
        return [np.load(tmp_path / "out" / f"{i}.npy") for i in range(len(getattr(net, "outputs", [])) or 1)]

    return call


def small_net():
    """fc, then relu in place, then a sum with the blob's older value."""
    w, b = f32(4, 3), f32(4)
    ops = [Op("FC", ["x", "w", "b"], ["y"]), Op("Copy", ["y"], ["before"]), Op("Relu", ["y"], ["y"]),
           Op("Add", ["y", "before"], ["y"])]
    net = Net("small", ops, ["x", "w", "b"], ["y"])
    init = Net("init", [fill("w", w), fill("b", b)], [], ["w", "b"])

    def oracle(x):
        y = x @ w.T + b
        return np.maximum(y, 0) + y
    return net, init, oracle


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("form", ["binary", "text"])
def test_pairs_in_both_forms(run, form, backend):
    net, init, oracle = small_net()
    x = f32(2, 3)
    got = run(net, init, {"x": x}, "--backend", backend, form=form)[0]
    np.testing.assert_allclose(got, oracle(x), rtol=1e-5, atol=1e-6)


def test_text_form_as_people_write_it(run):
    text = b"""# a comment
    name : 'twice' type: "simple" device_option { device_type: 1 random_seed: 7 }
    op < input: "x", output: "y"; type: 'Sc' "ale" arg: { name: "scale" f: 2e0 } engine: "" >
    op { input: "y" output: "z" type: "Transpose" arg { name: "axes" ints: [1, 0x0] } }
    arg { name: "observer" i: -1 strings: ["a", "b"] }
    external_input: "x" external_output: "z"
    partition_info { name: "p" device_id: [1, 2] options < key: "k" > }
    """
    x = f32(2, 3)
    np.testing.assert_array_equal(run(text, b"", {"x": x}, form="text")[0], (2 * x).T)


def test_inputs_keep_their_name_when_they_are_written(run):
    net = Net("inplace", [Op("Relu", ["x"], ["x"]), Op("Negative", ["x"], ["y"])], ["x"], ["y", "x"])
    x = f32(3)
    y, after = run(net, Net("init", []), {"x": x})
    np.testing.assert_array_equal(after, np.maximum(x, 0))
    np.testing.assert_array_equal(y, -np.maximum(x, 0))


def test_inputs_that_the_net_does_not_list(run):
    net = Net("unlisted", [Op("Sum", ["a", "b"], ["y"])], [], [])
    a, b = f32(3), f32(3)
    np.testing.assert_array_equal(run(net, Net("init", []), {"a": a, "b": b})[0], a + b)


def test_placeholders_and_unread_inputs(run):
    """Init nets may hold a placeholder for the data, and nets may list blobs that nobody reads."""
    init = Net("init", [Op("ConstantFill", [], ["data"], {"shape": [1]}), fill("w", np.float32([2]))])
    net = Net("net", [Op("Mul", ["data", "w"], ["data"])], ["data", "w", "nobody"], ["data"])
    x = f32(2, 3)
    np.testing.assert_array_equal(run(net, init, {"data": x})[0], 2 * x)
    np.testing.assert_array_equal(run(net, init, {"data": x, "nobody": x, "w": f32(1) * 0})[0], 0 * x)


def test_init_nets_compute(run):
    init = Net("init", [Op("XavierFill", [], ["w"], {"shape": [4, 3]}), Op("ConstantFill", [], ["b"], {"shape": [4]}),
                        Op("Scale", ["w"], ["w"], {"scale": 0.0})])
    net = Net("fc", [Op("FC", ["x", "w", "b"], ["y"])], ["x", "w", "b"], ["y"])
    np.testing.assert_array_equal(run(net, init, {"x": f32(2, 3)})[0], np.zeros((2, 4)))


def given(name, array, scale, zero):
    """A fill of quantized values, or of a bias."""
    kind = "Int8GivenTensorFill" if array.dtype == np.uint8 else "Int8GivenIntTensorFill"
    values = array.tobytes() if array.dtype == np.uint8 else [int(v) for v in array]
    return Op(kind, [], [name], {"shape": list(array.shape), "values": values, "Y_scale": scale, "Y_zero_point": zero})


def to_bytes(real, scale, zero, low=0):
    return np.clip(np.rint(np.asarray(real, np.float64) / scale) + zero, low, 255).astype(np.uint8)


def windows(x, kernel, stride, pad, outside):
    """[n, h, w, c, kernel, kernel] of an image with channels last."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=outside)
    return np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), (1, 2))[:, ::stride, ::stride]


def quantized_net():
    """Layers of a residual net on bytes with their answers from integers; weights with zero points of all kinds."""
    rng = np.random.default_rng(8)
    ops, fills, blobs = [], [], {}

    def some_bytes(*shape):
        return rng.integers(0, 256, shape).astype(np.uint8)

    def layer(kind, inputs, name, scale, zero, answer, **args):
        ops.append(Op(kind, inputs, [name], {"Y_scale": scale, "Y_zero_point": zero, **args}))
        blobs[name] = (answer, scale, zero)

    def integers(name):
        return blobs[name][0].astype(int) - blobs[name][2]

    def real(name):
        return integers(name) * np.float64(np.float32(blobs[name][1]))

    def conv(name, x, filter_, weight_zero, scale, zero, relu, stride=1, pad=0, group=1):
        bias = rng.integers(-3000, 3000, len(filter_)).astype(np.int32)
        fills.extend([given(f"{name}_w", filter_, 0.01, weight_zero), given(f"{name}_b", bias, 0.0001, 0)])
        kernel, weights = filter_.shape[1], filter_.astype(int) - weight_zero
        seen = windows(integers(x), kernel, stride, pad, 0)
        form = "nhwckl,cklo->nhwc" if group > 1 else "nhwckl,oklc->nhwo"
        sums = np.einsum(form, seen, weights) + bias
        answer = to_bytes(sums, scale / (blobs[x][1] * 0.01), zero, zero if relu else 0)
        layer("Int8ConvRelu" if relu else "Int8Conv", [x, f"{name}_w", f"{name}_b"], name, scale, zero, answer,
              kernel=kernel, stride=stride, pad=pad, group=group, order="NHWC")

    x = rng.uniform(-1, 1, (2, 9, 10, 16)).astype(np.float32)
    layer("Int8Quantize", ["x"], "q", 0.01, 100, np.clip(np.round(x / np.float32(0.01)) + 100, 0, 255).astype(np.uint8))
    conv("a", "q", some_bytes(32, 3, 3, 16), 128, 0.0713, 3, True, pad=1)
    conv("d", "a", some_bytes(32, 3, 3, 1), 120, 0.4957, 130, False, pad=1, group=32)
    conv("p", "d", some_bytes(32, 1, 1, 32), 77, 4.013, 90, False)
    layer("Int8AddRelu", ["a", "p"], "s", 4.0, 5, to_bytes(real("a") + real("p"), 4, 5, 5))
    pooled = windows(blobs["s"][0], 2, 2, 0, 0).max((-1, -2))
    layer("Int8MaxPool", ["s"], "m", 4.0, 5, pooled, kernel=2, stride=2, order="NHWC")
    layer("Int8LeakyRelu", ["m"], "l", 3.0, 60, to_bytes(np.where(real("m") > 0, real("m"), 0.1 * real("m")), 3, 60), alpha=0.1)
    layer("Int8Concat", ["l", "l"], "c", 3.0, 60, np.concatenate([blobs["l"][0]] * 2, 3), axis=3, order="NHWC")
    layer("Int8AveragePool", ["c"], "g", 1.5, 20, to_bytes(real("c").mean((1, 2), keepdims=True), 1.5, 20),
          global_pooling=1, order="NHWC")
    fc = some_bytes(10, 64)
    fills.extend([given("f_w", fc, 0.01, 141), given("f_b", np.zeros(10, np.int32), 0.015, 0)])
    sums = integers("g").reshape(2, 64) @ (fc.astype(int) - 141).T
    layer("Int8FC", ["g", "f_w", "f_b"], "f", 9.0, 127, to_bytes(sums, 9 / (1.5 * 0.01), 127))
    layer("Int8FCRelu", ["g", "f_w", "f_b"], "h", 8.5, 33, to_bytes(sums, 8.5 / (1.5 * 0.01), 33, 33))
    layer("Int8Add", ["f", "h"], "e", 16.0, 101, to_bytes(real("f") + real("h"), 16, 101))
    up, bias = some_bytes(32, 3, 3, 12), rng.integers(-3000, 3000, 12).astype(np.int32)
    fills.extend([given("t_w", up, 0.01, 119), given("t_b", bias, 0.04, 0)])
    shares = np.einsum("nhwi,iklo->nhwklo", integers("m"), up.astype(int) - 119)
    sums = np.zeros((2, 2 * 4 + 1, 2 * 5 + 1, 12), int)
    for k, l in np.ndindex(3, 3):
        sums[:, k : k + 8 : 2, l : l + 10 : 2] += shares[:, :, :, k, l]
    layer("Int8ConvTranspose", ["m", "t_w", "t_b"], "t", 31.7, 140, to_bytes(sums + bias, 31.7 / (4 * 0.01), 140),
          kernel=3, stride=2, pad=0, order="NHWC")
    layer("Int8Sigmoid", ["f"], "y", 1 / 256, 0, to_bytes(1 / (1 + np.exp(-real("f"))), 1 / 256, 0))
    net = Net("int8", [*ops, Op("Int8Dequantize", ["f"], ["z"])], ["x"], [*blobs, "z"])
    return net, Net("init", fills), x, [*(answer for answer, _, _ in blobs.values()), real("f").astype(np.float32)]


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_quantized_layers(run, backend):
    net, init, x, expected = quantized_net()
    for name, got, wanted in zip(net.outputs, run(net, init, {"x": x}, "--backend", backend), expected):
        np.testing.assert_array_equal(got, wanted, err_msg=name)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize("kind, args, answer", [
    ("Int8Reshape", {"shape": [0, -1, 4]}, lambda q: q.reshape(2, -1, 4)),
    ("Int8Flatten", {}, lambda q: q.reshape(2, -1)),
    ("Int8Transpose", {"axes": [0, 3, 1, 2]}, lambda q: q.transpose(0, 3, 1, 2)),
    ("Int8Slice", {"starts": [0, 1, 0, 2], "ends": [-1, 3, -1, 7]}, lambda q: q[:, 1:3, :, 2:7]),
    ("Int8ChannelShuffle", {"group": 4, "order": "NHWC"},
     lambda q: q.reshape(*q.shape[:3], 4, 2).swapaxes(3, 4).reshape(q.shape)),
    ("Int8ResizeNearest", {"width_scale": 2.0, "height_scale": 2.0, "order": "NHWC"}, lambda q: q.repeat(2, 1).repeat(2, 2)),
    ("Int8Relu", {"Y_scale": 0.02, "Y_zero_point": 110}, lambda q: np.maximum(q, 110)),
    ("Int8Softmax", {"axis": 3}, lambda q: to_bytes(
        (e := np.exp(0.02 * (q.astype(float) - 110))) / e.sum(3, keepdims=True), 1 / 256, 0)),
    ("Int8AveragePool", {"kernel": 3, "stride": 1, "pad": 1, "order": "NHWC", "Y_scale": 0.01, "Y_zero_point": 128},
     lambda q: to_bytes(windows(q.astype(int) - 110, 3, 1, 1, 0).mean((-1, -2)) * 0.02, 0.01, 128)),
])
def test_quantized_values(run, backend, kind, args, answer):
    """One operator on bytes; what has no scale of its own keeps that of its operand."""
    x = f32(2, 3, 5, 8)
    q = np.clip(np.round(x / np.float32(0.02)) + 110, 0, 255).astype(np.uint8)
    net = Net("one", [Op("Int8Quantize", ["x"], ["q"], {"Y_scale": 0.02, "Y_zero_point": 110}), Op(kind, ["q"], ["y"], args)],
              ["x"], ["y"])
    np.testing.assert_array_equal(run(net, None, {"x": x}, "--backend", backend)[0], answer(q))


def test_zero_points_are_bytes(run):
    net = Net("one", [Op("Int8Quantize", ["x"], ["y"], {"Y_scale": 0.02, "Y_zero_point": 300})], ["x"], ["y"])
    assert "expected a 'Y_zero_point' of 0 to 255, got 300" in run(net, None, {"x": f32(2, 3)}, fails=True).err


def test_quantized_layers_are_computed_with_bytes(run, tmp_path):
    """Also those with weights that no signed byte holds."""
    net, init, x, _ = quantized_net()
    net.outputs = ["y"]
    outcome = run(net, init, {}, "--shape", "x=2x9x10x16", "--cpu", "x86-64-v3", "--explain", command="inspect")
    kernels = [line for line in outcome.out.splitlines() if "Conv" in line or "MatMul" in line]
    assert kernels and not any("general" in line for line in kernels), outcome.out


def test_recurrent_network(run):
    """An LSTM as Caffe2's own helpers lay it out."""
    steps, batch, width = 4, 2, 3
    step = Net("step", [Op("FC", ["h_prev", "w", "b"], ["gates_h"], {"axis": 2}),
                        Op("Sum", ["gates_h", "input_t"], ["gates"]),
                        Op("LSTMUnit", ["h_prev", "c_prev", "gates", "lengths", "timestep"], ["h", "c"])],
               ["input_t", "timestep", "h_prev", "c_prev", "lengths", "w", "b"], ["h", "c"])
    rnn = Op("RecurrentNetwork", ["x", "h0", "c0", "lengths", "w", "b"],
             ["h_all", "h_last", "c_all", "c_last", "workspaces"],
             {"step_net": step, "timestep": "timestep", "recurrent_states": ["h_states", "c_states"],
              "initial_recurrent_state_ids": [1, 2],
              "link_internal": ["h_prev", "h", "c_prev", "c", "input_t"],
              "link_external": ["h_states", "h_states", "c_states", "c_states", "x"], "link_offset": [0, 1, 0, 1, 0],
              "alias_src": ["h_states", "h_states", "c_states", "c_states"],
              "alias_dst": ["h_all", "h_last", "c_all", "c_last"], "alias_offset": [1, -1, 1, -1]})
    w, b = f32(4 * width, width), f32(4 * width)
    net = Net("rnn", [rnn], ["x", "h0", "c0", "lengths", "w", "b"], ["h_all", "h_last", "c_last"])
    inputs = {"x": f32(steps, batch, 4 * width), "h0": f32(batch, width), "c0": f32(width),
              "lengths": np.array([4, 2], np.int32)}
    h, c, history = inputs["h0"], np.tile(inputs["c0"], (batch, 1)), []
    for t in range(steps):
        i, f, o, g = np.split(inputs["x"][t] + h @ w.T + b, 4, -1)
        running = (t < inputs["lengths"])[:, None]
        cell = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.where(running, np.tanh(cell) / (1 + np.exp(-o)), h)
        c = np.where(running, cell, c)
        history.append(h)
    got = run(net, Net("init", [fill("w", w), fill("b", b)]), inputs)
    for actual, wanted in zip(got, (np.stack(history), h[None], c[None])):
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)


# ---- what is said of nets that are not right

def test_missing_weights_name_the_init_net(run):
    net, _, _ = small_net()
    outcome = run(net, None, {"x": f32(2, 3)}, fails=True)
    assert outcome.code == 1 and "'w'" in outcome.err and "--init" in outcome.err


def test_all_unsupported_operators_at_once(run):
    net = Net("odd", [Op("Nonsense", ["x"], ["y"]), Op("Relu", ["y"], ["z"]), Op("Humbug", ["z"], ["w"])], ["x"], ["w"])
    outcome = run(net, Net("init", []), {"x": f32(3)}, fails=True)
    assert outcome.code == 3 and "Nonsense" in outcome.err and "Humbug" in outcome.err


def test_inspect(run):
    net, init, _ = small_net()
    said = run(net, init, {}, command="inspect").out
    assert "Caffe2 net 'small'" in said and "16 parameters" in said and "caffe2::FC" in said
    assert "yes" in run(net, init, {}, "--support", command="inspect").out


def test_compile_with_shapes(run, tmp_path):
    net, init, _ = small_net()
    run(net, init, {}, "--shape", "x=2x3", "--output", tmp_path / "bundle", command="compile")


def test_init_net_with_an_onnx_model(run):
    model = bytes([8, 8]) + field(7, field(1, field(1, "x") + field(2, "y") + field(4, "Relu"))) + field(8, bytes([16, 13]))
    outcome = run(model, Net("init", []), {}, fails=True)
    assert outcome.code == 1 and "ONNX" in outcome.err


@pytest.mark.parametrize("form", ["binary", "text"])
def test_cut_and_changed_files(run, form):
    """Whatever becomes of the bytes, the answer is a clean one."""
    net, init, _ = small_net()
    whole = net.binary() if form == "binary" else net.text().encode()
    for at in range(5, len(whole), 7):
        outcome = run(whole[:at], init if form == "binary" else Net("init", []), {}, form=form, fails=True)
        assert outcome.code in (1, 2, 3), outcome.err
    for at in range(3, len(whole), 11):
        changed = whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1:]
        outcome = run(changed, init if form == "binary" else Net("init", []), {}, form=form, fails=True)
        assert outcome.code in (1, 2, 3), outcome.err


def test_deep_nesting(run):
    deep = Net("deep", [Op("Relu", ["x"], ["y"])])
    for _ in range(200):
        deep = Net("deep", [Op("RecurrentNetwork", ["x"], ["y"], {"step_net": deep})])
    for form in ("binary", "text"):
        outcome = run(deep, Net("init", []), {}, form=form, fails=True)
        assert outcome.code == 2 and "nest" in outcome.err


def test_huge_extents(run):
    net = Net("huge", [Op("ConstantFill", [], ["y"], {"shape": [1 << 40, 1 << 40]})], [], ["y"])
    assert run(net, Net("init", []), {}, fails=True).code in (2, 4)
