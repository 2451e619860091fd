"""torch's interpolate and grid_sample in numpy, in double but where torch's rounding decides on the nearest element."""
import itertools

import numpy as np


def cubic(distance, a):
    d = abs(distance)
    if d <= 1:
        return ((a + 2) * d - (a + 3)) * d * d + 1
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0


def window(place, mode, a=-0.75):
    """(element, weight) of those around a place."""
    first = int(np.floor(place))
    if mode == "linear":
        return [(first, 1 - (place - first)), (first + 1, place - first)]
    return [(i, cubic(place - i, a)) for i in range(first - 1, first + 3)]


# ---- interpolate

def resized_axis(extent, size, scale, mode, aligned):
    """The weights [size, extent] of one axis."""
    weights = np.zeros((size, extent))
    step = 1 / scale if scale else extent / size
    for i in range(size):
        if mode == "nearest":
            taps = [(int(np.floor(np.float32(i) * np.float32(step))), 1.0)]
        else:
            place = (i * (extent - 1) / (size - 1) if size > 1 else 0.0) if aligned else (i + 0.5) * step - 0.5
            taps = window(max(place, 0.0) if mode == "linear" else place, mode)
        for at, weight in taps:
            weights[i, min(max(at, 0), extent - 1)] += weight
    return weights


def interpolate(x, mode, aligned=False, size=None, scale_factor=None):
    """Of the axes from the third on; mode is nearest, linear or cubic."""
    for axis in range(2, x.ndim):
        scale = scale_factor and scale_factor[axis - 2]
        count = size[axis - 2] if size else int(np.floor(x.shape[axis] * scale))
        if count == x.shape[axis] and mode == "linear":
            continue  # whatever the scale
        weights = resized_axis(x.shape[axis], count, scale, mode, aligned)
        x = np.moveaxis(np.tensordot(weights, x, ([1], [axis])), 0, axis)
    return x


# ---- grid_sample

def reflected(place, low, high):
    if high == low:
        return 0.0
    turns, rest = divmod(abs(place - low), high - low)
    return high - rest if turns % 2 else low + rest


def padded(place, extent, padding, aligned):
    if padding == "reflection":
        place = reflected(place, *((0, extent - 1) if aligned else (-0.5, extent - 0.5)))
    return place if padding == "zeros" else min(max(place, 0), extent - 1)


def grid_taps(x, extent, mode, padding, aligned):
    """The elements of an axis, and their weights, for a place from -1 to 1."""
    place = (x + 1) / 2 * (extent - 1) if aligned else ((x + 1) * extent - 1) / 2
    if mode == "cubic":  # each neighbour is padded by itself
        taps = [(padded(at, extent, padding, aligned), weight) for at, weight in window(place, mode)]
    else:
        place = padded(place, extent, padding, aligned)
        taps = [(np.rint(place), 1.0)] if mode == "nearest" else window(place, mode)
    return [(int(at), weight) for at, weight in taps if 0 <= at < extent]


def grid_sample(x, grid, mode, padding, aligned):
    x, grid = x.astype(float), grid.astype(np.float32)
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for at in np.ndindex(*grid.shape[:-1]):
        axes = [grid_taps(place, extent, mode, padding, aligned) for place, extent in zip(grid[at][::-1], x.shape[2:])]
        for taps in itertools.product(*axes):
            weight = np.prod([float(w) for _, w in taps])
            result[(at[0], slice(None), *at[1:])] += weight * x[(at[0], slice(None), *(i for i, _ in taps))]
    return result
