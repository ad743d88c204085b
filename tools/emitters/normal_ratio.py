#!/usr/bin/env python3
"""Computes the coefficients of the erfc factor of GELU for plugins/x86/emitters/piecewise_tables.hpp.

    tools/emitters/normal_ratio.py --intervals 8 --terms 9
    tools/emitters/normal_ratio.py --intervals 32 --terms 5 --bias 1.04 --times-x

The function is R(x) = erfcx(x / sqrt(2)) / 2, or x R(x), from 0 to 15, in intervals that grow with x. The index of an
interval consists of the exponent of x + bias and as many upper bits of its mantissa as the number of intervals needs.
On each interval, the polynomial is in the distance from a point near the middle where the function is nearly a float,
so that the first coefficient loses nothing (Gal's accurate tables). It interpolates the function at the zeros of
Chebyshev's polynomial, which is near the best approximation. Coefficients are rounded to f32. x R(x) has a zero at 0,
so on the first interval it is x times a polynomial in x. Prints columns by index, as in the header, and the largest
relative error of the exact polynomials with these coefficients.
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


def index_of(x, bias, shift, count):
    return struct.unpack("<I", struct.pack("<f", x + bias))[0] >> shift & (count - 1)


def intervals(count, bias):
    """Divides four binades of x + bias, from 1 to 16, into equal parts; the part of an interval below 0 is left out."""
    shift = 23 - (count // 4).bit_length() + 1
    made = []
    for binade in (1, 2, 4, 8):
        width = binade / (count // 4)
        for part in range(count // 4):
            begin = binade + part * width - bias
            index = index_of(begin + width / 2, bias, shift, count)
            made.append(Interval(index, max(begin, 0), begin + width))
    return shift, sorted(made)


def product(x):
    return x * ratio(x)


def interpolation(interval, terms, function):
    if function is product and interval.begin == 0:
        return mpf(0), [0.0] + on_nodes(interval, terms - 1, ratio, mpf(0))
    center = center_of(interval, function)
    return center, on_nodes(interval, terms, function, center)


def center_of(interval, function, tries=150):
    """The point near the middle whose value is nearest to a float."""
    middle = mpf(interval.begin + interval.end) / 2
    points = [middle + mpf(i) / 2**15 for i in range(-tries, tries + 1)]
    return min(points, key=lambda x: abs(rounded(function(x)) / function(x) - 1))


def on_nodes(interval, terms, function, center):
    """The coefficients of the polynomial in x - center that interpolates the function at the Chebyshev nodes."""
    middle, half = mpf(interval.begin + interval.end) / 2, mpf(interval.end - interval.begin) / 2
    nodes = [middle - center + half * cos(pi * (2 * i + 1) / (2 * terms)) for i in range(terms)]
    powers = matrix(terms, terms)
    for i, node in enumerate(nodes):
        for k in range(terms):
            powers[i, k] = node**k
    solved = lu_solve(powers, matrix([function(center + node) for node in nodes]))
    return [rounded(c) for c in solved]


def largest_error(interval, center, coefficients, function, samples=400):
    worst = mpf(0)
    for i in range(1, samples + 1):
        x = interval.begin + (interval.end - interval.begin) * mpf(i) / samples
        value = sum(mpf(c) * (x - center) ** k for k, c in enumerate(coefficients))
        worst = max(worst, abs(value / function(x) - 1))
    return worst


def text(value):
    """As in C++: an integer, or a hexadecimal float without trailing zeros."""
    if value == int(value):
        return str(int(value))
    mantissa, exponent = float(value).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + str(int(exponent)) + "f"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--intervals", type=int, choices=(8, 16, 32), default=32)
    options.add_argument("--terms", type=int, default=6)
    options.add_argument("--bias", type=float, default=1)
    options.add_argument("--times-x", action="store_true")
    asked = options.parse_args()
    mp.dps = 40
    shift, cut = intervals(asked.intervals, asked.bias)
    function = product if asked.times_x else ratio
    made = [interpolation(interval, asked.terms, function) for interval in cut]
    error = max(largest_error(i, *m, function) for i, m in zip(cut, made))
    print(f"// shift {shift}, relative error {float(error):.2g}")
    print("{" + ", ".join(text(float(center)) for center, _ in made) + "},")
    for k in range(asked.terms):
        print("{" + ", ".join(text(coefficients[k]) for _, coefficients in made) + "},")


if __name__ == "__main__":
    main()
