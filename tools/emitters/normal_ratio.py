#!/usr/bin/env python3
"""Coefficients of the erfc factor of GELU, for plugins/x86/emitters/piecewise_tables.hpp.

    tools/emitters/normal_ratio.py --intervals 32 --terms 6

R(x) = erfcx(x / sqrt(2)) / 2 from 0 to 15, in intervals that grow with x: the exponent of x + 1 and as many of the
upper bits of its mantissa as make so many intervals say which. On each the polynomial in the distance from the middle
that meets R at the zeros of Chebyshev's polynomial, which is near the best; coefficients rounded to f32. Prints columns
by index, as the header has them, and the largest relative error of the exact polynomials with these coefficients.
"""
import argparse
import struct
from collections import namedtuple

from mpmath import cos, erfc, exp, lu_solve, matrix, mp, mpf, pi, sqrt

Interval = namedtuple("Interval", "index begin end")


def ratio(x):
    return erfc(x / sqrt(2)) * exp(x * x / 2) / 2


def rounded(value):
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def index_of(x, shift, count):
    return struct.unpack("<I", struct.pack("<f", x + 1))[0] >> shift & (count - 1)


def intervals(count):
    """Four binades of x + 1, from 1 to 16, are cut into equal parts."""
    shift = 23 - (count // 4).bit_length() + 1
    made = []
    for binade in (1, 2, 4, 8):
        width = binade / (count // 4)
        for part in range(count // 4):
            begin = binade + part * width - 1
            made.append(Interval(index_of(begin + width / 2, shift, count), begin, begin + width))
    return shift, sorted(made)


def interpolation(interval, terms):
    center, half = mpf(interval.begin + interval.end) / 2, mpf(interval.end - interval.begin) / 2
    nodes = [half * cos(pi * (2 * i + 1) / (2 * terms)) for i in range(terms)]
    powers = matrix(terms, terms)
    for i, node in enumerate(nodes):
        for k in range(terms):
            powers[i, k] = node**k
    solved = lu_solve(powers, matrix([ratio(center + node) for node in nodes]))
    return center, [rounded(c) for c in solved]


def largest_error(interval, center, coefficients, samples=400):
    worst = mpf(0)
    for i in range(samples + 1):
        x = interval.begin + (interval.end - interval.begin) * mpf(i) / samples
        value = sum(mpf(c) * (x - center) ** k for k, c in enumerate(coefficients))
        worst = max(worst, abs(value / ratio(x) - 1))
    return worst


def text(value):
    """As C++ spells it: a hexadecimal float without the zeros at its end."""
    if value == int(value):
        return str(int(value))
    mantissa, exponent = float(value).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + str(int(exponent)) + "f"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--intervals", type=int, choices=(8, 16, 32), default=32)
    options.add_argument("--terms", type=int, default=6)
    asked = options.parse_args()
    mp.dps = 40
    shift, cut = intervals(asked.intervals)
    made = [interpolation(interval, asked.terms) for interval in cut]
    error = max(largest_error(i, *m) for i, m in zip(cut, made))
    print(f"// shift {shift}, relative error {float(error):.2g}")
    print("{" + ", ".join(f"{float(center):g}f" if center % 1 else f"{int(center)}" for center, _ in made) + "},")
    for k in range(asked.terms):
        print("{" + ", ".join(text(coefficients[k]) for _, coefficients in made) + "},")


if __name__ == "__main__":
    main()
