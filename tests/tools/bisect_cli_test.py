"""`tenon bisect` on a plugin with faults (tests/fixtures/plugins/faulty.cpp). TENON names the program, TENON_FIXTURES the
folder of the plugins of tests."""
import math
import os
import unittest
from pathlib import Path

import command_line
from command_line import FAILED, USAGE, npy

FIXTURES = os.environ["TENON_FIXTURES"]
IDLE = 20  # passes of the plugin that do nothing
NET = """graph @net(%x: f32[4]) -> (%y, %s) {
  %a = Exp %x "grow"
  %b = Abs %a "first"
  %c = Neg %b "turn"
  %d = Exp %c "shrink"
  %e = Abs %d "second"
  %y = Add %e, %c "sum"
  %s = Sin %c "wave"
}
"""


class Bisect(command_line.Test):
    def setUp(self):
        super().setUp()
        self.board = self.path("board.yaml")
        Path(self.board).write_text("tenon_target: 1\nname: board\nplugin: faulty\n")
        self.net = self.model(NET)

    def model(self, text, name="net.tir"):
        Path(self.path(name)).write_text(text)
        return self.path(name)

    def words(self, model, *more):
        return ("bisect", model, "--plugin", f"{FIXTURES}/faulty.so", "--target", self.board, *more)

    def report(self, fault, *more, model=None, expect=FAILED):
        return self.json(*self.words(model or self.net, *more), expect=expect, FIXTURE_FAULT=fault)

    def text(self, fault, *more, model=None, expect=FAILED):
        return self.run_tenon(*self.words(model or self.net, *more), expect=expect, FIXTURE_FAULT=fault).stdout

    def test_a_model_without_fault_agrees(self):
        report = self.report("", expect=0)
        self.assertTrue(report["agrees"])
        self.assertEqual((report["pass"], report["operator"], report["outputs"]), (None, None, []))
        self.assertEqual(report["executions"], {"reference": 1, "target": 1})
        self.assertGreater(report["runs"], IDLE)
        self.assertIn(f"{self.net} on [{self.board}]: agrees with the model as loaded on the reference", self.text("", expect=0))
        for target in ("reference", "auto"):
            self.assertTrue(self.json("bisect", self.net, "--target", target)["agrees"])

    def test_a_wrong_pass_is_named_with_what_it_did(self):
        report = self.report("pass")
        found, runs = report["pass"], report["runs"]
        self.assertFalse(report["agrees"])
        self.assertIsNone(report["operator"])
        self.assertEqual((found["pass"], found["phase"]), ("drop-negs", "tensor selection of board"))
        self.assertFalse(found["preparation"])
        # Thirteen idle passes run before it, seven after it.
        self.assertEqual(runs - found["run"], IDLE - 13)
        self.assertEqual((found["difference"]["value"], len(found["difference"]["index"])), ("y", 1))
        self.assertAlmostEqual(found["difference"]["max_abs"],
                               abs(found["difference"]["got"] - found["difference"]["expected"]), 5)
        self.assertTrue(any('Neg %b "turn"' in line for line in found["before"]), found)
        self.assertFalse(any("Neg" in line for line in found["after"]), found)
        self.assertTrue(any('Exp %b "shrink"' in line for line in found["after"]), found)
        self.assertFalse(any("grow" in line for line in found["before"] + found["after"]), found)
        # The model itself, the graph after all runs, then halves.
        self.assertGreater(runs, 20)
        self.assertLessEqual(report["executions"]["reference"], 2 + math.ceil(math.log2(runs)))
        said = self.text("pass")
        self.assertIn(f"wrong pass: 'drop-negs', run {found['run']} of {runs}, in tensor selection of board", said)
        self.assertRegex(said, r"it took away:\n(    .*\n)*    %c = Neg %b \"turn\"")
        self.assertIn(f"executions: {report['executions']['reference']} on the reference, 1 on the target", said)

    def test_a_preparation_may_be_meant(self):
        found = self.report("prepare")["pass"]
        self.assertEqual((found["pass"], found["phase"], found["preparation"]), ("drop-negs", "preparation of board", True))
        self.assertIn("--prepared compares with the graph that they make", self.text("prepare"))
        self.assertTrue(self.report("prepare", "--prepared", expect=0)["agrees"])
        # A fault after the preparation is found only with --prepared.
        self.assertEqual(self.report("prepare,sines")["pass"]["pass"], "drop-negs")
        report = self.report("prepare,sines", "--prepared")
        self.assertEqual((report["pass"]["pass"], report["pass"]["phase"], report["pass"]["run"]),
                         ("turn-sines", "memory allocation of board", report["runs"]))
        # The model, the prepared graph, the graph after all runs, then halves of the runs after the preparation.
        self.assertLessEqual(report["executions"]["reference"], 3 + math.ceil(math.log2(IDLE + 2)))
        self.assertEqual(self.report("prepare,kernel", "--prepared")["operator"]["label"], "first")

    def test_a_pass_that_breaks_the_graph_is_named(self):
        message = self.report("broken")["message"]
        self.assertIn("the verifier, after pass 'break-negs'", message)
        self.assertIn("tensor selection of board", message)

    def test_a_wrong_kernel_is_named(self):
        report = self.report("kernel")
        found = report["operator"]
        self.assertIsNone(report["pass"])
        self.assertEqual((found["op"], found["label"], found["target"]), ("Abs", "first", "board"))
        self.assertEqual((found["types"], found["in_company"], found["all_phases"]), ("(f32[4]) -> f32[4]", False, False))
        difference = found["difference"]
        self.assertEqual((difference["value"], difference["mismatches"]), ("b", 4))
        self.assertAlmostEqual(difference["got"], -difference["expected"])
        self.assertEqual(difference["max_abs"], 2 * difference["expected"])
        # The second fault is not examined: nothing after the first is.
        self.assertEqual(report["operators_compared"], 2)
        said = self.text("kernel")
        self.assertIn('wrong operator: Abs "first"', said)
        self.assertIn("(f32[4]) -> f32[4]", said)
        self.assertIn(f"result 'b': element [{difference['index'][0]}] is ", said)

    def test_an_operator_in_a_snippet_is_named(self):
        found = self.report("snippet")["operator"]
        self.assertEqual(found["op"], "snippet.Subgraph")
        self.assertTrue({"Exp grow", "Abs first", "Neg turn"} <= set(found["nodes"]), found)
        self.assertIn('Abs %a "first"', found["body_operator"]["text"].replace("%0", "%a"))
        self.assertEqual(found["body_operator"]["difference"]["mismatches"], 4)
        said = self.text("snippet")
        self.assertRegex(said, r"cut behind each operator of its body, it differs first behind\n    .*Abs .*\"first\"")

    def test_passes_that_the_reference_cannot_follow_are_judged_with_the_code(self):
        report = self.report("opaque")
        self.assertIsNone(report["pass"])
        self.assertRegex(report["notes"][0], r"pass 'encode' in code emission of board, makes operators that the "
                         r"reference does not run \(\[faulty.Abs\]\)")
        found = report["operator"]
        self.assertEqual((found["op"], found["label"], found["all_phases"]), ("Abs", "first", True))

    def test_an_operator_that_is_wrong_in_company_only(self):
        found = self.report("company")["operator"]
        self.assertEqual((found["op"], found["label"], found["in_company"]), ("Abs", "second", True))
        self.assertIn("alone it agrees", self.text("company"))

    def test_a_run_that_fails_is_an_operators_fault(self):
        report = self.report("index", model=self.model("""graph @one(%x: f32[1]) -> %z {
  %y = Exp %x
  %a = Abs %y "lost"
  %z = Neg %a
}
"""))
        self.assertIn("outside", report["error"])
        self.assertEqual((report["operator"]["op"], report["operator"]["label"]), ("Abs", "lost"))
        self.assertIn("outside", report["operator"]["error"])

    def test_tolerances_decide(self):
        tower = self.model("""graph @tower(%x: f32[1]) -> %c {
  %a = Abs %x "low"
  %b = Exp %a "middle"
  %c = Exp %b "high"
}
""")
        npy(self.path("x.npy"), [1], [1.0])
        given = ("--input", f"x={self.path('x.npy')}")
        self.assertEqual(self.report("little", *given, "--rtol", "1e-5", model=tower)["operator"]["label"], "low")
        self.assertTrue(self.report("little", *given, "--rtol", "1e-2", model=tower, expect=0)["agrees"])
        # Each alone is accurate enough; together they are not.
        report = self.report("little", *given, "--rtol", "2e-3", model=tower)
        self.assertEqual((report["operator"]["label"], report["operator"]["in_company"]), ("high", True))
        self.assertEqual(report["nearest"]["label"], "low")
        self.assertIn('farthest off by itself: Abs "low"', self.text("little", *given, "--rtol", "2e-3", model=tower))

    def test_random_operators_are_named_and_what_is_behind_them_compared(self):
        dice = self.model("""graph @dice(%x: f32[4]) -> %y {
  %r = RandomUniform "dice" {shape = [4], low = 1.0, high = 2.0}
  %s = Add %r, %x
  %e = Exp %s
  %y = Abs %e "behind"
}
""")
        report = self.report("", model=dice, expect=0)
        self.assertTrue(report["agrees"])
        (skipped,) = report["not_compared"]
        self.assertEqual((skipped["op"], skipped["label"]), ("RandomUniform", "dice"))
        self.assertEqual(self.report("kernel", model=dice)["operator"]["label"], "behind")
        # The outputs in the files come from a different draw.
        self.run_tenon("run", dice, "--target", "reference", "--output-dir", self.path("drawn"))
        given = ("--data", self.path("drawn"), "--input", f"x={self.path('drawn/output_0.pb')}")
        self.assertEqual(self.report("", *given, model=dice, expect=0)["data"], [])
        self.assertIn('not compared: RandomUniform "dice": it is random, and has no seed', self.text("", model=dice, expect=0))

    def test_operators_without_reference_are_named_and_the_others_compared(self):
        model = self.model("""graph @own(%x: f32[4]) -> %y {
  %a = Exp %x
  %o = faulty.Abs %a "own"
  %e = Exp %o
  %y = Abs %e "behind"
}
""")
        report = self.report("kernel", model=model)
        self.assertEqual(report["operator"]["label"], "behind")
        self.assertEqual([(op["op"], op["label"]) for op in report["not_compared"]], [("faulty.Abs", "own")])
        self.assertIn("the whole model is not compared", report["notes"][0])
        self.assertEqual(report["executions"]["reference"], 0)

    def test_data_that_the_reference_does_not_give_blame_nobody_else(self):
        data = Path(self.path("data"))
        self.run_tenon("run", self.net, "--target", "reference", "--output-dir", data)
        (data / "input_0.pb").write_bytes((data / "output_0.pb").read_bytes())
        (data / "output_1.pb").unlink()
        report = self.report("", "--data", data)
        self.assertTrue(report["agrees"])
        self.assertEqual([entry["equal"] for entry in report["data"]], [False])
        self.assertIn("the model on the reference differs from", self.text("", "--data", data))
        self.run_tenon("run", self.net, "--target", "reference", "--data", data, "--output-dir", data, expect=FAILED)
        report = self.report("kernel", "--data", data)
        self.assertEqual([entry["equal"] for entry in report["data"]], [True, True])
        self.assertEqual(report["operator"]["label"], "first")

    def test_wrong_input_is_said(self):
        artefact = self.path("net.tenon")
        self.run_tenon("compile", self.net, "--target", "reference", "-o", artefact)
        for words, text in ((["bisect", self.path("none.onnx")], "there is no file"),
                            (["bisect", artefact], "is a compiled artefact"),
                            (["bisect", self.net, "--target", "referense"], "did you mean 'reference'"),
                            (["bisect", self.net, "--input", "z=z.npy"], "the model's inputs are [x]"),
                            (["bisect", self.net, "--dim", "N=2"], "--dim names 'N'"),
                            (["bisect", self.net, "--data", self.path("nowhere")], "is not a folder of test data"),
                            (["bisect", self.net, "--plugin", self.net], "cannot be used")):
            with self.subTest(words=words):
                self.assertIn(text, self.run_tenon(*words, expect=FAILED).stderr)
        for words in (["bisect"], ["bisect", self.net, "--rtol", "nan"], ["bisect", self.net, "--seed", "-1"]):
            with self.subTest(words=words):
                self.run_tenon(*words, expect=USAGE)
        self.assertIn("Exit code 0: the target agrees", self.run_tenon("bisect", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
