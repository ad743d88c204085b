"""`tenon new-plugin`: what it writes and what it refuses. That it builds, runs and passes its tests where Tenon is
installed is a step of install_consumer. TENON names the program, TENON_SOURCE this tree."""
import os
import unittest
from pathlib import Path

import command_line
from command_line import FAILED, USAGE

SOURCE = Path(os.environ["TENON_SOURCE"])


class NewPlugin(command_line.Test):
    def make(self, name, *more, folder="made", expect=0):
        return self.json("new-plugin", name, self.path(folder), *more, expect=expect)

    def refusal(self, name, folder="made"):
        return self.make(name, folder=folder, expect=FAILED)["message"]

    def test_the_template_under_another_name(self):
        made = self.make("acme-npu2", "--vendor", 'Acme "N" Inc.')
        folder = Path(self.path("made"))
        self.assertEqual(made["name"], "acme-npu2")
        self.assertEqual(sorted(made["files"]), sorted(str(file) for file in folder.iterdir()))
        self.assertEqual({file.name for file in folder.iterdir()},
                         {"CMakeLists.txt", "acme-npu2_plugin.cpp", "acme-npu2.yaml", "tenon-target.schema.json",
                          "model.tir"})
        code = (folder / "acme-npu2_plugin.cpp").read_text()
        self.assertIn('TENON_PLUGIN(AcmeNpu2Plugin, "acme-npu2", "Acme \\"N\\" Inc.", "0.1.0", "acme-npu2")', code)
        target = (folder / "acme-npu2.yaml").read_text()
        self.assertIn("\nname: acme-npu2 ", target)
        self.assertIn("\nplugin: acme-npu2\n", target)
        self.assertIn("tenon_add_plugin(acme-npu2 SRCS acme-npu2_plugin.cpp", (folder / "CMakeLists.txt").read_text())
        for file in folder.iterdir():
            self.assertNotIn("template", file.read_text().lower(), file)
        self.assertEqual((folder / "model.tir").read_text(), (SOURCE / "plugins/template/model.tir").read_text())

    def test_a_description_is_sound_before_anything_is_built(self):
        self.make("acme")
        said = self.run_tenon("target", "check", self.path("made/acme.yaml")).stdout
        self.assertIn("target 'acme' of plugin 'acme' is sound", said)

    def test_an_empty_folder_will_do_and_folders_are_made(self):
        Path(self.path("empty")).mkdir()
        self.make("acme", folder="empty")
        self.make("acme", folder="one/more")
        self.assertTrue(Path(self.path("one/more/acme.yaml")).exists())
        said = self.run_tenon("new-plugin", "acme", self.path("said")).stdout
        self.assertIn(self.path("said/acme_plugin.cpp"), said)
        self.assertIn("ctest --test-dir", said)

    def test_nothing_is_written_over(self):
        self.make("acme")
        before = {file: file.read_bytes() for file in Path(self.path("made")).iterdir()}
        self.assertIn("has files in it", self.refusal("other"))
        self.assertEqual({file: file.read_bytes() for file in Path(self.path("made")).iterdir()}, before)
        Path(self.path("file")).write_text("mine")
        self.assertIn("file", self.refusal("acme", folder="file"))
        self.assertEqual(Path(self.path("file")).read_text(), "mine")

    def test_names_that_cannot_be(self):
        for name in ("Acme", "2acme", "-acme", "acme npu", "../acme", "acme.so", "a" * 65, "äcme", ""):
            with self.subTest(name=name):
                if name.startswith("-"):
                    self.run_tenon("new-plugin", name, self.path("made"), expect=USAGE)
                else:
                    self.assertIn(f"'{name}' cannot be the name of a plugin", self.refusal(name))
                self.assertFalse(Path(self.path("made")).exists())
        self.run_tenon("new-plugin", "acme", expect=USAGE)
        self.make("a" * 64)

    def test_a_vendor_is_one_line(self):
        said = self.make("acme", "--vendor", "two\nlines", expect=FAILED)["message"]
        self.assertIn("more than a line", said)
        self.assertFalse(Path(self.path("made")).exists())


if __name__ == "__main__":
    unittest.main()
