"""tenon-zoo as scripts see it, and its models under `tenon run`. TENON and TENON_ZOO name the programs."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

TENON, ZOO = os.environ["TENON"], os.environ["TENON_ZOO"]
DONE, FAILED, USAGE = 0, 1, 2


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class ZooProgram(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def program(self, *words, expect=DONE):
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, expect, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def names(self):
        return [line.split()[0] for line in self.program(ZOO, "--list").stdout.splitlines()]

    def test_list_names_each_model_once(self):
        names = self.names()
        self.assertEqual(len(names), len(set(names)))
        for name in ("resnet18", "resnet50", "mobilenet_v2", "squeezenet", "bert", "gpt", "lstm", "resnet50_int8",
                     "mobilenet_v2_int8"):
            self.assertIn(name, names)

    def test_usage_errors_exit_with_2(self):
        for words in ([], ["resnet18"], ["resnet18", self.folder, "--size", "large"],
                      ["resnet18", self.folder, "--batch", "0"], ["resnet18", self.folder, "--unknown"]):
            with self.subTest(words=words):
                self.assertTrue(self.program(ZOO, *words, expect=USAGE).stderr.strip())

    def test_unknown_model_exits_with_1_and_a_hint(self):
        done = self.program(ZOO, "resnet05", self.folder, expect=FAILED)
        self.assertIn("did you mean", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_progress_goes_to_standard_error(self):
        done = self.program(ZOO, "squeezenet", self.folder / "a", "--size", "tiny")
        self.assertEqual(done.stdout, "")
        self.assertIn("operators", done.stderr)

    def test_a_model_in_the_place_of_another_has_its_own_data_alone(self):
        for name in ("bert", "lstm"):  # of three inputs and two outputs, of one and one
            self.program(ZOO, name, self.folder / "a", "--size", "tiny")
        data = self.folder / "a" / "test_data_set_0"
        self.assertEqual(sorted(path.name for path in data.iterdir()), ["input_0.pb", "output_0.pb"])
        self.program(TENON, "run", self.folder / "a" / "model.onnx", "--target", "reference", "--data", data)

    def test_same_words_same_bytes(self):
        for out in ("a", "b"):
            self.program(ZOO, "mobilenet_v2_int8", self.folder / out, "--size", "tiny", "--seed", "7")
        self.program(ZOO, "mobilenet_v2_int8", self.folder / "c", "--size", "tiny", "--seed", "8")
        a, b, c = (contents(self.folder / out) for out in "abc")
        self.assertEqual(sorted(a), ["model.onnx", "model.onnx.data", "test_data_set_0/input_0.pb",
                                     "test_data_set_0/output_0.pb"])
        self.assertEqual(a, b)
        self.assertNotEqual(a["model.onnx.data"], c["model.onnx.data"])

    def test_every_model_runs_as_stored(self):
        for name in self.names():
            with self.subTest(model=name):
                out = self.folder / name
                self.program(ZOO, name, out, "--size", "tiny")
                done = self.program(TENON, "run", out / "model.onnx", "--target", "reference", "--data",
                                    out / "test_data_set_0")
                self.assertIn("equal", done.stdout)

    def test_another_output_is_a_mismatch(self):
        for out, seed in (("a", 1), ("b", 2)):
            self.program(ZOO, "squeezenet", self.folder / out, "--size", "tiny", "--seed", seed)
        name = "test_data_set_0/output_0.pb"
        (self.folder / "a" / name).write_bytes((self.folder / "b" / name).read_bytes())
        done = self.program(TENON, "run", self.folder / "a/model.onnx", "--data", self.folder / "a/test_data_set_0",
                            expect=FAILED)
        self.assertIn("DIFFERENT", done.stdout)


if __name__ == "__main__":
    unittest.main()
