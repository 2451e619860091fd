"""The operators and small blocks that operators.py measures, as data: each case is a model of a few ONNX nodes.

A case has a name, its nodes (type, inputs, outputs, attributes) and its arrays: those that the model is given at every
run, and those that are constants in it, as weights are.
"""
import dataclasses
import zlib

import numpy

OPSET = 20


@dataclasses.dataclass
class Case:
    name: str
    nodes: list
    inputs: dict
    constants: dict
    outputs: list
    opset: int = OPSET
    # Of the largest absolute value of the result; None: of results that are counted or chosen, all are equal.
    tolerance: float | None = 1e-3


@dataclasses.dataclass
class Array:
    """How an operand comes about."""
    shape: tuple
    kind: str = "float32"
    low: float = -1.0
    high: float = 1.0
    constant: bool = False
    value: object = None

    def make(self, random):
        if self.value is not None:
            return numpy.asarray(self.value, self.kind)
        if self.kind == "bool":
            return random.random(self.shape) < 0.5
        if numpy.issubdtype(numpy.dtype(self.kind), numpy.integer):
            return random.integers(int(self.low), int(self.high), self.shape).astype(self.kind)
        return (random.random(self.shape) * (self.high - self.low) + self.low).astype(self.kind)


def x(*shape, kind="float32", low=-1.0, high=1.0):
    """An input of the model."""
    return Array(shape, kind, low, high)


def ints(*shape, high, low=0, kind="int64"):
    return Array(shape, kind, low, high)


def w(*shape, kind="float32", low=-0.2, high=0.2):
    """A constant with random values."""
    return Array(shape, kind, low, high, True)


def c(value, kind="int64"):
    """A constant."""
    return Array((), kind, constant=True, value=value)


CASES = []


def block(name, arrays, nodes, outputs, **options):
    """A case of several nodes; inputs and outputs of a node are names with blanks between, '-' for one left out."""
    random = numpy.random.default_rng(zlib.crc32(name.encode()))
    made = {key: array.make(random) for key, array in arrays.items()}
    constants = {key: value for key, value in made.items() if arrays[key].constant}
    inputs = {key: value for key, value in made.items() if key not in constants}
    words = lambda text: ["" if word == "-" else word for word in text.split()]
    nodes = [(kind, words(reads), words(writes), attributes) for kind, reads, writes, attributes in nodes]
    CASES.append(Case(name, nodes, inputs, constants, words(outputs), **options))


def op(name, kind, *operands, results=1, opset=OPSET, tolerance=1e-3, **attributes):
    """A case of one node."""
    arrays = {f"x{i}": operand for i, operand in enumerate(operands) if operand is not None}
    reads = " ".join("-" if operand is None else f"x{i}" for i, operand in enumerate(operands))
    writes = " ".join(f"y{i}" for i in range(results))
    block(name, arrays, [(kind, reads, writes, attributes)], writes, opset=opset, tolerance=tolerance)


def conv(name, shape, filters, **attributes):
    op(f"conv {name}", "Conv", x(*shape), w(*filters), w(filters[0]), **attributes)


def deconv(name, shape, filters, group=1, **attributes):
    op(f"conv transpose {name}", "ConvTranspose", x(*shape), w(*filters), w(filters[1] * group), group=group,
       **attributes)


