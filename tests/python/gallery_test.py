# SPDX-License-Identifier: Apache-2.0
"""Each mistake of docs/gallery.md is named as the page shows it, and the page shows the mistake as it is in the script."""

import pathlib
import re
import sys

from helpers import *
from msprobe.core import command

sys.dont_write_bytecode = True
DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
sys.path.insert(0, str(DOCS / "gallery"))

if command.find() is None:
    print("SKIPPED: the command was not built")
    sys.exit(77)

import make
from prepared import Script


# From PyTorch 2.0 on one call takes the norms of all gradients. It is the one that golden alone runs, and is named.
IS_NEWER = not torch.__version__.startswith("1.")
NEWER = {"clipping": ("Torch._foreach_norm.0.forward", "removed")}


def run_script(script, *arguments):
    done = Script(script, *arguments).end()
    assert done.returncode == 0, done.stderr


def without_numbers(text):
    """Errors, whose digits may be others on another machine."""
    return re.sub(r"\d\.\d+e[+-]\d+|\d+\.\d{3,}", "N", text)


class Gallery(Case):
    def test_every_script_is_on_the_page(self):
        scripts = {path.stem for path in (DOCS / "gallery").glob("*.py")} - {"make", "recording"}
        self.assertEqual(scripts, set(make.MISTAKES))

    def test_answers(self):
        scratch = pathlib.Path(self.folder)
        page = (DOCS / "gallery.md").read_text("utf-8")
        shown = re.findall(r"^## ([^\n]+)\n\n```python\n(.+?)\n```\n\n```\n(.+?)\n```\n", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(shown), len(make.MISTAKES))
        self.assertTrue(page.startswith(make.INTRODUCTION))
        for (name, expected), (title, code, answer) in zip(make.MISTAKES.items(), shown):
            with self.subTest(name):
                self.assertEqual((title, code), make.code_of(name))
                runs = make.record(name, scratch, run_script)
                self.assertEqual(make.named(command.find(), *runs), NEWER.get(name, expected) if IS_NEWER else expected)
                if torch.__version__.startswith("1.13."):  # the page's; another one has other operations in an optimizer
                    said = make.answer(command.find(), *runs)
                    self.assertEqual(without_numbers(said), without_numbers(answer), "scripts/gallery makes the page again")


if __name__ == "__main__":
    unittest.main()
