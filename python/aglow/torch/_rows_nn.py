"""Rows of layers: products, convolutions, pooling, normalisations, attention, resampling."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from .._values import Value
from ._node import Node, Unsupported
from ._rows import row


@row("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def _mm(n: Node, a: Any, b: Any) -> Value:
    return n.b.mat_mul(n.operand(a), n.operand(b))


@row("aten.addmm.default", "aten.baddbmm.default")
def _addmm(n: Node, bias: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Value:
    product = n.times(n.b.mat_mul(n.operand(a), n.operand(b)), alpha)
    return product if beta == 0 else n.b.add(product, n.times(n.operand(bias), beta))


@row("aten.linear.default")
def _linear(n: Node, x: Any, weight: Any, bias: Any = None) -> Value:
    product = n.b.mat_mul(n.operand(x), n.b.transpose(n.operand(weight), perm=[1, 0]))
    return product if bias is None else n.b.add(product, n.operand(bias))


@row("aten.mv.default")
def _mv(n: Node, matrix: Any, vector: Any) -> Value:
    column = n.b.reshape(n.operand(vector), shape=[n.value(vector).shape[0], 1])
    return n.b.reshape(n.b.mat_mul(n.operand(matrix), column), shape=n.shape)


@row("aten.convolution.default")
def _convolution(n: Node, x: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int) -> Value:
    spatial = len(n.value(x).shape) - 2
    if spatial < 1:
        raise Unsupported("an image without a batch")
    strides, pads, dilations, more = (_all(one, spatial) for one in (stride, padding, dilation, output_padding))
    operands = (n.operand(x), n.operand(weight), None if bias is None else n.operand(bias))
    if transposed:
        return n.b.conv_transpose(*operands, strides=strides, pads=pads * 2, dilations=dilations, group=groups,
                                  output_padding=more)
    return n.b.conv(*operands, strides=strides, pads=pads * 2, dilations=dilations, group=groups)


@row("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def _max_pool(n: Node, x: Any, kernel: Sequence[int], stride: Sequence[int] = (), padding: Any = 0, dilation: Any = 1,
              ceil_mode: bool = False) -> tuple[Value, Optional[Value]]:
    value = n.operand(x)
    rank = len(kernel) if len(kernel) > 1 else len(value.shape) - 2
    if len(value.shape) != rank + 2:
        raise Unsupported("an image without a batch")
    window = _all(kernel, rank)
    # Indices of torch are those of one image; whoever reads them has torch compute them.
    return n.b.max_pool(value, kernel=window, strides=_all(stride or window, rank), pads=_all(padding, rank) * 2,
                        dilations=_all(dilation, rank), sizes=n.shape[2:]), None


@row("aten.avg_pool2d.default", "aten.avg_pool3d.default", "aten.avg_pool1d.default")
def _avg_pool(n: Node, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
              count_include_pad: bool = True, divisor_override: Optional[int] = None) -> Value:
    value = n.operand(x)
    rank = len(value.shape) - 2
    if divisor_override is not None or rank < 1:
        raise Unsupported("a divisor of its own, or an image without a batch")
    window = _all(kernel, rank)
    return n.b.avg_pool(value, kernel=window, strides=_all(stride or window, rank), pads=_all(padding, rank) * 2,
                        sizes=n.shape[2:], count_include_pad=count_include_pad)


@row("aten._adaptive_avg_pool2d.default", "aten.adaptive_avg_pool1d.default", "aten.adaptive_avg_pool2d.default",
     "aten._adaptive_avg_pool3d.default")
def _adaptive(n: Node, x: Any, size: Any) -> Value:
    value = n.operand(x)
    rank = len(n.shape) - 2
    extents = value.shape[2:]
    if any(extent % out for extent, out in zip(extents, n.shape[2:])):
        raise Unsupported("windows of several sizes")
    window = [extent // out for extent, out in zip(extents, n.shape[2:])]
    if all(out == 1 for out in n.shape[2:]):
        return n.b.reduce(value, kind="mean", axes=list(range(2, rank + 2)))
    return n.b.avg_pool(value, kernel=window, strides=window)


@row("aten._native_batch_norm_legit_no_training.default")
def _batch_norm(n: Node, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float,
                epsilon: float) -> tuple[Value, None, None]:
    value = n.operand(x)
    channels = value.shape[1]
    scale = n.operand(weight) if weight is not None else n.b.splat(value=1.0, elem=n.kind, shape=[channels])
    shift = n.operand(bias) if bias is not None else n.b.splat(value=0.0, elem=n.kind, shape=[channels])
    return n.b.batch_norm(value, scale, shift, n.operand(mean), n.operand(variance), epsilon=epsilon), None, None


@row("aten.native_batch_norm.default", "aten._native_batch_norm_legit.default")
def _any_batch_norm(n: Node, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float,
                    epsilon: float) -> tuple[Value, None, None]:
    if training or mean is None or variance is None:
        raise Unsupported("statistics of the batch")
    return _batch_norm(n, x, weight, bias, mean, variance, momentum, epsilon)


@row("aten.native_layer_norm.default")
def _layer_norm(n: Node, x: Any, shape: Sequence[int], weight: Any, bias: Any, epsilon: float) -> tuple[Value, ...]:
    value = n.operand(x)
    scale = n.operand(weight) if weight is not None else n.b.splat(value=1.0, elem=n.kind, shape=list(shape))
    shift = None if bias is None else n.operand(bias)
    return n.b.layer_norm(value, scale, shift, axis=len(value.shape) - len(shape), epsilon=epsilon)


@row("aten.native_group_norm.default")
def _group_norm(n: Node, x: Any, weight: Any, bias: Any, batch: int, channels: int, spatial: int, groups: int,
                epsilon: float) -> tuple[Value, None, None]:
    scale = n.operand(weight) if weight is not None else n.b.splat(value=1.0, elem=n.kind, shape=[channels])
    shift = n.operand(bias) if bias is not None else n.b.splat(value=0.0, elem=n.kind, shape=[channels])
    return n.b.group_norm(n.operand(x), scale, shift, groups=groups, epsilon=epsilon), None, None


@row("aten._scaled_dot_product_flash_attention_for_cpu.default")
def _attention(n: Node, q: Any, k: Any, v: Any, dropout: float = 0.0, causal: bool = False, *, attn_mask: Any = None,
               scale: Optional[float] = None) -> tuple[Value, None]:
    if dropout:
        raise Unsupported("dropout")
    query, key = n.operand(q), n.operand(k)
    factor = float(scale) if scale is not None else query.shape[-1] ** -0.5
    mask = None if attn_mask is None else n.operand(attn_mask)
    y, _ = n.b.attention(query, key, n.operand(v), mask, scale=factor, right=0 if causal else -1)
    return y, None


@row("aten.upsample_nearest2d.vec", "aten.upsample_nearest2d.default", "aten.upsample_bilinear2d.vec",
     "aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.vec", "aten.upsample_bicubic2d.default")
def _upsample(n: Node, x: Any, size: Any, *how: Any) -> Value:
    value = n.operand(x)
    factors = [new / old for new, old in zip(n.shape, value.shape)]
    given = how[-1] if n.op.endswith(".vec") else how[-2:]
    if isinstance(given, (list, tuple)) and len(given) == 2 and None not in given:
        # Places follow from the factors that were asked for, not from the sizes that came of them.
        factors[2:] = [float(one) for one in given]
    if "nearest" in n.op:
        return n.b.resize(value, sizes=n.shape, scales=factors, mode="nearest", coordinates="asymmetric",
                          nearest_mode="floor")
    aligned = bool(how[0])
    return n.b.resize(value, sizes=n.shape, scales=factors, mode="cubic" if "cubic" in n.op else "linear",
                      coordinates="align_corners" if aligned else "half_pixel", cubic_coeff_a=-0.75)


def _all(sizes: Any, count: int) -> list[int]:
    """One number for each axis; one for all is repeated."""
    listed = [int(size) for size in sizes] if isinstance(sizes, (list, tuple)) else [int(sizes)]
    return listed * count if len(listed) == 1 else listed