# Convolutions
conv("7x7 s2 3→64 224²", (1, 3, 224, 224), (64, 3, 7, 7), strides=[2, 2], pads=[3] * 4)
conv("3x3 64→64 56²", (1, 64, 56, 56), (64, 64, 3, 3), pads=[1] * 4)
conv("3x3 s2 128→128 56²", (1, 128, 56, 56), (128, 128, 3, 3), strides=[2, 2], pads=[1] * 4)
conv("1x1 256→64 56²", (1, 256, 56, 56), (64, 256, 1, 1))
conv("1x1 512→2048 7²", (1, 512, 7, 7), (2048, 512, 1, 1))
conv("3x3 dilated 64→64 56²", (1, 64, 56, 56), (64, 64, 3, 3), dilations=[2, 2], pads=[2] * 4)
conv("3x3 grouped 32 128→128 28²", (1, 128, 28, 28), (128, 4, 3, 3), pads=[1] * 4, group=32)
conv("depthwise 3x3 96 56²", (1, 96, 56, 56), (96, 1, 3, 3), pads=[1] * 4, group=96)
conv("depthwise 3x3 s2 96 112²", (1, 96, 112, 112), (96, 1, 3, 3), strides=[2, 2], pads=[1] * 4, group=96)
conv("depthwise 7x7 96 56²", (1, 96, 56, 56), (96, 1, 7, 7), pads=[3] * 4, group=96)
conv("1x7 64→64 17²", (1, 64, 17, 17), (64, 64, 1, 7), pads=[0, 3, 0, 3])
conv("1-D k9 64→64 4000", (1, 64, 4000), (64, 64, 9), pads=[4, 4])
conv("1-D depthwise k31 128 1000", (1, 128, 1000), (128, 1, 31), pads=[15, 15], group=128)
conv("3-D 3x3x3 16→32 16x28²", (1, 16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6)
conv("patches 16x16 3→192 224²", (1, 3, 224, 224), (192, 3, 16, 16), strides=[16, 16])
conv("3x3 1→8 256² few channels", (1, 1, 256, 256), (8, 1, 3, 3), pads=[1] * 4)
conv("3x3 batch 8 32→32 28²", (8, 32, 28, 28), (32, 32, 3, 3), pads=[1] * 4)
op("conv 3x3 filter as input 32→32 28²", "Conv", x(1, 32, 28, 28), x(32, 32, 3, 3), pads=[1] * 4)
deconv("k16 s16 64→1 22²", (1, 64, 22, 22), (64, 1, 16, 16), strides=[16, 16])
deconv("k16 s8 21→21 28²", (1, 21, 28, 28), (21, 21, 16, 16), strides=[8, 8], pads=[4] * 4)
deconv("k4 s4 96→32 28²", (1, 96, 28, 28), (96, 32, 4, 4), strides=[4, 4])
deconv("k4 s2 64→32 32²", (1, 64, 32, 32), (64, 32, 4, 4), strides=[2, 2], pads=[1] * 4)
deconv("k4 s2 256→128 8²", (1, 256, 8, 8), (256, 128, 4, 4), strides=[2, 2], pads=[1] * 4)
deconv("k2 s2 64→32 56²", (1, 64, 56, 56), (64, 32, 2, 2), strides=[2, 2])
deconv("k3 s2 64→32 28² output_padding", (1, 64, 28, 28), (64, 32, 3, 3), strides=[2, 2], pads=[1] * 4,
       output_padding=[1, 1])
deconv("k3 s1 64→64 28²", (1, 64, 28, 28), (64, 64, 3, 3), pads=[1] * 4)
deconv("grouped 4 k4 s2 64→64 28²", (1, 64, 28, 28), (64, 16, 4, 4), 4, strides=[2, 2], pads=[1] * 4)
deconv("depthwise k4 s2 64 28²", (1, 64, 28, 28), (64, 1, 4, 4), 64, strides=[2, 2], pads=[1] * 4)
deconv("1-D k16 s8 64→32 500", (1, 64, 500), (64, 32, 16), strides=[8], pads=[4, 4])
deconv("3-D k2 s2 32→16 8x14²", (1, 32, 8, 14, 14), (32, 16, 2, 2, 2), strides=[2, 2, 2])
deconv("dilated k3 s2 d2 32→32 28²", (1, 32, 28, 28), (32, 32, 3, 3), strides=[2, 2], dilations=[2, 2])
for name, size, stride, pad in (("2x2", 2, 2, 0), ("4x4", 4, 2, 1)):
    block(f"up block conv, {name} s2, conv 64 28²",
          {"x": x(1, 64, 28, 28), "a": w(64, 64, 3, 3), "b": w(64, 64, size, size), "d": w(64, 64, 3, 3)},
          [("Conv", "x a", "p", {"pads": [1] * 4}), ("Relu", "p", "q", {}),
           ("ConvTranspose", "q b", "r", {"strides": [stride] * 2, "pads": [pad] * 4}),
           ("Conv", "r d", "y", {"pads": [1] * 4})], "y")
op("conv f16 3x3 64→64 28²", "Conv", x(1, 64, 28, 28, kind="float16"), w(64, 64, 3, 3, kind="float16"), pads=[1] * 4,
   tolerance=2e-2)
op("conv f16 1x1 96→96 28²", "Conv", x(1, 96, 28, 28, kind="float16"), w(96, 96, 1, 1, kind="float16"), tolerance=2e-2)
op("conv f16 depthwise 3x3 96 56²", "Conv", x(1, 96, 56, 56, kind="float16"), w(96, 1, 3, 3, kind="float16"),
   pads=[1] * 4, group=96, tolerance=2e-2)
block("conv-relu-conv f16 64 28²", {"x": x(1, 64, 28, 28, kind="float16"), "a": w(64, 64, 3, 3, kind="float16"),
                                    "b": w(64, 64, 1, 1, kind="float16")},
      [("Conv", "x a", "p", {"pads": [1] * 4}), ("Relu", "p", "q", {}), ("Conv", "q b", "y", {})], "y", tolerance=2e-2)

# Pools
for name, shape, attributes in (
        ("3x3 s2 64 112²", (1, 64, 112, 112), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
        ("2x2 s2 64 112²", (1, 64, 112, 112), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("5x5 s1 64 28²", (1, 64, 28, 28), {"kernel_shape": [5, 5], "pads": [2] * 4}),
        ("13x13 s1 64 28²", (1, 64, 28, 28), {"kernel_shape": [13, 13], "pads": [6] * 4}),
        ("1-D k3 s2 64 4000", (1, 64, 4000), {"kernel_shape": [3], "strides": [2]}),
        ("3-D 3³ s2 16 16x28²", (1, 16, 16, 28, 28), {"kernel_shape": [3] * 3, "strides": [2] * 3, "pads": [1] * 6})):
    op(f"max pool {name}", "MaxPool", x(*shape), **attributes)
op("max pool with indices 2x2 64 56²", "MaxPool", x(1, 64, 56, 56), results=2, kernel_shape=[2, 2], strides=[2, 2])
for name, shape, attributes in (
        ("3x3 s1 64 56²", (1, 64, 56, 56), {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ("2x2 s2 64 112²", (1, 64, 112, 112), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("15x15 s1 16 64²", (1, 16, 64, 64), {"kernel_shape": [15, 15], "pads": [7] * 4}),
        ("3-D 2³ 16 16x28²", (1, 16, 16, 28, 28), {"kernel_shape": [2] * 3, "strides": [2] * 3})):
    op(f"average pool {name}", "AveragePool", x(*shape), **attributes)
op("global average pool 512 14²", "GlobalAveragePool", x(4, 512, 14, 14))
op("global max pool 512 14²", "GlobalMaxPool", x(4, 512, 14, 14))

# Products
op("matmul 512³ weights", "MatMul", x(512, 512), w(512, 512))
op("matmul 512³", "MatMul", x(512, 512), x(512, 512))
op("matmul 128x768x3072", "MatMul", x(128, 768), w(768, 3072))
op("matmul 1x2048x2048", "MatMul", x(1, 2048), w(2048, 2048))
op("matmul 2048²x1", "MatMul", x(2048, 2048), x(2048, 1))
op("matmul 2048² by vector", "MatMul", x(2048, 2048), x(2048))
op("matmul 2048²x1 weights", "MatMul", x(2048, 2048), w(2048, 1))
op("matmul batch 12 128x64x128", "MatMul", x(12, 128, 64), x(12, 64, 128))
op("matmul 7x33x65 odd", "MatMul", x(64, 7, 33), x(64, 33, 65))
op("matmul f64 128³", "MatMul", x(128, 128, kind="float64"), x(128, 128, kind="float64"))
op("matmul f16 128x256x256", "MatMul", x(128, 256, kind="float16"), w(256, 256, kind="float16"), tolerance=2e-2)
op("gemm transB 64x512x512", "Gemm", x(64, 512), w(512, 512), w(512), transB=1)
op("gemm transA 256x256x256", "Gemm", x(256, 256), x(256, 256), transA=1, alpha=0.5)
op("einsum bij,bjk 8x96³", "Einsum", x(8, 96, 96), x(8, 96, 96), equation="bij,bjk->bik")
op("einsum bhid,bhjd 8x64x64", "Einsum", x(2, 8, 64, 64), x(2, 8, 64, 64), equation="bhid,bhjd->bhij")

# Elements by themselves
MILLION = (1000, 1000)
for kind in ("Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Neg", "Floor", "Sin", "HardSwish", "Elu",
             "Softplus", "Reciprocal"):
    op(f"{kind} 1e6", kind, x(*MILLION, low=0.1 if kind in ("Sqrt", "Reciprocal") else -2, high=2))
op("Gelu 1e6", "Gelu", x(*MILLION))
op("LeakyRelu 1e6", "LeakyRelu", x(*MILLION), alpha=0.1)
op("Log 1e6", "Log", x(*MILLION, low=0.1, high=4))
op("Pow x² 1e6", "Pow", x(*MILLION), c(2.0, "float32"))
op("Add 1e6", "Add", x(*MILLION), x(*MILLION))
op("Add row 1e6", "Add", x(*MILLION), x(1000))
op("Mul column 1e6", "Mul", x(*MILLION), x(1000, 1))
op("Div 1e6", "Div", x(*MILLION), x(*MILLION, low=0.5))
op("Where 1e6", "Where", x(*MILLION, kind="bool"), x(*MILLION), x(*MILLION))
op("Greater 1e6", "Greater", x(*MILLION), x(*MILLION))
op("Clip 1e6", "Clip", x(*MILLION), c(-0.5, "float32"), c(0.5, "float32"))
op("Cast f32→i32 1e6", "Cast", x(*MILLION, low=-100, high=100), to=6)
op("Cast f32→f16 1e6", "Cast", x(*MILLION), to=10)
op("Cast u8→f32 1e6", "Cast", ints(*MILLION, high=255, kind="uint8"), to=1)
op("Add f16 1e6", "Add", x(*MILLION, kind="float16"), x(*MILLION, kind="float16"), tolerance=1e-2)
op("Add i64 1e6", "Add", ints(*MILLION, high=1000), ints(*MILLION, high=1000))

# Normalisations and attention
op("softmax 128x1000", "Softmax", x(128, 1000))
op("softmax 12x128x128", "Softmax", x(12, 128, 128))
op("softmax axis 1 of 1x21x128²", "Softmax", x(1, 21, 128, 128), axis=1)
op("log softmax 128x1000", "LogSoftmax", x(128, 1000))
op("layer norm 128x768", "LayerNormalization", x(128, 768), w(768), w(768))
op("instance norm 32 64²", "InstanceNormalization", x(1, 32, 64, 64), w(32), w(32))
op("batch norm 64 56²", "BatchNormalization", x(1, 64, 56, 56), w(64), w(64), w(64), w(64, low=0.5, high=1.5))
op("group norm 32 64²", "GroupNormalization", x(1, 32, 64, 64), w(8), w(8), num_groups=8)
op("local response norm 64 56²", "LRN", x(1, 64, 56, 56), size=5)
block("attention 12 heads 128x64", {"q": x(1, 12, 128, 64), "k": x(1, 12, 64, 128), "v": x(1, 12, 128, 64),
                                    "s": c(0.125, "float32")},
      [("MatMul", "q k", "a", {}), ("Mul", "a s", "b", {}), ("Softmax", "b", "p", {"axis": -1}),
       ("MatMul", "p v", "y", {})], "y")
block("attention 8 heads 512x64", {"q": x(1, 8, 512, 64), "k": x(1, 8, 64, 512), "v": x(1, 8, 512, 64),
                                   "s": c(0.125, "float32")},
      [("MatMul", "q k", "a", {}), ("Mul", "a s", "b", {}), ("Softmax", "b", "p", {"axis": -1}),
       ("MatMul", "p v", "y", {})], "y")
block("feed forward gelu 64x256x1024", {"x": x(64, 256), "a": w(256, 1024), "b": w(1024), "c": w(1024, 256)},
      [("MatMul", "x a", "p", {}), ("Add", "p b", "q", {}), ("Gelu", "q", "r", {}), ("MatMul", "r c", "y", {})], "y")
block("rms norm 128x768", {"x": x(128, 768), "e": c(1e-6, "float32"), "g": w(768), "last": c([-1])},
      [("Mul", "x x", "a", {}), ("ReduceMean", "a last", "b", {"keepdims": 1}), ("Add", "b e", "d", {}),
       ("Sqrt", "d", "f", {}), ("Div", "x f", "h", {}), ("Mul", "h g", "y", {})], "y")

# Reductions
for axis in (0, 1, 2):
    op(f"reduce sum axis {axis} of 100³", "ReduceSum", x(100, 100, 100), c([axis]), keepdims=0)
    op(f"reduce max axis {axis} of 100³", "ReduceMax", x(100, 100, 100), c([axis]), keepdims=0)
op("reduce mean all 1e6", "ReduceMean", x(*MILLION), keepdims=0)
op("reduce L2 rows 1e6", "ReduceL2", x(*MILLION), c([1]), keepdims=0)
op("reduce prod rows 1e6", "ReduceProd", x(*MILLION, low=0.9, high=1.1), c([1]), keepdims=0)
op("arg max rows 1e6", "ArgMax", x(*MILLION), axis=1, tolerance=None)
op("arg max columns 1e6", "ArgMax", x(*MILLION), axis=0, tolerance=None)
op("cumsum axis 0 1e6", "CumSum", x(*MILLION), c(0))
op("cumsum axis 1 1e6", "CumSum", x(*MILLION), c(1))
op("top-k 10 of 100x1000", "TopK", x(100, 1000), c([10]), results=2)
op("top-k 100 of 1x100000", "TopK", x(1, 100000), c([100]), results=2)
op("top-k all of 10x1000 (sort)", "TopK", x(10, 1000), c([1000]), results=2)
op("non zero 1e5", "NonZero", ints(100, 1000, high=2), tolerance=None)
op("unique 1e4", "Unique", ints(10000, high=1000), results=1, tolerance=None)

# Moves
op("transpose 1000²", "Transpose", x(*MILLION), perm=[1, 0])
op("transpose NCHW→NHWC 64 56²", "Transpose", x(1, 64, 56, 56), perm=[0, 2, 3, 1])
op("transpose NHWC→NCHW 64 56²", "Transpose", x(1, 56, 56, 64), perm=[0, 3, 1, 2])
op("transpose heads 128x12x64", "Transpose", x(1, 128, 12, 64), perm=[0, 2, 1, 3])
op("transpose u8 1000²", "Transpose", ints(*MILLION, high=255, kind="uint8"), perm=[1, 0])
op("concat channels 4x32 56²", "Concat", *(x(1, 32, 56, 56) for _ in range(4)), axis=1)
op("concat last 2x500", "Concat", x(1000, 500), x(1000, 500), axis=1)
op("split 4 of 128 56²", "Split", x(1, 128, 56, 56), results=4, axis=1, num_outputs=4)
op("slice steps 2 1000²", "Slice", x(*MILLION), c([0, 0]), c([1000, 1000]), c([0, 1]), c([2, 2]))
op("slice block 1000²", "Slice", x(*MILLION), c([100, 100]), c([900, 900]))
op("expand 1000→1000²", "Expand", x(1, 1000), c(list(MILLION)))
op("tile 2x2 of 500²", "Tile", x(500, 500), c([2, 2]))
for mode in ("constant", "reflect", "edge", "wrap"):
    op(f"pad {mode} 64 56²", "Pad", x(1, 64, 56, 56), c([0, 0, 3, 3, 0, 0, 3, 3]), mode=mode)
op("depth to space 64 56²", "DepthToSpace", x(1, 64, 56, 56), blocksize=2)
op("space to depth 16 112²", "SpaceToDepth", x(1, 16, 112, 112), blocksize=2)
op("gather rows 30000x256 by 512", "Gather", w(30000, 256), ints(512, high=30000))
op("gather columns 1000² by 500", "Gather", x(*MILLION), ints(500, high=1000), axis=1)
op("gather elements 1000²", "GatherElements", x(*MILLION), ints(*MILLION, high=1000), axis=1)
op("gather ND 1000² by 1e5", "GatherND", x(*MILLION), ints(100000, 2, high=1000))
op("scatter elements 1000²", "ScatterElements", x(*MILLION), c(numpy.tile(numpy.arange(1000)[::-1], (1000, 1))),
   x(*MILLION), axis=1)
op("scatter elements add 1000²", "ScatterElements", x(*MILLION), ints(*MILLION, high=1000), x(*MILLION), axis=1,
   reduction="add")
op("scatter ND 1000² by 500 rows", "ScatterND", x(*MILLION), c(numpy.arange(500)[:, None] * 2), x(500, 1000))
op("one-hot 1000 of 1000", "OneHot", ints(1000, high=1000), c(1000), c([0, 1], "float32"))
for mode, name, extra in (("nearest", "nearest 2x", {}), ("linear", "linear 2x", {}), ("cubic", "cubic 2x", {}),
                          ("linear", "linear 2x aligned", {"coordinate_transformation_mode": "align_corners"})):
    op(f"resize {name} 32 56²", "Resize", x(1, 32, 56, 56), None, c([1, 1, 2, 2], "float32"), mode=mode, **extra)
op("grid sample 16 64²", "GridSample", x(1, 16, 64, 64), x(1, 64, 64, 2))
op("roi align 100 of 64 56²", "RoiAlign", x(1, 64, 56, 56), c([[4, 4, 40, 40]] * 100, "float32"), c([0] * 100),
   output_height=7, output_width=7)
op("col2im 3x3 32 56²", "Col2Im", x(1, 32 * 9, 54 * 54), c([56, 56]), c([3, 3]))


def boxes(count):
    random = numpy.random.default_rng(5)
    corner, size = random.random((1, count, 2)) * 500, random.random((1, count, 2)) * 40 + 10
    return Array((), value=numpy.concatenate([corner, corner + size], axis=2))


op("non-max suppression 2000 boxes", "NonMaxSuppression", boxes(2000), x(1, 1, 2000, low=0),
   c([200]), c([0.5], "float32"), c([0.1], "float32"), tolerance=None)
op("non-max suppression 500 boxes 20 classes", "NonMaxSuppression", boxes(500), x(1, 20, 500, low=0),
   c([50]), c([0.5], "float32"), c([0.3], "float32"), tolerance=None)

# Numbers of few bits
op("quantize linear u8 1e6", "QuantizeLinear", x(*MILLION), c(0.01, "float32"), c(128, "uint8"))
op("quantize linear i8 axis 1e6", "QuantizeLinear", x(*MILLION), w(1000, low=0.01, high=0.02),
   c(numpy.zeros(1000), "int8"), axis=1)
op("dequantize linear 1e6", "DequantizeLinear", ints(*MILLION, high=255, kind="uint8"), c(0.01, "float32"),
   c(128, "uint8"))
op("dynamic quantize linear 1e6", "DynamicQuantizeLinear", x(*MILLION), results=3)
op("int8 matmul integer 128x512x512", "MatMulInteger", ints(128, 512, high=255, kind="uint8"),
   w(512, 512, kind="int8", low=-100, high=100))
op("int8 qlinear conv 3x3 64 28²", "QLinearConv", ints(1, 64, 28, 28, high=255, kind="uint8"), c(0.02, "float32"),
   c(128, "uint8"), w(64, 64, 3, 3, kind="int8", low=-100, high=100), c(0.01, "float32"), c(0, "int8"),
   c(0.5, "float32"), c(128, "uint8"), pads=[1] * 4, tolerance=2e-2)

# Recurrent layers
for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    op(f"{kind} 256 of 50 steps", kind, x(50, 1, 256), w(1, gates * 256, 256), w(1, gates * 256, 256), hidden_size=256)
op("LSTM both ways 128 batch 4", "LSTM", x(30, 4, 128), w(2, 512, 128), w(2, 512, 128), hidden_size=128,
   direction="bidirectional")


def forest(name, batch, trees=100, depth=8, features=20, classes=3):
    """A forest of whole trees."""
    random = numpy.random.default_rng(7)
    inner, every = 2 ** depth - 1, 2 ** (depth + 1) - 1
    nodes = numpy.arange(every)
    leaf = nodes >= inner
    many = lambda values: numpy.tile(values, trees).tolist()
    attributes = {
        "nodes_treeids": numpy.repeat(numpy.arange(trees), every).tolist(), "nodes_nodeids": many(nodes),
        "nodes_featureids": random.integers(0, features, trees * every).tolist(),
        "nodes_values": random.random(trees * every).astype("float32").tolist(),
        "nodes_modes": many(numpy.where(leaf, "LEAF", "BRANCH_LEQ")),
        "nodes_truenodeids": many(numpy.where(leaf, 0, 2 * nodes + 1)),
        "nodes_falsenodeids": many(numpy.where(leaf, 0, 2 * nodes + 2)),
        "class_treeids": numpy.repeat(numpy.arange(trees), every - inner).tolist(),
        "class_nodeids": many(nodes[inner:]),
        "class_ids": random.integers(0, classes, trees * (every - inner)).tolist(),
        "class_weights": random.random(trees * (every - inner)).astype("float32").tolist(), "classlabels_int64s": list(range(classes)),
        "post_transform": "NONE"}
    block(name, {"x": x(batch, features, low=0)},
          [("ai.onnx.ml.TreeEnsembleClassifier", "x", "label scores", attributes)], "label scores")


for batch in (1, 33, 1000):
    forest(f"random forest 100 trees batch {batch}", batch)
