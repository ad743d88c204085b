"""`tenon certify` on good and bad plugins (tests/fixtures/plugins). TENON names the program, TENON_FIXTURES the folder
of the plugins of tests, TENON_PLUGINS that of the real ones,
TENON_CASES that of the ONNX cases."""
import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import command_line
from command_line import DONE, FAILED, USAGE

FIXTURES = os.environ["TENON_FIXTURES"]
PLUGINS = os.environ["TENON_PLUGINS"]
CASES = os.environ.get("TENON_CASES", "")


class Certify(command_line.Test):
    def setUp(self):
        super().setUp()
        # Fixtures are checked for a few operators only, without ONNX cases.
        self.few = ("--filter", "^(Abs|Add|Exp|Neg|Relu)$")

    def describe(self, plugin, target=None, more=""):
        path = Path(self.path(f"{target or plugin}.yaml"))
        path.write_text(f"tenon_target: 1\nname: {target or plugin}\nplugin: {plugin}\n{more}")
        return str(path)

    def certify(self, plugin, *more, expect=FAILED, file=None, **env):
        """The checks by group (without the target) and name."""
        target = self.describe(plugin.replace("_", "-"))
        report = self.json("certify", file or f"{FIXTURES}/{plugin}.so", "--target", target, *self.few, *more,
                           expect=expect, **{"TENON_PLUGIN_TIMEOUT": "2", **env})
        self.assertEqual(report["certified"], expect == DONE)
        self.assertEqual(report["failed"], len([c for c in report["checks"] if c["status"] == "failed"]))
        for check in report["checks"]:
            self.assertTrue(check["sentence"], check)
        return {(c["group"].split(", ")[-1], c["name"]): c for c in report["checks"]}

    def assert_fails(self, checks, *where, text=""):
        """These checks fail, and no other."""
        self.assertEqual({key for key, c in checks.items() if c["status"] == "failed"}, set(where), checks)
        self.assertIn(text, checks[where[0]]["sentence"])

    def test_the_template_is_certified_with_one_operator_and_with_nothing_to_run(self):
        report = self.json("certify", f"{PLUGINS}/tenon_template.so", *self.few)
        self.assertTrue(report["certified"])
        ran = {c["name"]: c for c in report["checks"] if c["group"] == "template, operators"}
        self.assertEqual((ran["Abs"]["status"], ran["Add"]["status"]), ("passed", "not applicable"), ran)
        self.assertIn("instances run and agree with the reference", ran["Abs"]["sentence"])

        report = self.json("certify", f"{PLUGINS}/tenon_template.so", "--filter", "^(Add|Relu)$")
        self.assertTrue(report["certified"])
        self.assertTrue(any("there is nothing to run" in c["sentence"] for c in report["checks"]))

    def test_time_in_which_all_is_stopped_is_not_the_plugins(self):
        words = [command_line.TENON, "certify", f"{FIXTURES}/throwing.so", "--target", self.describe("throwing"),
                 "--filter", "^nothing$", "--timeout", "3"]
        env = dict(os.environ, FIXTURE_SLEEP_MS="1000")
        run = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
        # Its backend is opened in each of several tasks, which takes a second each.
        for line in run.stderr:
            if "target" in line:
                break
        time.sleep(1.5)
        os.killpg(run.pid, signal.SIGSTOP)
        time.sleep(4)
        os.killpg(run.pid, signal.SIGCONT)
        text, _ = run.communicate()
        self.assertEqual(run.returncode, DONE, text)

    def test_operators_at_a_time_are_reported_in_their_order(self):
        one, four = (self.json("certify", f"{PLUGINS}/tenon_reference.so", *self.few, "--jobs", jobs)["checks"]
                     for jobs in ("1", "4"))
        self.assertEqual(one, four)

    def test_the_reference_as_a_plugin_is_certified(self):
        report = self.json("certify", f"{PLUGINS}/tenon_reference.so", *self.few)
        checks = {c["name"]: c for c in report["checks"]}
        self.assertTrue(report["certified"])
        for name in ("Add", "repeatable", "memory", "threads", "stored", "inputs", "bytes"):
            self.assertEqual(checks[name]["status"], "passed", checks[name])

    def test_inspecting_tells_what_the_note_says(self):
        report = self.json("certify", f"{FIXTURES}/c_only.so", "--inspect", BAD_CONSTRUCTOR="abort")
        self.assertEqual((report["name"], report["vendor"], report["version"], report["targets"]),
                         ("c-only", "Tenon tests", "1.0", ["c-only", "c-only-b"]))
        self.assertEqual((report["interface"], report["layout_hash"], report["build_id"]), ("1.0", None, "c99"))
        self.assertEqual((report["taken"], report["side"], report["reason"]), (True, "plain", None))
        # None of its code runs.
        self.assertTrue(self.json("certify", f"{FIXTURES}/bad.so", "--inspect", BAD_CONSTRUCTOR="abort")["taken"])
        said = self.run_tenon("certify", f"{PLUGINS}/tenon_template.so", "--inspect").stdout
        self.assertIn("taken:       yes, by its C++ side", said)

    def test_inspecting_gives_the_first_reason_against_it(self):
        other = self.json("certify", f"{FIXTURES}/no_rtti.so", "--inspect", expect=FAILED)
        self.assertEqual((other["name"], other["taken"]), ("no-rtti", False))
        self.assertIn("its layout hash is another one", other["reason"])
        plain = self.json("certify", f"{FIXTURES}/no_rtti_plain.so", "--inspect")
        self.assertEqual((plain["taken"], plain["side"]), (True, "plain"))
        self.assertIn("its layout hash is another one", plain["reason"])
        for file, text in ((f"{FIXTURES}/no_note.so", "note"), (self.path("none.so"), "cannot open plugin"),
                           (__file__, "not an ELF file"), (FIXTURES, "a folder")):
            with self.subTest(file=file):
                self.assertIn(text, self.json("certify", file, "--inspect", expect=FAILED)["reason"])

    def test_a_file_that_is_no_plugin_fails_by_its_note(self):
        self.assert_fails(self.certify("no_note"), ("file", "note"))
        self.assert_fails(self.certify("bad", file=__file__), ("file", "note"), text="not an ELF file")
        cut = self.path("cut.so")
        Path(cut).write_bytes(Path(f"{FIXTURES}/bad.so").read_bytes()[:2000])
        self.assert_fails(self.certify("bad", file=cut), ("file", "note"), text="cut off")

    def test_a_file_that_all_may_write_fails_by_its_permissions(self):
        open_to_all = self.path("open.so")
        shutil.copy(f"{FIXTURES}/device.so", open_to_all)
        os.chmod(open_to_all, 0o777)
        self.assert_fails(self.certify("device", file=open_to_all), ("file", "permissions"), text="chmod o-w")
        checks = self.certify("device", "--insecure", file=open_to_all, expect=DONE)
        self.assertEqual(checks["file", "permissions"]["status"], "not applicable")

    def test_symbols(self):
        self.assert_fails(self.certify("c_only"), ("file", "symbols"),
                          text="1 symbol besides 'tenon_plugin_v1' exported, the first is 'fixture_bias'")
        self.assert_fails(self.certify("no_symbol"), ("file", "symbols"), ("file", "opens"), text="is not exported")
        self.assert_fails(self.certify("unresolved"), ("file", "opens"), text="nowhere_to_be_found")

    def test_what_happens_at_load(self):
        for way, text in (("abort", "signal 6"), ("crash", "signal 11"), ("exit", "ended without an answer")):
            with self.subTest(way=way):
                self.assert_fails(self.certify("bad", BAD_CONSTRUCTOR=way), ("file", "opens"), text=text)
        self.assert_fails(self.certify("bad", "--timeout", "1", BAD_CONSTRUCTOR="loop"), ("file", "opens"),
                          text="no answer after 1 s")
        # Its printed output is not taken for the report.
        self.assert_fails(self.certify("bad", BAD_CONSTRUCTOR="chatter", BAD_QUERY="fail"), ("file", "starts"),
                          text="the card is not in its slot")
        self.assert_fails(self.certify("bad", BAD_NULL_SLOT="compile"), ("file", "starts"), text="slot 'compile'")
        self.assert_fails(self.certify("no_rtti"), ("file", "interface"), ("file", "starts"), text="layout hash")

    def test_targets(self):
        unknown = self.json("certify", f"{FIXTURES}/device.so", *self.few, expect=FAILED)
        self.assertEqual((unknown["targets"], unknown["checks"][-1]["name"]), (["device"], "description"))
        self.assertIn("no target 'device'", unknown["checks"][-1]["sentence"])
        other = self.json("certify", f"{FIXTURES}/device.so", "--target", self.describe("acme", "other"), *self.few,
                          expect=FAILED)
        self.assertIn("is described for plugin 'acme', this one is 'device'", other["checks"][-1]["sentence"])
        self.assert_fails(self.certify("device", FIXTURE_THROW="open_device"), ("target", "backend"),
                          text="out of paper")
        self.assert_fails(self.certify("device", FIXTURE_THROW="copy_to_host"), ("target", "device"),
                          ("operators", "Neg"), text="out of paper")

    def test_a_good_device_is_certified(self):
        checks = self.certify("device", expect=DONE)
        self.assertEqual(checks["operators", "Neg"]["status"], "passed")
        self.assertEqual(checks["operators", "Add"]["status"], "not applicable")
        self.assertIn("the fixture knows Neg of f32 alone", checks["operators", "Add"]["sentence"])

    def test_models_of_the_plugins_maker(self):
        model = self.path("model.tir")
        Path(model).write_text("graph @g(%x: f32[N,10]) -> %y { %a = Abs %x\n %y = Neg %a }")
        check = self.certify("device", "--model", model, expect=DONE)["models", model]
        self.assertEqual(check["status"], "passed")
        self.assertIn("1 of 2 operators on the target; as on the reference, repeatable, memory, threads, stored, ",
                      check["sentence"])
        check = self.certify("faulty", "--model", model, FIXTURE_FAULT="kernel")["models", model]
        self.assertEqual(check["status"], "failed")
        self.assertIn("differs from the reference", check["sentence"])
        self.assert_fails(self.certify("device", "--model", self.path("none.tir")), ("models", self.path("none.tir")),
                          text="there is no file")
        Path(model).write_text("graph @g(%x: f32[N,10]) -> %y { %y = Abs %x }")
        check = self.certify("device", "--model", model, expect=DONE)["models", model]
        self.assertEqual(check["status"], "not applicable")
        self.assertIn("0 of 1 operator on the target: the fixture knows Neg of f32 alone", check["sentence"])

    def test_operands_that_are_known_are_among_those_that_are_asked_for(self):
        check = self.certify("throwing", expect=DONE, FIXTURE_THROW="layout_kernels",
                             FIXTURE_REFUSE="operands")["operators", "Add"]
        self.assertRegex(check["sentence"], r"^1?\d of \d+ instances run and .* refused: an operand is not known")

    def test_operators_that_are_taken_and_do_not_run(self):
        for slot in ("compile", "run"):
            with self.subTest(slot=slot):
                self.assert_fails(self.certify("device", FIXTURE_THROW=slot), ("operators", "Neg"), text="out of paper")
        checks = self.certify("c_twin")
        self.assertIn("differs from the reference", checks["operators", "Add"]["sentence"])
        self.assertEqual(checks["operators", "Relu"]["status"], "passed")
        checks = self.certify("faulty", FIXTURE_FAULT="kernel")
        self.assertEqual(checks["operators", "Abs"]["status"], "failed")
        self.assertEqual(checks["operators", "Exp"]["status"], "passed")

    def test_what_stores_must_load_too(self):
        checks = self.certify("throwing", FIXTURE_BREAK="load", FIXTURE_THROW="layout_kernels")
        self.assert_fails(checks, ("executables", "stored"), text="bytes that load() says it cannot take (target "
                          "'throwing' does not store compiled code): artefacts would be written")
        self.assertIn("let serialize() be unsupported, too", checks["executables", "stored"]["sentence"])

    def test_what_is_stored_must_load(self):
        self.assert_fails(self.certify("device", FIXTURE_THROW="load_executable"), ("executables", "stored"),
                          text="out of paper")

    def test_files_of_others_that_a_plugin_writes_to_or_closes(self):
        self.few = ("--filter", "^(Abs|Neg)$", "--jobs", "1", "--timeout", "3")
        no_answer = "something else than an answer came from the case's process"
        late = "no answer after 3 s"
        for scribble, of_abs, of_neg in (("log", no_answer, no_answer), ("answer", no_answer, no_answer),
                                         ("half", late, no_answer), ("close", late, late)):
            with self.subTest(scribble=scribble):
                checks = self.certify("throwing", FIXTURE_SCRIBBLE=scribble, FIXTURE_THROW="layout_kernels")
                failed = {key: c["sentence"] for key, c in checks.items() if c["status"] == "failed"}
                self.assertIn(of_abs, failed.pop(("operators", "Abs")))
                self.assertIn(of_neg, failed.pop(("operators", "Neg")))
                # Which aspects the processes were at when they were ended is chance.
                self.assertLessEqual({group for group, _ in failed}, {"executables", "errors"}, failed)
                self.assertIn("of operators", " ".join(failed.values()))

    @unittest.skipUnless(CASES, "no ONNX backend cases on this machine")
    def test_cases(self):
        def cases(plugin, pattern, *more, expect=DONE, **env):
            report = self.json("certify", f"{FIXTURES}/{plugin}.so", "--target",
                               self.describe(plugin.replace("_", "-")), "--data", CASES, "--filter", pattern,
                               *more, expect=expect, **env)
            return {c["name"]: c for c in report["checks"] if c["group"].endswith("ONNX cases")}

        checks = cases("device", "^test_(neg|relu)$")
        self.assertEqual(checks["with fallback"]["sentence"], "2 passed, 0 failed, 0 unsupported")
        self.assertEqual(checks["without fallback"]["sentence"], "1 passed, 0 failed, 1 unsupported")
        checks = cases("faulty", "^test_(abs|exp)$", expect=FAILED, FIXTURE_FAULT="kernel")
        for name in ("with fallback", "without fallback"):
            self.assertEqual(checks[name]["status"], "failed")
            self.assertIn("1 passed, 1 failed, 0 unsupported; the first is node/test_abs", checks[name]["sentence"])

    def test_data_without_cases_fails(self):
        self.assert_fails(self.certify("device", "--data", self.folder.name), ("ONNX cases", "all"),
                          text="no ONNX backend case")

    def test_wrong_use_is_said(self):
        self.assertIn("no regular expression",
                      self.run_tenon("certify", f"{FIXTURES}/bad.so", "--filter", "(", expect=FAILED).stderr)
        for words in (["certify"], ["certify", "x.so", "--inspect", "--filter", "x"],
                      ["certify", "x.so", "--timeout", "0"]):
            with self.subTest(words=words):
                self.run_tenon(*words, expect=USAGE)
        said = self.run_tenon("certify", f"{PLUGINS}/tenon_template.so", *self.few)
        self.assertIn("operators ...", said.stderr)
        self.assertIn("certified: ", said.stdout)
        self.assertIn("none failed", self.run_tenon("certify", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
