#!/usr/bin/env python3
"""Finds the polynomials of src/backends/cpu/kernels/math: minimax.py [NAME...].

They are best approximations in the relative sense, by Remez's exchange. Prints the coefficients, lowest degree first,
and the largest relative error of the function they stand for. Needs mpmath.
"""
import sys

from mpmath import atan, atanh, cos, erf, erfc, exp, expm1, inf, log, log1p, lu_solve, matrix, mp, mpf, pi, polyval, sin, sqrt

mp.prec = 250
TINY = mpf(2)**-40


def extremes(error, grid, wanted):
    """Where the error is largest between each two changes of its sign, and how large it is anywhere."""
    values = [error(x) for x in grid]
    found, best = [], 0
    for i in range(1, len(grid) + 1):
        if i == len(grid) or (values[i] > 0) != (values[best] > 0):
            found.append(best)
            best = i
        elif abs(values[i]) > abs(values[best]):
            best = i
    while len(found) > wanted:  # the smaller of both ends is superfluous
        found.pop(0 if abs(values[found[0]]) < abs(values[found[-1]]) else -1)
    if len(found) < wanted:
        raise ArithmeticError(f"the error changes its sign {len(found) - 1} times instead of {wanted - 1}")
    return [grid[i] for i in found], max(abs(v) for v in values)


def remez(target, weight, low, high, degree):
    """The polynomial with the least largest |weight * (p - target)| on [low, high]."""
    low, high = mpf(low) + TINY, mpf(high)  # at 0 itself the targets are 0 / 0
    at = lambda t: (low + high) / 2 - (high - low) / 2 * cos(pi * t)
    points = [at(mpf(i) / (degree + 1)) for i in range(degree + 2)]
    grid = [low, *(at((mpf(i) + mpf(1) / 2) / 1200) for i in range(1200)), high]
    size = inf
    while True:
        rows = [[x**k for k in range(degree + 1)] + [(-1)**i / max(abs(weight(x)), TINY)] for i, x in enumerate(points)]
        p = list(lu_solve(matrix(rows), matrix([target(x) for x in points])))[:-1]
        points, now = extremes(lambda x: abs(weight(x)) * (polyval(p[::-1], x) - target(x)), grid, degree + 2)
        if abs(now - size) < now / 10**4:
            return p, now
        size = now


def even(f):
    """A function of r as one of r^2."""
    return lambda z: f(sqrt(z))


LN2 = log(mpf(2))
# Target, weight, range and degree. The weight makes the error that of the whole function.
SHAPES = {
    # exp(r) = 1 + r + r^2 p(r)
    "exp": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / exp(r), -LN2 / 2, LN2 / 2, 4),
    # expm1(r) = r + r^2 p(r)
    "expm1": (lambda r: (expm1(r) - r) / r**2, lambda r: r**2 / expm1(r), -LN2 / 2, LN2 / 2, 5),
    # log(1 + f) = f - f^2/2 + f^3 p(f)
    "log": (lambda f: (log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / log1p(f), sqrt(mpf(1) / 2) - 1,
            sqrt(mpf(2)) - 1, 7),
    # sin(r) = r + r^3 p(r^2)
    "sin": (even(lambda r: (sin(r) / r - 1) / r**2), even(lambda r: r**3 / sin(r)), 0, (pi / 4)**2, 2),
    # cos(r) = 1 - r^2/2 + r^4 p(r^2)
    "cos": (even(lambda r: (cos(r) - 1 + r**2 / 2) / r**4), even(lambda r: r**4 / cos(r)), 0, (pi / 4)**2, 2),
    # atan(x) = x + x^3 p(x^2)
    "atan": (even(lambda x: (atan(x) / x - 1) / x**2), even(lambda x: x**3 / atan(x)), 0, 1, 8),
    # erf(x) = x p(x^2) below 1
    "erf_near": (even(lambda x: erf(x) / x), even(lambda x: x / erf(x)), 0, 1, 6),
    # erf(x) = 1 - p(x - 2)^8 above
    "erf_far": (lambda t: erfc(t + 2)**(mpf(1) / 8), lambda t: 8 * erfc(t + 2)**(mpf(7) / 8) / erf(t + 2), -1, 2, 7),
    # of pow: log2(m) = s p(s^2) with s = (m - 1) / (m + 1)
    "log2": (even(lambda s: 2 * atanh(s) / LN2 / s), even(lambda s: s * LN2 / 2 / atanh(s)), 0,
             (3 - sqrt(mpf(8)))**2, 5),
    # of pow: 2^r = p(r)
    "exp2": (lambda r: mpf(2)**r, lambda r: mpf(2)**-r, mpf(-1) / 2, mpf(1) / 2, 7),
}

if __name__ == "__main__":
    for name in sys.argv[1:] or SHAPES:
        coefficients, largest = remez(*SHAPES[name])
        print(f"{name}: error 2^{mp.nstr(mp.log(largest, 2), 4)}")
        print("  " + ", ".join(mp.nstr(c, 17) for c in coefficients))
