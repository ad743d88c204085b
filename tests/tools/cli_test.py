"""The command-line program as scripts see it: output, JSON, exit codes. TENON names the program."""
import os
import re
import subprocess
import unittest
from pathlib import Path

import command_line
from command_line import DONE, FAILED, TENON, USAGE, npy

NET = """graph @net(%x: f32[N,2]) -> (%y, sum: %s) {
  %k = Constant {value = dense<f32[2]: 1.0, -1.0>}
  %m = Mul %x, %k "scale"
  %y = Relu %m "act"
  %i = Identity %y
  %s = Add %y, %i
}
"""
# Two convolutions with a residual between them, and a classifier.
IMAGES = """graph @images(%x: f32[1,2,4,4]) -> %y {
  %w = Constant {value = dense<f32[2,2,1,1]: 1.0, 0.5, -0.25, 2.0>}
  %b = Constant {value = dense<f32[2]: 0.5, -1.0>}
  %c = Conv %x, %w, %b "conv"
  %r = Relu %c
  %d = Conv %r, %w "second"
  %s = Add %d, %r
  %p = GlobalAveragePool %s "mean"
  %f = Flatten %p
  %k = Constant {value = dense<f32[2,3]: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0>}
  %y = Gemm %f, %k "dense"
}
"""


class CommandLine(command_line.Test):
    def setUp(self):
        super().setUp()
        self.net = self.path("net.tir")
        Path(self.net).write_text(NET)

    def test_usage_errors_exit_with_2(self):
        for words in ([], ["nonsense"], ["run"], ["run", self.net, "--threads", "many"], ["run", self.net, "--runs", "0"],
                      ["opt"], ["compile", self.net], ["conformance"], ["target"], ["bench", self.net, "--unknown"]):
            with self.subTest(words=words):
                done = self.run_tenon(*words, expect=USAGE)
                self.assertTrue(done.stderr.strip())

    def test_usage_errors_are_a_document_where_one_is_asked_for(self):
        for words, text in ((["run"], "MODEL is required"), (["runn", self.net], "did you mean 'run'"),
                            (["run", self.net, "--runs", "0"], "--runs"), (["bench", self.net, "--unknown"], "--unknown"),
                            (["run", self.net, "--threads"], "--threads")):
            with self.subTest(words=words):
                document = self.json(*words, expect=USAGE)
                self.assertEqual(document["error"], "usage")
                self.assertIn(text, document["message"])
        first = self.run_tenon("run", "--json", "--unknown", self.net, expect=USAGE)
        self.assertEqual(first.stderr, "")

    def test_a_command_that_is_none_is_named(self):
        self.assertIn("no command 'runn'", self.run_tenon("runn", self.net, expect=USAGE).stderr)
        self.assertIn("did you mean 'run'", self.run_tenon("runn", self.net, expect=USAGE).stderr)
        self.assertIn("no command 'chek'; there are [check]", self.run_tenon("target", "chek", expect=USAGE).stderr)

    def test_numbers_that_are_none_are_refused(self):
        for words in (["run", self.net, "--rtol", "nan"], ["run", self.net, "--atol", "inf"],
                      ["run", self.net, "--rtol", "-1"], ["run", self.net, "--min-coverage", "nan"],
                      ["run", self.net, "--seed", "-1"], ["bench", self.net, "--seed", "99999999999999999999"],
                      ["quantise", self.net, "--random", "1", "--threads", "-1"],
                      ["quantise", self.net, "--random", "1", "--seed", "1.5"],
                      ["opt", self.net, "--elide", "-1"], ["conformance", ".", "--timeout", "nan"],
                      ["conformance", ".", "--timeout", "1e300"]):
            with self.subTest(words=words):
                self.assertIn(words[-2] + ":", self.run_tenon(*words, expect=USAGE).stderr)

    def test_files_that_are_none_are_refused(self):
        for words in (["opt", self.net, "-o", ""], ["opt", self.net, "--program", ""], ["opt", self.net, "--passes", ""],
                      ["emit", self.net, "-o", ""], ["compile", self.net, "-o", ""],
                      ["run", self.net, "--output-dir", ""], ["quantise", self.net, "--random", "1", "-o", "net.text"]):
            with self.subTest(words=words):
                self.run_tenon(*words, expect=USAGE)
        x = self.path("x.npy")
        npy(x, [2, 2], [1, 2, -3, -4])
        for words, text in ((["run", self.path("none.onnx")], "there is no file"),
                            (["bench", self.folder.name], "is a folder"),
                            (["quantise", self.net, "--profile", "/dev/zero"], "not a regular file"),
                            (["opt", self.net, "-o", self.path("none/text")], "No such file or directory"),
                            (["run", self.net, "--plugin", self.path("none.so")], "none.so' cannot be used"),
                            (["run", self.net, "--plugin", self.net], "net.tir' cannot be used"),
                            (["opt", self.net, "--dump-after", "remove-ded"], "'remove-ded', and no such pass is to run"),
                            (["run", self.net, "--dim", "M=3"], "symbolic dims of the model's inputs are [N]"),
                            (["run", self.net, "--dim", "N=3", "--dim", "N=4"], "gives two values to 'N'"),
                            (["run", self.net, "--dim", "N=3", "--input", f"x={x}"], "all inputs are given: leave it out"),
                            (["run", self.net, "--input", f"x={x}", "--input", f"x={x}"], "gives two files to 'x'"),
                            (["run", self.net, "--data", self.folder.name],
                             f"there is no --input x=FILE, and no {self.folder.name}/input_0.pb"),
                            (["run", self.net, "--dim", "=3"], "NAME=N")):
            with self.subTest(words=words):
                self.assertIn(text, self.run_tenon(*words, expect=FAILED).stderr)

    def test_output_that_cannot_be_written_is_an_error(self):
        for words in (["--help"], ["--version"], ["opt", self.net], ["run", self.net, "--target", "reference"],
                      ["run", self.net, "--target", "reference", "--json"], ["devices"]):
            with self.subTest(words=words), open("/dev/full", "w") as full:
                done = subprocess.run([TENON, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
                self.assertEqual(done.returncode, FAILED)
                self.assertIn("cannot write to standard output", done.stderr)
        closed = subprocess.run(["sh", "-c", '"$0" opt "$1" >&-', TENON, self.net], capture_output=True, text=True, timeout=120)
        self.assertEqual(closed.returncode, FAILED)
        self.assertIn("cannot write to standard output", closed.stderr)

    def test_quantise(self):
        model, profile = self.path("images.tir"), self.path("profile.json")
        integers, qdq = self.path("integers.tir"), self.path("qdq.onnx")
        Path(model).write_text(IMAGES)
        report = self.json("quantise", model, "--random", "3", "--save-profile", profile, "-o", integers)
        self.assertTrue(report["calibrated"])
        self.assertEqual(report["floats"], [])
        self.assertGreater(report["outputs"][0]["sqnr_db"], 20)
        self.assertEqual(report["outputs"][0]["rows"], 3)
        self.assertTrue({"fused.QConv", "fused.QAvgPool"} <= {layer["operator"] for layer in report["layers"]})
        # Two for 16 bits of the scores.
        self.assertEqual(Path(integers).read_text().count("fused.QDense"), 2)
        # From the profile alone, for others; which reads back as the same integers.
        self.run_tenon("quantise", model, "--profile", profile, "-o", qdq)
        again = self.path("again.tir")
        report = self.json("quantise", qdq, "-o", again, "--random", "1")
        self.assertFalse(report["calibrated"])
        outputs = [self.json("run", file, "--target", "reference", "--seed", "3")["outputs"] for file in (integers, again)]
        self.assertEqual(outputs[0][0]["mean"], outputs[1][0]["mean"])
        self.assertIn("has no scales", self.json("quantise", model, expect=FAILED)["message"])
        self.assertIn("no input_0.pb", self.json("quantise", model, "--data", self.folder.name, expect=FAILED)["message"])
        self.run_tenon("quantise", model, "--method", "guess", expect=USAGE)

    def test_layouts_by_name(self):
        text = self.run_tenon("opt", self.net, "--passes", "remove-dead", "--layout", "m=NC{8c}",
                              "--layout", "y=(n, c) -> (c, n)").stdout
        self.assertIn('f32[N,2] in "NC{8c}" pinned', text)
        self.assertIn('in "(n, c) -> (c, n)" pinned', text)
        fixed = self.path("fixed.tir")
        Path(fixed).write_text(NET.replace("[N,2]", "[3,2]"))
        self.run_tenon("run", fixed, "--target", "reference", "--layout", "m=CN;align(C)=32B")
        board = self.path("board.yaml")
        head = "tenon_target: 1\nname: board\nplugin: reference\n"
        Path(board).write_text(head + "value_layouts: {m: CN}\n")
        self.run_tenon("run", fixed, "--target", board)
        Path(board).write_text(head + "value_layouts: {mm: CN}\n")
        error = self.json("run", fixed, "--target", board, expect=FAILED)
        self.assertIn("did you mean 'm'", error["message"])
        self.assertIn("value_layouts of target 'board'", error["message"])
        # Extents that are known only at run time.
        self.run_tenon("run", self.net, "--target", "reference", "--layout", "m=CN", "--layout", "y=NC{4n}")
        error = self.json("run", self.net, "--target", "reference", "--layout", "mm=CN", expect=FAILED)
        self.assertIn("did you mean 'm'", error["message"])
        self.json("run", self.net, "--target", "reference", "--layout", "CN", expect=FAILED)
        self.json("run", self.net, "--target", "reference", "--layout", "m=CN", "--layout", "m=NC", expect=FAILED)

    def test_help_and_version_exit_with_0(self):
        self.assertIn("conformance", self.run_tenon("--help").stdout)
        self.assertRegex(self.run_tenon("--version").stdout, r"^\d+\.\d+\.\d+")
        for command in ("devices", "run", "conformance", "bench", "opt", "compile", "target"):
            self.run_tenon(command, "--help")

    def test_devices_always_has_the_reference(self):
        document = self.json("devices", "--describe")
        reference = [t for t in document["targets"] if t["name"] == "reference"]
        self.assertEqual(len(reference), 1)
        self.assertTrue(reference[0]["available"])
        self.assertIn("auto", document)
        self.assertIn("reference", self.run_tenon("devices").stdout)

    def test_devices_shows_the_machine_when_asked(self):
        self.assertNotIn("machine", self.json("devices"))
        folder, tried = self.path("cache"), []
        for _ in range(2):
            machine = self.json("devices", "--machine", TENON_CACHE_DIR=folder)["machine"]
            self.assertEqual([m["name"] for m in machine["memories"]], ["L1", "L2", "L3", "memory"])
            self.assertTrue(all(m["bytes_per_second"] > 0 for m in machine["memories"]), machine)
            tried.append(machine["measurements"])
        self.assertEqual(tried[1], 2 * tried[0], "the second process goes on with what the first one has stored")

    def test_a_plugin_that_is_none_is_listed_with_its_error(self):
        bad = self.path("bad.so")
        Path(bad).write_text("no library")
        plugins = self.json("devices", "--plugin", bad)["plugins"]
        self.assertTrue(any(p["path"] == bad and p["error"] for p in plugins), plugins)

    def test_run_with_given_inputs(self):
        npy(self.path("x.npy"), [2, 2], [1, 2, -3, -4])
        document = self.json("run", self.net, "--target", "reference", "--input", f"x={self.path('x.npy')}",
                             "--output-dir", self.path("out"), "--stats")
        self.assertTrue(document["ok"])
        y, total = document["outputs"]
        self.assertEqual((y["name"], y["type"], y["max"]), ("y", "f32[2,2]", 4.0))
        self.assertEqual((total["name"], total["max"]), ("sum", 8.0))
        self.assertTrue(Path(self.path("out/output_1.pb")).is_file())
        self.assertTrue(any(row["op"] == "Relu" for row in document["stats"]))

    def test_kernels_without_labels_have_their_own_times(self):
        targets = self.json("devices")["targets"]
        if not any(t["name"] == "x86-avx2" and t["available"] for t in targets):
            self.skipTest("this machine has no AVX2")
        graph = self.path("sums.tir")
        Path(graph).write_text("""graph @sums(%x: f32[64,64]) -> %y {
  %a = Constant {value = dense<i64[]: 0>}
  %c = CumSum %x, %a
  %y = Relu %c
}
""")
        document = self.json("run", graph, "--target", "x86-avx2", "--target", "reference", "--stats")
        times = {row["op"]: row["milliseconds"] for row in document["stats"]}
        self.assertEqual(set(times), {"CumSum", "snippet.Subgraph"})
        (kernel,) = document["kernels"]
        self.assertAlmostEqual(kernel["measured_us"] / 1000, times["snippet.Subgraph"])

    def test_stages_of_shared_folds_are_listed(self):
        targets = self.json("devices")["targets"]
        if not any(t["name"] == "x86-avx2" and t["available"] for t in targets):
            self.skipTest("this machine has no AVX2")
        graph = self.path("soft.tir")
        Path(graph).write_text("""graph @soft(%x: f32[1048576]) -> %y {
  %y = Softmax %x "soft" {axis = 0}
}
""")
        run = ("run", graph, "--target", "x86-avx2", "--stats")
        two, one = {"TENON_THREADS": "2"}, {"TENON_THREADS": "1"}
        (kernel,) = self.json(*run, **two)["kernels"]
        names = [stage["name"] for stage in kernel["stages"]]
        self.assertEqual([name.rsplit(".", 1)[1] for name in names], ["parts1", "joins1", "rest"])
        self.assertIn(f"shared by threads as {names[0]} (", self.run_tenon(*run, **two).stdout)
        emitted = self.run_tenon("emit", graph, "--target", "x86-avx2", **two).stdout
        for name in names:
            self.assertIn(name, emitted)
        self.assertEqual(self.json(*run, **one)["kernels"][0]["stages"], [])

    def test_run_writes_sequences_that_it_compares_with(self):
        Path(self.net).write_text("""graph @lists(%x: f32[2,3]) -> (%s, %y) {
  %s = SequenceConstruct %x, %x
  %y = ConcatFromSequence %s {axis = 0}
}
""")
        folder = self.path("out")
        self.run_tenon("run", self.net, "--output-dir", folder)
        npy(self.path("x.npy"), [2, 3], [1, 2, 3, 4, 5, 6])
        document = self.json("run", self.net, "--data", folder, "--input", f"x={self.path('x.npy')}", expect=FAILED)
        self.assertEqual([output["equal"] for output in document["outputs"]], [False, False])
        self.run_tenon("run", self.net, "--input", f"x={self.path('x.npy')}", "--output-dir", folder)
        document = self.json("run", self.net, "--data", folder, "--input", f"x={self.path('x.npy')}")
        self.assertEqual([output["equal"] for output in document["outputs"]], [True, True])

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        Path(self.net).write_text('graph @g(%x: f32[1]) -> ("\\x1b[31mred\\x7f": %y) { %y = Neg %x "label\\x07" }\n')
        for words in (["run", self.net, "--stats", "--target", "reference"],
                      ["run", self.net, "--target", "vta-default"]):
            said = self.run_tenon(*words).stdout
            self.assertIn("\\x1b[31mred\\x7f", said)
            self.assertIsNone(re.search("[\x00-\x08\x0b-\x1f\x7f]", said), said)
        refused = self.run_tenon("run", self.net, "--input", "\x1b[31m=x.npy", expect=FAILED).stderr
        self.assertIn("--input names '\\x1b[31m'", refused)
        self.assertNotIn("\x1b", refused)

    def test_names_of_inputs_may_hold_equals_signs(self):
        Path(self.net).write_text('graph @g(%"a": f32[1], %"a=b": f32[1]) -> %c { %c = Sub %"a", %"a=b" }\n')
        npy(self.path("one.npy"), [1], [1])
        npy(self.path("three.npy"), [1], [3])
        document = self.json("run", self.net, "--input", f"a={self.path('one.npy')}", "--input",
                             f"a=b={self.path('three.npy')}")
        self.assertEqual(document["outputs"][0]["max"], -2)

    def test_run_compares_with_data_and_fails_on_a_difference(self):
        npy(self.path("x.npy"), [2, 2], [1, 2, -3, -4])
        self.run_tenon("run", self.net, "--input", f"x={self.path('x.npy')}", "--output-dir", self.path("out"))
        data = Path(self.path("data"))
        data.mkdir()
        # An input is a tensor file like an output: the first output serves as input, [1,0,0,4] -> y [1,0,0,0].
        first = Path(self.path("out/output_0.pb")).read_bytes()
        (data / "input_0.pb").write_bytes(first)
        self.run_tenon("run", self.net, "--data", data, "--output-dir", self.path("expected"))
        (data / "output_0.pb").write_bytes(Path(self.path("expected/output_0.pb")).read_bytes())
        self.assertIn("equal", self.run_tenon("run", self.net, "--data", data).stdout)
        (data / "output_0.pb").write_bytes(Path(self.path("expected/output_1.pb")).read_bytes())
        done = self.run_tenon("run", self.net, "--data", data, expect=FAILED)
        self.assertIn("DIFFERENT", done.stdout)

    def test_run_makes_seeded_inputs_and_shadows(self):
        document = self.json("run", self.net, "--dim", "N=3", "--shadow", "reference:50%", "--runs", "4", "--top", "2")
        self.assertEqual(len(document["shadow"]), 4)  # two of four runs, two outputs each
        self.assertEqual(len(document["top"]), 3)
        said = self.run_tenon("run", self.net, "--shadow", "reference:50%", "--runs", "4").stdout
        self.assertIn("shadow reference:50%: 2 runs of 4 repeated, all outputs equal", said)
        same = [self.json("run", self.net, "--seed", "7")["outputs"] for _ in range(2)]
        self.assertEqual(same[0], same[1])

    def test_run_errors_say_what_is_wrong(self):
        for words, text in (
            ([self.path("none.tir")], "none.tir"),
            ([self.net, "--target", "referense"], "reference"),
            ([self.net, "--input", "z=z.npy"], "inputs are [x]"),
            ([self.net, "--input", "x"], "NAME=FILE"),
            ([self.net, "--input", f"x={self.net}"], ".npy"),
            ([self.net, "--data", self.path("nowhere")], "nowhere"),
            ([self.net, "--dim", "N"], "NAME=N"),
            ([self.net, "--shadow", "reference"], "TARGET:PERCENT%"),
        ):
            with self.subTest(words=words):
                self.assertIn(text, self.run_tenon("run", *words, expect=FAILED).stderr)
        document = self.json("run", self.path("none.tir"), expect=FAILED)
        self.assertEqual(set(document), {"error", "message"})

    def test_broken_text_gives_line_and_column(self):
        Path(self.net).write_text("graph @g(%x: f32[2]) -> %y {\n  %y = Relu %z\n}\n")
        self.assertRegex(self.run_tenon("run", self.net, expect=FAILED).stderr, r"net\.tir:2:\d+")

    def test_bench_has_the_keys_that_scripts_read(self):
        document = self.json("bench", self.net, "--target", "reference", "--threads", "1", "--runs", "3")
        for key in ("median_ms", "min_ms", "p90_ms", "compile_ms", "peak_rss_mb", "arena_bytes", "arena_lower_bound_bytes",
                    "flops"):
            self.assertIsInstance(document[key], (int, float), key)
        self.assertLessEqual(document["min_ms"], document["median_ms"])
        self.assertLessEqual(document["median_ms"], document["p90_ms"])
        self.assertEqual(document["threads"], 1)

    def test_bench_counts_flops(self):
        Path(self.net).write_text("graph @g(%a: f32[3,4], %b: f32[4,5]) -> %c { %c = MatMul %a, %b }\n")
        self.assertEqual(self.json("bench", self.net, "--runs", "1")["flops"], 2 * 3 * 4 * 5)

    def test_opt_runs_the_passes_that_are_named(self):
        done = self.run_tenon("opt", self.net, "--passes", "remove-identity,remove-dead")
        self.assertNotIn("Identity", done.stdout)
        self.assertIn("Relu", done.stdout)
        again = self.run_tenon("opt", "-", "--passes", "remove-dead", stdin=done.stdout)
        self.assertEqual(again.stdout, done.stdout)
        dumped = self.run_tenon("opt", self.net, "--passes", "remove-identity", "--dump-after", "remove-identity")
        self.assertIn("# after remove-identity", dumped.stderr)
        self.assertIn("digraph", self.run_tenon("opt", self.net, "--dot").stdout)
        self.assertIn("remove-dead", self.run_tenon("opt", "--list").stdout)

    def test_opt_shows_the_program_of_a_graph_and_its_memory(self):
        Path(self.net).write_text("graph @g(%a: f32[3,4], %b: f32[4,5]) -> %d { %c = MatMul %a, %b\n %d = Neg %c\n }\n")
        program, picture = self.path("program.txt"), self.path("memory.html")
        self.run_tenon("opt", self.net, "--program", program, "--memory", picture)
        self.assertIn("call MatMul(in %a, in %b, out %d)", Path(program).read_text())
        self.assertIn("Memory of g", Path(picture).read_text())
        Path(self.net).write_text("graph @g(%a: f32[N,4]) -> %c { %b = Neg %a\n %c = Softmax %b\n }\n")
        refused = self.run_tenon("opt", self.net, "--memory", self.path("none.html"), expect=FAILED)
        self.assertIn("no picture of the memory", refused.stderr)
        self.assertFalse(Path(self.path("none.html")).exists())
        Path(self.net).write_text("graph @g(%a: f32[3,4]) -> %c { %c = NonZero %a }\n")
        self.run_tenon("opt", self.net, "--program", program)
        self.assertIn("no program has NonZero", Path(program).read_text())

    def test_run_tells_which_operators_are_in_no_program(self):
        Path(self.net).write_text('graph @g(%a: f32[3,4]) -> %c { %b = Relu %a\n %c = NonZero %b "where" }\n')
        done = self.run_tenon("run", "-v", self.net, "--target", "reference")
        self.assertIn("1 operators in 1 programs, 1 on the host", done.stderr)
        self.assertIn('NonZero "where" is in no program: the shape of its result depends on data', done.stderr)

    def test_opt_refuses_an_unknown_pass(self):
        done = self.run_tenon("opt", self.net, "--passes", "remove-ded", expect=FAILED)
        self.assertIn("remove-dead", done.stderr)  # the hint
        self.json("opt", self.net, "--passes", "none", expect=FAILED)

    def test_compile_writes_an_artefact_that_runs(self):
        artefact = self.path("net.tenon")
        self.json("compile", self.net, "--target", "reference", "-o", artefact)
        plain, loaded = (self.json("run", model, "--seed", "3")["outputs"] for model in (self.net, artefact))
        self.assertEqual(plain, loaded)
        for words in (["--no-fallback"], ["--layout", "m=CN"], ["--shadow", "reference:1%"]):
            self.assertIn("is a compiled artefact", self.run_tenon("run", artefact, *words, expect=FAILED).stderr)
        # Described by a file of the user's own: it need not exist when the artefact runs, and may be given again.
        board = Path(self.path("board.yaml"))
        board.write_text("tenon_target: 1\nname: board\nplugin: reference\n")
        self.json("compile", self.net, "--target", board, "-o", artefact)
        self.assertEqual(self.json("run", artefact, "--target", board, "--seed", "3")["outputs"], plain)
        board.unlink()
        self.assertEqual(self.json("run", artefact, "--seed", "3")["outputs"], plain)
        self.assertIn("nothing of it is compiled for target 'reference', only for [board]",
                      self.run_tenon("run", artefact, "--target", "reference", expect=FAILED).stderr)
        for command in (["opt"], ["quantise", "--random", "1"]):
            self.assertIn("is a compiled artefact", self.run_tenon(*command, artefact, expect=FAILED).stderr)
        data = bytearray(Path(artefact).read_bytes())
        data[-1] ^= 1
        Path(artefact).write_bytes(data)
        self.assertIn("hash", self.run_tenon("run", artefact, expect=FAILED).stderr)

    def test_target_check_asks_the_plugin_that_it_is_given(self):
        board = Path(self.path("board.yaml"))
        board.write_text("tenon_target: 1\nname: board\nplugin: template\n")
        self.assertTrue(self.json("target", "check", board)["opened"])
        board.write_text("tenon_target: 1\nname: board\nplugin: template\nmemories: {scrach: {size: 1 KiB}}\n")
        self.assertIn("board.yaml:4:12: unknown key \"scrach\" in 'memories'; did you mean 'scratch'?",
                      self.run_tenon("target", "check", board, expect=FAILED).stderr)
        self.assertIn("--plugin", self.run_tenon("target", "check", board, "--plugin", self.path("none.so"),
                                                 expect=FAILED).stderr)

    def test_target_check(self):
        good = self.path("good.yaml")
        Path(good).write_text("tenon_target: 1\nname: good\nplugin: reference\n")
        self.run_tenon("target", "check", good)
        Path(good).write_text("tenon_target: 1\nname: good\nplugin: reference\nclok: 1 MHz\n")
        self.assertRegex(self.run_tenon("target", "check", good, expect=FAILED).stderr, r"good\.yaml:4:1")
        with open(good, "w") as file:
            file.write("tenon_target: 1\nname: good\nplugin: reference\noperators: {Reluu: none}\n")
        self.assertIn("good.yaml:4:13: neither Tenon nor plugin 'reference' defines an operator 'Reluu'; did you mean 'Relu'?",
                      self.run_tenon("target", "check", good, expect=FAILED).stderr)
        with open(good, "w") as file:
            file.write("tenon_target: 1\nname: good\nplugin: elsewhere\noperators: {elsewhere.Own: none}\n")
        self.assertIn("operators are not checked: no plugin 'elsewhere'", self.run_tenon("target", "check", good).stdout)
        self.assertFalse(self.json("target", "check", good)["operators_checked"])

    def test_conformance_counts_and_filters(self):
        folder = os.environ.get("TENON_CASES")
        if not folder:
            self.skipTest("no ONNX backend cases on this machine")
        document = self.json("conformance", folder, "--target", "reference", "--filter", "^test_(relu|tanh)$")
        self.assertEqual((document["passed"], document["failed"]), (2, 0))
        self.assertEqual({case["ran_on"] for case in document["cases"]}, {"reference"})
        self.run_tenon("conformance", folder, "--filter", "(", expect=FAILED)
        self.run_tenon("conformance", folder, "--filter", "^matches_nothing$", expect=FAILED)
        self.run_tenon("conformance", self.path("nowhere"), expect=FAILED)


if __name__ == "__main__":
    unittest.main()
