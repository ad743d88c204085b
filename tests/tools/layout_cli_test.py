"""`tenon layout` on every entry of the layout vectors: sizes, points, rejected texts. TENON names the program."""
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
