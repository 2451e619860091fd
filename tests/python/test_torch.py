"""torch.compile and export through Aglow. torch is large and not among what the tests install: without it only the table
of rows is looked at."""
import ast
import re

import numpy as np
import pytest

from conftest import ROOT

aglow = pytest.importorskip("aglow", reason="the module is not built: ./dev test builds it")

ROWS = [ROOT / "python" / "aglow" / "torch" / name for name in ("_rows.py", "_rows_nn.py")]


def test_rows_name_methods_that_there_are():
    """Without torch: whatever rows call on the builder is a method of it."""
    for path in ROWS:
        text = path.read_text()
        called = set(re.findall(r"\bn\.b\.(\w+)\(", text))
        for table in ("_UNARY", "_BINARY", "_LOGICAL"):
            if found := re.search(rf"^{table} = (\{{.*?\}})", text, re.M | re.S):
                called |= set(ast.literal_eval(found[1]).values())
        assert called and all(hasattr(aglow.Builder, name) for name in called), path


def test_the_backend_is_registered():
    assert 'aglow = "aglow.torch:backend"' in (ROOT / "pyproject.toml").read_text()


torch = pytest.importorskip("torch") if __import__("importlib").util.find_spec("torch") else None
needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")


@pytest.fixture
def compiled():
    import aglow.torch
    torch._dynamo.reset()
    aglow.torch.reset()
    torch.manual_seed(1)
    yield lambda module, **how: torch.compile(module, backend="aglow", **how)
    torch._dynamo.reset()


def small():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                               torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 16, 10)).eval()


@needs_torch
def test_a_network_runs_whole(compiled):
    module, x = small(), torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x), rtol=1e-4, atol=1e-5)
    [graph] = aglow.torch.report()
    assert graph.pieces == 1 and graph.inside == graph.nodes and not graph.fallbacks


@needs_torch
def test_sizes_and_weights_that_change(compiled):
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).eval()
    fast = compiled(module, dynamic=True)
    with torch.no_grad():
        for rows in (2, 3, 2, 5):
            x = torch.randn(rows, 4)
            torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
        module[0].weight.mul_(2)
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


@needs_torch
def test_operators_that_torch_runs(compiled):
    class Mixed(torch.nn.Module):
        def forward(self, x):
            values = torch.linalg.eigvalsh(x @ x.T + torch.eye(4))
            return torch.relu(values - 1) * 2

    x = torch.randn(4, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(Mixed())(x), Mixed()(x), rtol=1e-3, atol=1e-4)
    [graph] = aglow.torch.report()
    assert graph.pieces == 2 and any("eigh" in op for op, _ in graph.fallbacks)
    assert "torch runs" in str(aglow.torch.report())


@needs_torch
def test_gradients_stay_with_torch(compiled):
    module, x = torch.nn.Linear(3, 3), torch.randn(2, 3)
    compiled(module)(x).sum().backward()
    assert module.weight.grad is not None and "no_grad" in str(aglow.torch.report())


@needs_torch
def test_attention_masks_and_indices(compiled):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(20, 16)
            self.norm = torch.nn.LayerNorm(16)

        def forward(self, words):
            x = self.norm(self.embed(words)).view(2, 5, 4, 4).transpose(1, 2)
            y = torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
            return y.transpose(1, 2).reshape(2, 5, 16).softmax(-1), (words > 3) & (words % 2 == 0)

    module, words = Block().eval(), torch.randint(0, 20, (2, 5))
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(words), module(words), rtol=1e-4, atol=1e-5)


@needs_torch
def test_weights_are_torchs_memory(compiled):
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.randn(256, 256))

        def forward(self, x):
            return x * self.scale

    with torch.no_grad():
        compiled(Scaled())(torch.randn(256, 256))
    [graph] = aglow.torch.report()
    assert graph.shared_bytes == graph.weights_bytes == 256 * 256 * 4


