"""`tenon layout` on every entry of the layout vectors: sizes, points, rejected texts. TENON names the program."""
import itertools
import json
import os
import subprocess
import unittest
from pathlib import Path

import yaml

TENON = os.environ["TENON"]
VECTORS = yaml.safe_load((Path(__file__).parents[1] / "fixtures/layout/vectors.yaml").read_text())
SIZES = ("digits", "banks", "lanes", "word_bits", "words_per_bank", "valid_elements", "physical_elements", "padding",
         "span_words", "bytes", "injective", "run", "fnv1a64")


# What scripts rely on (design/ARCHITECTURE.md, section 4).
KEYS = {"banks", "lanes", "word_bits", "words_per_bank", "physical_elements", "padding", "bytes", "fnv1a64", "points"}
# dims, shape, bits, layout
OWN = [("NCHW", [2, 17, 3, 5], 32, "NCHW{16c}"), ("NCHW", [2, 17, 3, 5], 8, "CHWN{4n4c}"),
       ("NCHW", [2, 17, 3, 5], 4, "NHWC<6c:32>"), ("NCHW", [2, 17, 3, 5], 4, "NHWC<6c:32>;lane=msb"),
       ("NCHW", [2, 17, 3, 5], 1, "[2h]NHWC<8c>"), ("NCHW", [2, 17, 3, 5], 16, "[2n|3h]NCHW{4w}"),
       ("OIHW", [20, 9, 3, 3], 8, "OIHW{4i16o4i}"), ("OIHW", [20, 9, 3, 3], 12, "HWIO<2o:32>"),
       ("NCHW", [1, 5, 7, 9], 16, "NCHW{4c};align(H)=64B"), ("NCHW", [1, 5, 7, 9], 16, "NCHW;stride(H)=16;size=256B"),
       ("MK", [13, 29], 8, "MK{6m4k}"), ("MK", [13, 29], 64, "[K/3]Mk"), ("I", [70], 6, "I<5i:32>"), ("I", [70], 3, "I"),
       ("NCHW", [1, 6, 4, 5], 8, "NPC{4p};fuse(P)=HW"), ("ABC", [3, 4, 5], 24, "CAB{2b}"), ("RC", [8, 8], 32, "RC{2r4c2r@2}")]
# The short form and the long one.
FORMS = [("NHWC<6c:8>", "(n, c, h, w) -> (n, h, w, c floordiv 6 | c mod 6 : 8)"),
         ("[4h]NCHW", "(n, c, h, w) -> ([h mod 4] n, c, h floordiv 4, w)"), ("CHWN", "(n, c, h, w) -> (c, h, w, n)"),
         ("NCHW{8c}", "(n, c, h, w) -> (n, c floordiv 8, h, w, c mod 8)"),
         ("NCHW<4w:128>", "(a, b, c, d) -> (a, b, c, d floordiv 4 | d mod 4 : 128)")]
# layout, dims, shape, bits, code
REFUSED = [("", "NC", "2,3", 8, "E_MISSING_DIM"), ("NC{", "NC", "2,3", 8, "E_SYNTAX"), ("NC;", "NC", "2,3", 8, "E_SYNTAX"),
           ("NC;fill", "NC", "2,3", 8, "E_SYNTAX"), ("(n, c) -> (n", "NC", "2,3", 8, "E_SYNTAX"),
           ("NC", "NC", "2", 8, "E_RANK"), ("NC", "N", "2,3", 8, "E_RANK"), ("(n) -> (n)", "NC", "2,3", 8, "E_RANK"),
           ("NCX", "NC", "2,3", 8, "E_UNKNOWN_DIM"), ("NC{2x}", "NC", "2,3", 8, "E_UNKNOWN_DIM"),
           ("NCC", "NC", "2,3", 8, "E_DUP_DIM"), ("NC", "NN", "2,3", 8, "E_DUP_DIM"), ("N", "NC", "2,3", 8, "E_MISSING_DIM"),
           ("NC{0c}", "NC", "2,3", 8, "E_BAD_EXTENT"), ("NC", "NC", "2,-3", 8, "E_BAD_EXTENT"),
           ("NC", "NC", "2,3", 0, "E_BAD_EXTENT"), ("NC", "NC", "2,3", 129, "E_BAD_EXTENT"),
           ("NC;fill=256", "NC", "2,3", 8, "E_BAD_EXTENT"), ("NC{2c!}", "NC", "2,3", 8, "E_NOT_DIVISIBLE"),
           ("N<3c:16>", "NC", "2,3", 8, "E_WORD_OVERFLOW"), ("NC;align(N)=3B", "NC", "2,3", 16, "E_ALIGN"),
           ("NC;stride(N)=2", "NC", "2,3", 8, "E_NOT_INVERTIBLE"),
           ("(n, c) -> (n + c)", "NC", "2,3", 8, "E_NOT_INVERTIBLE"),
           ("(n, c) -> (n, (c + n) mod 3);stride(N)=4", "NC", "2,3", 8, "E_UNSUPPORTED")]


