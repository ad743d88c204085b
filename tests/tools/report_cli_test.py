"""`tenon report`: the document, and the page that is made of it. TENON names the program."""
import json
import math
import os
import re
import time
import unittest
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import command_line
from command_line import FAILED, USAGE

HOSTILE = "<script>alert(1)</script>&'"
NET = """graph @net(%x: f32[64,64]) -> (%y, %s) {
  %a = Exp %x "grow"
  %b = Abs %a "first"
  %c = Neg %b "turn"
  %m = MatMul %c, %a "product"
  %y = Add %m, %c "sum"
  %s = Sin %c "wave"
}
"""
OPERATORS = ["grow", "first", "turn", "product", "sum", "wave"]


class Page(HTMLParser):
    """Every element that is opened is shut, in order; nothing is fetched or executed."""
    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.seen, self.text, self.links, self.wrong = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href") or name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append((tag, self.getpos()))

    def handle_data(self, data):
        self.text.append(data)


class Report(command_line.Test):
    def model(self, text, name="net.tir"):
        Path(self.path(name)).write_text(text)
        return self.path(name)

    def report(self, model, *more, page="page.html", **env):
        """The document, and the text of the page, which is well formed."""
        document = self.json("report", model, *more, "--runs", "2", "-o", self.path(page), **env)
        text = Path(self.path(page)).read_text(encoding="utf-8")
        parsed = Page(text)
        self.assertEqual((parsed.open, parsed.wrong, parsed.links), ([], [], []))
        self.assertFalse({"script", "link", "img", "iframe"} & set(parsed.seen))
        self.assertNotRegex(text, r"https?://|@import|url\(")
        for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
            ElementTree.fromstring(svg)
        return document, text

    def check_numbers(self, document):
        memory, timeline = document["memory"], document["timeline"]
        self.assertGreater(document["compile_ms"], 0)
        self.assertLessEqual(document["min_ms"], document["median_ms"])
        self.assertLessEqual(document["median_ms"], document["p90_ms"])
        self.assertGreater(document["peak_rss_mb"], 1)
        self.assertEqual(sum(document["placement"]["operators_by_target"].values()),
                         len(document["placement"]["operators"]))
        for arena in (memory, *memory["segments"], *memory["spaces"]):
            self.assertLessEqual(arena["arena_lower_bound_bytes"], arena["arena_bytes"])
            self.assertTrue(0 <= arena["efficiency"] <= 1, arena)
        for space in memory["spaces"]:
            for block in space["blocks"]:
                self.assertLessEqual(block["offset"] + block["bytes"], space["arena_bytes"])
                self.assertLessEqual(block["first_step"], block["last_step"])
        steps = timeline["steps"]
        self.assertTrue(math.isclose(sum(step["us"] for step in steps), timeline["total_us"], abs_tol=1e-6))
        if steps:
            self.assertAlmostEqual(sum(step["share"] for step in steps), 1, 5)
        slowest = [steps[i]["us"] for i in timeline["slowest"]]
        self.assertEqual(slowest, sorted((step["us"] for step in steps), reverse=True)[:10])

    def test_the_reference_tells_placement_memory_and_times(self):
        document, page = self.report(self.model(NET), "--target", "reference")
        self.check_numbers(document)
        self.assertEqual(document["targets"], ["reference"])
        placement = document["placement"]
        self.assertEqual([op["label"] for op in placement["operators"]], OPERATORS)
        self.assertEqual((placement["operators_by_target"], placement["fallbacks"], placement["reasons"]),
                         ({"reference": 6}, 0, []))
        self.assertEqual([step["label"] for step in document["timeline"]["steps"]], OPERATORS)
        (segment,) = document["memory"]["segments"]
        self.assertEqual((segment["target"], segment["spaces"]), ("reference", len(document["memory"]["spaces"])))
        # Values of 64 x 64 floats that are not outputs lie in the arena.
        blocks = [block for space in document["memory"]["spaces"] for block in space["blocks"]]
        self.assertIn(64 * 64 * 4, [block["bytes"] for block in blocks])
        self.assertGreaterEqual(document["memory"]["arena_lower_bound_bytes"], 64 * 64 * 4)
        drawn = sum(block["bytes"] > 0 for block in blocks)
        self.assertEqual(page.count("<rect "), drawn + 6)
        self.assertEqual(page.count("<svg class=\"timeline\""), 1)
        for text in ("What ran where and why", "Fusion", "Memory map", "Timeline", "MatMul product", "efficiency",
                     "No target generated kernels for this model"):
            self.assertIn(text, page)

    def test_fallback_gives_the_reason_of_each_target(self):
        document, page = self.report(self.model(NET), "--target", "template")  # which runs only Abs
        self.check_numbers(document)
        placement = document["placement"]
        fallen = [op for op in placement["operators"] if op["fallback"]]
        self.assertEqual((len(fallen), placement["operators_by_target"].get("reference", 0)),
                         (placement["fallbacks"], placement["fallbacks"]))
        self.assertEqual([op["label"] for op in fallen], [label for label in OPERATORS if label != "first"])
        for op in fallen:
            refused_by = [refusal["target"] for refusal in op["refusals"]]
            self.assertEqual((op["target"], refused_by), ("reference", ["template"]))
            self.assertTrue(op["refusals"][0]["reason"])
        self.assertEqual(sum(reason["count"] for reason in placement["reasons"]), placement["fallbacks"])

    def test_every_target_that_is_here_gives_a_page(self):
        for target in ("x86-avx512", "x86-avx2", "opencl-cpu", "vta-default"):
            available = any(entry["name"] == target and entry["available"] for entry in self.json("devices")["targets"])
            with self.subTest(target=target):
                if not available:
                    self.skipTest(f"{target} is not available")
                document, page = self.report(self.model(NET), "--target", target)
                self.check_numbers(document)
                self.assertIn(target, {op["target"] for op in document["placement"]["operators"]} |
                              {refusal["target"] for op in document["placement"]["operators"]
                               for refusal in op["refusals"]})
                if target.startswith("x86"):
                    (kernel, *_) = document["fusion"]["kernels"]
                    self.assertEqual(document["fusion"]["operators"],
                                     sum(len(k["operators"]) for k in document["fusion"]["kernels"]))
                    self.assertTrue({"Exp grow", "Abs first"} & set(kernel["operators"]), kernel)
                    self.assertLess(document["fusion"]["bytes_fused"], document["fusion"]["bytes_unfused"])
                    self.assertIn("Abs first", page)

    def test_the_map_is_that_of_the_plugin_that_ran(self):
        if not any(entry["name"] == "x86-avx2" and entry["available"] for entry in self.json("devices")["targets"]):
            self.skipTest("x86-avx2 is not available")
        model = self.model("""graph @soft(%x: f32[64,64]) -> %y {
  %a = Softmax %x "one" {axis = 0}
  %b = Transpose %a "turn" {perm = [1, 0]}
  %c = Softmax %b "two" {axis = 0}
  %y = Transpose %c "back" {perm = [1, 0]}
}
""")
        document, page = self.report(model, "--target", "x86-avx2")
        self.check_numbers(document)
        (space,) = document["memory"]["spaces"]
        self.assertEqual((space["target"], space["space"], space["segment"]), ("x86-avx2", "host", 0))
        self.assertEqual(document["memory"]["segments"][0]["arena_bytes"], space["arena_bytes"])
        # Two neighbours are live at a time; the third reuses the memory of the first.
        self.assertEqual([(b["name"], b["bytes"]) for b in space["blocks"]], [(n, 64 * 64 * 4) for n in "abc"])
        self.assertEqual((space["arena_bytes"], space["efficiency"]), (2 * 64 * 64 * 4, 1))
        self.assertEqual(space["blocks"][0]["offset"], space["blocks"][2]["offset"])
        self.assertIn("<title>b: 16384 bytes at 16384, steps ", page)

    def test_names_cannot_leave_their_place(self):
        model = self.model(NET.replace('"first"', json.dumps(HOSTILE)), "<b>&.tir")
        document, page = self.report(model, "--target", "reference")
        self.assertEqual(document["placement"]["operators"][1]["label"], HOSTILE)
        self.assertNotIn("<script", page)
        self.assertNotIn("<b>", page)
        # In the table of operators, the picture, and both tables of times.
        self.assertGreaterEqual(page.count("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&#39;"), 4)
        self.assertIn(HOSTILE, "".join(Page(page).text))

    def test_a_model_without_operators(self):
        document, page = self.report(self.model("graph @none(%x: f32[3]) -> %x {\n}\n"), "--target", "reference")
        self.check_numbers(document)
        lists = (document["placement"]["operators"], document["timeline"]["steps"], document["memory"]["spaces"],
                 document["fusion"]["kernels"])
        self.assertEqual(lists, ([], [], [], []))
        self.assertIn("The model has no operators", page)
        self.assertIn("No step was timed", page)
        self.assertNotIn("<svg", page)

    def test_a_thousand_operators_are_a_page_that_opens(self):
        lines = [f'  %v{i + 1} = {"Sin" if i % 2 else "Abs"} %v{i} "layer{i}/op"' for i in range(1000)]
        model = self.model("graph @tower(%v0: f32[16]) -> %v1000 {\n" + "\n".join(lines) + "\n}\n")
        begin = time.monotonic()
        document, page = self.report(model, "--target", "reference")
        self.assertLess(time.monotonic() - begin, 60)
        self.assertLess(len(page), 2_000_000)
        self.check_numbers(document)
        self.assertEqual(len(document["timeline"]["steps"]), 1000)
        self.assertIn("layer999/op", page)
        # Long tables are collapsed, short ones are not.
        self.assertIn("<details><summary>All steps, in order (1000)</summary>", page)
        self.assertIn("<details open><summary>The slowest (10)</summary>", page)

    def test_bars_of_many_steps_stand_for_neighbours(self):
        lines = [f'  %v{i + 1} = {"Sin" if i % 2 else "Abs"} %v{i} "op{i}"\n' for i in range(2001)]
        model = self.model("graph @long(%v0: f32[1]) -> %v2001 {\n" + "".join(lines) + "}\n")
        document, page = self.report(model, "--target", "reference")
        (chart,) = re.findall(r'<svg class="timeline".*?</svg>', page, re.DOTALL)
        self.assertEqual(len(document["timeline"]["steps"]), 2001)
        self.assertEqual(chart.count("<rect "), 1001)
        self.assertIn("and on, the longest of 2: ", chart)

    def test_where_the_page_goes(self):
        model = self.model(NET)
        self.assertNotIn("error", self.json("report", model, "--target", "reference", "--runs", "1"))
        self.assertEqual(sorted(os.listdir(self.folder.name)), ["net.tir"])
        done = self.run_tenon("report", model, "--target", "reference", "--runs", "1", "-o", self.path("a.html"))
        self.assertRegex(done.stdout, r"6 operators, 0 of them .*; wrote .*a\.html\n$")
        self.assertTrue(Path(self.path("a.html")).read_text().startswith("<!DOCTYPE html>"))

    def test_artefacts_are_told_of_as_well(self):
        artefact = self.path("net.tenon")
        self.run_tenon("compile", self.model(NET), "--target", "reference", "-o", artefact)
        document, _ = self.report(artefact)
        self.assertEqual(document["placement"]["operators_by_target"], {"reference": 6})

    def test_wrong_input_is_said(self):
        net = self.model(NET)
        for words, text in ((["report", self.path("none.onnx")], "there is no file"),
                            (["report", net, "--target", "referense"], "did you mean 'reference'"),
                            (["report", net, "--dim", "N=2"], "--dim names 'N'"),
                            (["report", net, "--target", "reference", "-o", self.path("no/page.html")],
                             "cannot write")):
            with self.subTest(words=words):
                self.assertIn(text, self.run_tenon(*words, expect=FAILED).stderr)
                self.assertIn(text, self.json(*words, expect=FAILED)["message"])
        for words in (["report"], ["report", net, "--runs", "0"], ["report", net, "--seed", "-1"],
                      ["report", net, "-o", ""]):
            with self.subTest(words=words):
                self.run_tenon(*words, expect=USAGE)


if __name__ == "__main__":
    unittest.main()