@needs_torch
@pytest.mark.parametrize("rows", [1, 2, 9])
def test_matrices_are_torchs_memory(compiled, rows):
    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(160, 200), torch.nn.Parameter(torch.randn(200, 96))

        def forward(self, x):
            return torch.relu(self.first(x)) @ self.second

    module, x = Turned().eval(), torch.randn(rows, 160)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x), rtol=1e-4, atol=1e-4)
        [graph] = aglow.torch.report()
        assert graph.shared_bytes == graph.weights_bytes == (160 * 200 + 200 + 200 * 96) * 4
        torch._dynamo.reset()
        aglow.torch.reset()
        torch.testing.assert_close(compiled(module, options={"pack_weights": True})(x), module(x), rtol=1e-4, atol=1e-4)
        [graph] = aglow.torch.report()
        assert graph.shared_bytes < 160 * 200 * 4


@needs_torch
def test_weights_that_change_in_inference_mode(compiled):
    module = torch.nn.Conv1d(4, 4, 3).eval()
    fast, x = compiled(module), torch.randn(1, 4, 8)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        module.weight.mul_(2)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), module(x), rtol=1e-4, atol=1e-5)


@needs_torch
def test_tensors_of_kinds_that_numpy_lacks():
    graph = aglow.Graph()
    main = graph.function()
    main.output("y", main.transpose(main.input("x", "bf16", (2, 3)), perm=[1, 0]))
    x = torch.randn(2, 3).to(torch.bfloat16)
    assert torch.equal(torch.from_dlpack(aglow.dlpack(aglow.compile(graph)(x))), x.T)


@needs_torch
def test_bfloat16(compiled):
    module = torch.nn.Linear(8, 8).to(torch.bfloat16).eval()
    x = torch.randn(2, 8, dtype=torch.bfloat16)
    with torch.no_grad():
        torch.testing.assert_close(compiled(module)(x), module(x), rtol=2e-2, atol=2e-2)


@needs_torch
def test_export(tmp_path):
    import aglow.torch
    module, x = small(), torch.randn(2, 3, 8, 8)
    model = aglow.torch.export(module, (x,))
    expected = module(x).detach().numpy()
    np.testing.assert_allclose(model(x), expected, rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "small.aglow")
    np.testing.assert_allclose(aglow.load(tmp_path / "small.aglow")(x.numpy()), expected, rtol=1e-4, atol=1e-5)

    class Eigen(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.eigvalsh(x)

    with pytest.raises(aglow.UnsupportedError, match="eigh"):
        aglow.torch.export(Eigen(), (torch.eye(3),))


@needs_torch
@pytest.mark.parametrize("call", [
    lambda x, y: torch.where(x > 0, x, y) + x.abs().sqrt(), lambda x, y: x.var(1) + y.mean(1), lambda x, y: x / (y.abs() + 1),
    lambda x, y: torch.cat([x, y], 1)[:, 1:7:2], lambda x, y: torch.stack([x, y]).flip(0), lambda x, y: x.argmax(1),
    lambda x, y: torch.nn.functional.pad(x, (1, 2), value=3.0), lambda x, y: x.topk(2), lambda x, y: x.sum() * 2 - y,
    lambda x, y: x[torch.tensor([2, 0])], lambda x, y: x[torch.tensor([2, 0]), torch.tensor([1, 1])],
    lambda x, y: x.repeat(2, 3), lambda x, y: x.gather(1, torch.zeros(2, 2, dtype=torch.int64)), lambda x, y: x.cumsum(0),
    lambda x, y: torch.div((x * 9).to(torch.int64), 2, rounding_mode="floor"), lambda x, y: x.unbind(1)[2] * 2,
    lambda x, y: torch.nn.functional.interpolate(x[None, None], scale_factor=2, mode="bilinear"), lambda x, y: x.max(1),
    lambda x, y: x.clamp(-0.5, 0.5).sigmoid(), lambda x, y: x.std(0, keepdim=True), lambda x, y: (x * 3).round().bool().any(1),
    lambda x, y: torch.nn.functional.interpolate(x[None, None], size=(6, 9), mode="nearest"), lambda x, y: x.to(torch.int32) + 1,
    lambda x, y: torch.nn.functional.silu(x) ** 3 + torch.arange(4), lambda x, y: x.log_softmax(-1).logsumexp(1),
])
def test_operators(compiled, call):
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(call)(x, y), call(x, y), rtol=1e-4, atol=1e-5)
    assert sum(graph.inside for graph in aglow.torch.report()) > 0
