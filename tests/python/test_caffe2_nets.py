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


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_quantized_layers(run, backend):
    """A convolution, a sum and a fully connected layer on bytes, against integers in numpy."""
    w = RANDOM.integers(0, 256, (3, 1, 1, 2)).astype(np.uint8)
    bias = RANDOM.integers(-500, 500, 3).astype(np.int32)
    fc = RANDOM.integers(0, 256, (2, 12)).astype(np.uint8)

    def given(name, array, scale, zero):
        kind = "Int8GivenTensorFill" if array.dtype == np.uint8 else "Int8GivenIntTensorFill"
        values = array.tobytes() if array.dtype == np.uint8 else [int(v) for v in array]
        return Op(kind, [], [name], {"shape": list(array.shape), "values": values, "Y_scale": scale, "Y_zero_point": zero})

    init = Net("init", [given("w", w, 0.02, 120), given("b", bias, 0.0001, 0), given("v", fc, 0.01, 128),
                        given("c", np.zeros(2, np.int32), 0.001, 0)])
    y = {"Y_scale": 0.05, "Y_zero_point": 3}
    net = Net("int8", [Op("Int8Quantize", ["x"], ["q"], {"Y_scale": 0.01, "Y_zero_point": 100}),
                       Op("Int8ConvRelu", ["q", "w", "b"], ["r"], {"kernel": 1, "order": "NHWC", **y}),
                       Op("Int8Add", ["r", "r"], ["s"], {"Y_scale": 0.1, "Y_zero_point": 5}),
                       Op("Int8FC", ["s", "v", "c"], ["t"], {"Y_scale": 0.3, "Y_zero_point": 127}),
                       Op("Int8Dequantize", ["t"], ["y"])], ["x"], ["y", "s"])
    x = f32(1, 2, 2, 2)

    def rounded(v):
        return np.sign(v) * np.floor(abs(v) + 0.5)

    q = np.clip(np.round(x / np.float32(0.01)) + 100, 0, 255).astype(int) - 100
    sums = np.einsum("nhwc,oc->nhwo", q, w.reshape(3, 2).astype(int) - 120) + bias
    r = np.clip(rounded(sums * (0.01 * 0.02 / 0.05)) + 3, 3, 255)
    s = np.clip(rounded((r - 3) * 0.05 * 2 / 0.1) + 5, 0, 255)
    t = np.clip(rounded((s.reshape(1, 12) - 5) @ (fc.astype(int) - 128).T * (0.1 * 0.01 / 0.3)) + 127, 0, 255)
    got, gotSum = run(net, init, {"x": x}, "--backend", backend)
    assert abs(gotSum.astype(int) - s).max() <= 1
    np.testing.assert_allclose(got, (t - 127) * 0.3, atol=0.31)


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
