import os
import resource
import signal
import stat
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

from forerun.output_file import output_file


class OutputFile(unittest.TestCase):
    def setUp(self) -> None:
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "out.jsonl"

    def write(self, text: str) -> None:
        with output_file(self.path) as out:
            out.write(text)

    def test_is_whole_or_not_there(self) -> None:
        self.write("old\n")
        with self.assertRaises(KeyboardInterrupt), output_file(self.path) as out:
            out.write("new")
            self.assertEqual(self.path.read_text(), "old\n")
            raise KeyboardInterrupt
        self.assertEqual(self.path.read_text(), "old\n")
        self.write("new\n")
        self.assertEqual(self.path.read_text(), "new\n")
        self.assertEqual(os.listdir(self.folder), ["out.jsonl"])

    def test_a_full_disk_leaves_the_earlier_file(self) -> None:
        self.write("old\n")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, before[1]))  # stands for one
        try:
            with self.assertRaises(OSError):
                self.write("x" * 100000)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, ignored)
        self.assertEqual(self.path.read_text(), "old\n")
        self.assertEqual(os.listdir(self.folder), ["out.jsonl"])

    def test_follows_links_and_keeps_permissions(self) -> None:
        before = os.umask(0o027)
        self.addCleanup(os.umask, before)
        self.write("x")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o640)
        self.path.chmod(0o664)
        link = self.folder / "link"
        link.symlink_to("out.jsonl")
        with output_file(link) as out:
            out.write("y")
        self.assertTrue(link.is_symlink())
        self.assertEqual(self.path.read_text(), "y")
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o664)

    def test_writes_what_is_no_plain_file(self) -> None:
        with output_file("/dev/null") as out:
            out.write("x")
        self.assertFalse(os.path.isfile("/dev/null"))


if __name__ == "__main__":
    unittest.main()