def fnv(numbers):
    state = 0xCBF29CE484222325
    for number in numbers:
        for byte in number.to_bytes(8, "little"):
            state = (state ^ byte) * 0x100000001B3 % 2**64
    return f"0x{state:016x}"


class Digits:
    """A layout as its printed digits say: independent of how the program computes offsets."""

    def __init__(self, document, fused=None):
        self.document = document
        self.fused = fused or {}

    def value(self, name, index):
        value = 0
        for dim in self.fused.get(name, name):
            d = self.document["dims"].index(dim)
            value = value * self.document["shape"][d] + index[d]
        return value

    def place(self, index):
        at = {"dev": 0, "bank": 0, "addr": 0, "lane": 0}
        for name, place, extent, space, stride in self.document["digits"]:
            at[space] += self.value(name, index) // place % extent * stride
        document, bits = self.document, self.document["element_bits"]
        bank = at["dev"] * (document["banks"] // document["devices"]) + at["bank"]
        lane = at["lane"] * bits
        if "lane=msb" in document["layout"]:
            lane = document["word_bits"] - bits - lane
        return {"index": list(index), "bank": bank, "slot": at["addr"] * document["lanes"] + at["lane"],
                "bit": at["addr"] * document["word_bits"] + lane}


def text(numbers):
    return ",".join(map(str, numbers))


class LayoutCommand(unittest.TestCase):
    def run_tenon(self, *words, expect=0):
        done = subprocess.run([TENON, "layout", *words], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def layout(self, row, *words, expect=0):
        done = self.run_tenon(row["layout"], "--dims", row["dims"], "--shape", text(row["shape"]), "--bits",
                              str(row["element_bits"]), *words, "--json", expect=expect)
        return json.loads(done.stdout)

    def test_layouts(self):
        for row in VECTORS["layouts"]:
            with self.subTest(name=row["name"]):
                points = row["points"]
                words = [word for point in points for word in ("--index", text(point["index"]))]
                document = self.layout(row, *words)
                for key in SIZES:
                    if key in row:
                        self.assertEqual(document[key], row[key], key)
                self.assertEqual(document["points"], points)

    def test_what_is_printed_reads_back(self):
        for row in VECTORS["layouts"]:
            with self.subTest(name=row["name"]):
                once = self.layout(row)
                self.assertEqual(self.layout(dict(row, layout=once["layout"])), once)

    def test_digits_points_and_sizes_agree(self):
        for dims, shape, bits, words in OWN:
            with self.subTest(layout=words):
                row = {"dims": dims, "shape": shape, "element_bits": bits, "layout": words}
                indices = list(itertools.product(*map(range, shape)))
                some = indices[::max(len(indices) // 7, 1)] + indices[-1:]
                document = self.layout(row, *(word for index in some for word in ("--index", text(index))))
                self.assertLessEqual(KEYS, document.keys())
                digits = Digits(document, {"P": "HW"} if "fuse" in words else None)
                self.assertEqual(document["points"], [digits.place(index) for index in some])
                places = [digits.place(index) for index in indices]
                self.assertEqual(document["fnv1a64"], fnv(n for at in places for n in (at["bank"], at["bit"])))
                self.assertEqual(len({(at["bank"], at["slot"]) for at in places}), len(indices))
                slots = document["banks"] * document["words_per_bank"] * document["lanes"]
                self.assertEqual(document["physical_elements"], slots)
                self.assertEqual(document["padding"], slots - len(indices))
                bank_bytes = -(-document["words_per_bank"] * document["word_bits"] // 8)
                if "size=" in words:
                    bank_bytes = -(-bank_bytes // 256) * 256
                self.assertEqual(document["bytes"], document["banks"] * bank_bytes)

    def test_both_forms_are_one_layout(self):
        for short, long in FORMS:
            with self.subTest(layout=long):
                row = {"dims": "NCHW", "shape": [2, 12, 8, 4], "element_bits": 1}
                documents = [self.layout(dict(row, layout=form), "--index", "1,7,5,3") for form in (short, long)]
                self.assertEqual(*documents)

    def test_every_width(self):
        for bits in range(1, 65):
            document = self.layout({"dims": "NC", "shape": [4, 7], "element_bits": bits, "layout": "NC<3c>"},
                                   "--index", "2,4")
            self.assertEqual((document["word_bits"], document["bytes"]), (3 * bits, -(-12 * 3 * bits // 8)))
            self.assertEqual(document["points"][0]["bit"], (2 * 3 + 1) * 3 * bits + bits)

    def test_each_error_has_its_code(self):
        for layout, dims, shape, bits, code in REFUSED:
            with self.subTest(layout=layout, shape=shape, bits=bits):
                document = self.layout({"layout": layout, "dims": dims, "shape": [shape], "element_bits": bits}, expect=1)
                self.assertEqual(set(document), {"error", "message"})
                self.assertEqual(document["error"], code, document["message"])

    def test_a_slice_is_a_view_of_the_same_memory(self):
        row = {"dims": "NCHW", "shape": [2, 33, 3, 5], "element_bits": 8, "layout": "NCHW{16c}"}
        part = self.layout(row, "--slice", "1:2,16:33,0:3,2:4", "--index", "0,5,1,0")
        whole = self.layout(row, "--index", "1,21,1,2")
        self.assertEqual(part["shape"], [1, 17, 3, 2])
        for key in ("bank", "bit"):
            self.assertEqual(part["points"][0][key], whole["points"][0][key], key)
        again = self.layout({**row, "layout": part["layout"], "shape": part["shape"]}, "--index", "0,5,1,0")
        self.assertEqual(again["points"], part["points"])
        self.assertEqual(self.layout(row, "--slice", "0:2,0:33,0:3,0:5")["fnv1a64"], self.layout(row)["fnv1a64"])

    def test_refused_slices(self):
        for layout, ranges, code in [("NCHW{16c}", "0:2,8:33,0:3,0:5", "E_UNALIGNED"), ("NHWC<6c:8>", "0:2,1:33,0:3,0:5", "E_UNALIGNED"),
                                     ("NCHW;fold(H)=2", "0:2,0:33,1:3,0:5", "E_UNALIGNED"),
                                     ("NCP;fuse(P)=HW", "0:2,0:33,0:3,1:5", "E_UNALIGNED"),
                                     ("NCHW", "0:2,0:33,0:3", "E_RANK"), ("NCHW", "0:2,0:34,0:3,0:5", "E_BAD_EXTENT"),
                                     ("NCHW", "0:2,4:4,0:3,0:5", "E_BAD_EXTENT"), ("NCHW", "0:2,4,0:3,0:5", "E_SYNTAX"),
                                     ("NCHW", "0:2,x:4,0:3,0:5", "E_SYNTAX"), ("NCHW{16c~}", "0:2,0:16,0:3,0:5", "E_UNSUPPORTED")]:
            with self.subTest(layout=layout, ranges=ranges):
                document = self.layout({"layout": layout, "dims": "NCHW", "shape": [2, 33, 3, 5], "element_bits": 1 if "<" in layout else 8},
                                       "--slice", ranges, expect=1)
                self.assertEqual(document["error"], code, document["message"])

    def test_rejected(self):
        for row in VECTORS["rejected"]:
            with self.subTest(layout=row["layout"], dims=row["dims"]):
                document = self.layout(row, expect=1)
                self.assertEqual(document["error"], row["error"])
                self.assertTrue(document["message"].startswith(row["error"] + ": "))

    def test_points_are_checked(self):
        row = VECTORS["layouts"][0]
        self.assertEqual(self.layout(row, "--index", "0,0,0", expect=1)["error"], "E_RANK")
        self.assertEqual(self.layout(row, "--index", "0,0,0,5", expect=1)["error"], "E_BAD_EXTENT")
        self.assertEqual(self.layout(row, "--index", "0,0,0,-1", expect=1)["error"], "E_BAD_EXTENT")
        self.assertEqual(self.layout(row, "--index", "0,0,0,x", expect=1)["error"], "E_SYNTAX")
        self.assertEqual(self.layout(dict(row, shape=["a"]), expect=1)["error"], "E_SYNTAX")

    def test_maps(self):
        row = {"dims": "IJ", "shape": [4, 3], "element_bits": 32}
        lossy = self.layout(dict(row, layout="(i, j) -> (i mod 2, j)"), expect=1)
        self.assertEqual(lossy["error"], "E_NOT_INVERTIBLE")
        self.assertIn("[0, 0] and [2, 0]", lossy["message"])
        self.assertEqual(self.layout(dict(row, layout="(i, j) -> (j, i)"))["layout"], "JI")

    def test_text_and_usage(self):
        done = self.run_tenon("--index", "1,2", "JI", "--dims", "IJ", "--shape", "4,3")
        self.assertIn("bytes: 48", done.stdout)
        self.assertIn("index [1,2]: bank 0, slot 9, bit 288", done.stdout)
        self.assertIn("E_MISSING_DIM", self.run_tenon("I", "--dims", "IJ", "--shape", "4,3", expect=1).stderr)
        self.run_tenon("IJ", "--dims", "IJ", expect=2)
        self.run_tenon(expect=2)


if __name__ == "__main__":
    unittest.main()
