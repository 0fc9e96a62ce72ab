# SPDX-License-Identifier: Apache-2.0
"""Ill answers of language models: what the Python tool says of them, and input of any kind."""

import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import response_cases

from msprobe import response_anomaly
from msprobe.core.common import log
from msprobe.response_anomaly import analyze_output_anomaly
from msprobe.response_anomaly.detector import ILLDetector

FOLDER = pathlib.Path(response_anomaly.__file__).parent
CONFIG = str(FOLDER / "configs" / "config.yaml")
CERTAIN = {1: -0.01, 2: -5.0}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="msprobe-test-")
        log._said.clear()

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        pathlib.Path(path).write_text(text, encoding="utf-8")
        return path

    def toy(self):
        return ILLDetector(*response_cases.write_files(self.folder, CONFIG))

    def told(self, function):
        """(result, what was written to stderr)"""
        with contextlib.redirect_stderr(io.StringIO()) as told:
            return function(), told.getvalue()


class Answers(Case):
    def test_are_those_of_the_python_tool(self):
        path = pathlib.Path(__file__).with_name("response_answers.json")
        expected = json.loads(path.read_text(encoding="utf-8"))
        toy = self.toy()
        seen = set()
        for name, settings, model, (rows, tokens) in response_cases.all_cases():
            detector = toy if settings is None else self.toy()
            for key, value in response_cases.SETTINGS.get(settings, {}).items():
                setattr(detector, key, value)
            with self.subTest(name):
                kind = expected[name]
                self.assertEqual(detector.run([rows], [tokens], [model]), [[kind != 0, kind]])
                result = detector.detector(rows, tokens, model)
                self.assertEqual((result.is_ill, result.ill_type), (kind != 0, kind))
            seen.add(name)
        self.assertEqual(seen, set(expected))

    def test_of_several_requests_do_not_depend_on_each_other(self):
        wide, narrow = [dict(CERTAIN)] * 80, [{1: -0.1}] * 80
        nan = [{1: math.nan}]
        self.assertEqual(analyze_output_anomaly([wide, narrow, nan, []], [[1] * 80, [1] * 80, [1], []], None),
                         [[False, 0], [False, 0], [True, 4], [False, 0]])
        detector = self.toy()
        flat = [dict.fromkeys(range(20), -7.0)] * 80
        self.assertEqual(detector.run([narrow, flat], [[1] * 80] * 2), [[False, 0], [True, 2]])
        self.assertIsNone(detector.topk)

    def test_the_width_can_be_given(self):
        detector = self.toy()
        rows = [{number: math.log(0.03) for number in range(20)}] * 40  # 0.6 together, and of many categories
        tokens = [1] * 39 + [response_cases.END]
        self.assertEqual(detector.run([rows], [tokens], ["toy-1b"]), [[False, 0]])
        detector.topk = 10
        self.assertEqual(detector.run([rows], [tokens], ["toy-1b"]), [[True, 1]])


class AnyInput(Case):
    def test_never_ends_what_serves(self):
        class Hostile(dict):
            def __float__(self):
                raise RuntimeError("no number")

        class Changing:
            def __init__(self, row):
                self.row = row

            def __float__(self):
                self.row.clear()
                return -0.5

        changing = {}
        changing.update({1: Changing(changing), 2: -1.0, 3: -2.0})
        cleared = dict(CERTAIN)
        for rows, tokens in (([{}], [1]), ([None], [1]), ([{1: "a"}], [1]), ([{1: None}] * 70, [1] * 70), ([[1, 2]], [1]),
                             ([{1: Hostile()}], [1]), ([{1: -0.1}] * 70, [[]] * 70), (3, [1]), ([CERTAIN], 3),
                             ("text", "text"), ([CERTAIN], object()), ([{1: Changing(cleared)}, cleared], [1, 1])):
            log._said.clear()
            result, told = self.told(lambda: analyze_output_anomaly([rows], [tokens], [None]))
            self.assertEqual(result, [[False, 0]])
            self.assertRegex(told, r"^msprobe: warning: response_anomaly: an answer is not judged: .+\n$")
        for rows, tokens in ((None, [1]), ([CERTAIN], None), ([changing], [1]), ([CERTAIN] * 3, (1, 2 ** 80, -1)),
                             ([{2 ** 80: -0.1, -5: -2.0, "x": -3.0}] * 70, ["x"] * 70), ([CERTAIN] * 70, [0.5] * 70)):
            result, told = self.told(lambda: analyze_output_anomaly([rows], [tokens], [None]))
            self.assertEqual((result, told), ([[False, 0]], ""))

    def test_one_line_tells_of_many(self):
        _, told = self.told(lambda: analyze_output_anomaly([[{}]] * 50, [[1]] * 50, None))
        self.assertEqual(told.count("\n"), 1)

    def test_a_call_that_is_wrong(self):
        with self.assertRaises(TypeError):
            analyze_output_anomaly(None, None, None)
        for arguments in (([[CERTAIN]], [[1], [1]], None), ([[CERTAIN]] * 2, [[1], [1]], ["toy"])):
            with self.assertRaisesRegex(IndexError, "has 1 items, but tokens has 2"):
                analyze_output_anomaly(*arguments)

    def test_models_of_any_kind(self):
        detector = self.toy()
        for model in (3, [], {"model_name": None}, {}, "", b"toy", object()):
            result, told = self.told(lambda: detector.run([[CERTAIN]], [[response_cases.END]], [model]))
            self.assertEqual((result, told), ([[False, 0]], ""))

    def test_tables_that_lack_tokens(self):
        detector = self.toy()
        rows = [{-1: -5.0, 10 ** 7: -5.0, 2 ** 70: -5.0, "x": -5.0}] * 10
        self.assertEqual(detector.run([rows], [[1] * 9 + [response_cases.END]], ["toy-1b"]), [[False, 0]])

    def test_long_answers(self):
        begin = time.monotonic()
        self.assertEqual(analyze_output_anomaly([[{1: -0.3, 2: -2.0}] * 200_000], [list(range(200_000))], None), [[False, 0]])
        detector = self.toy()
        detector.window_size = detector.stride = 16384
        rows = [{1: -0.1 * (at % 7) / 7, 2: -3.0} for at in range(20000)]
        self.assertEqual(detector.run([rows], [[at % 7 for at in range(20000)]]), [[False, 0]])
        self.assertLess(time.monotonic() - begin, 60)
        detector.window_size = 10 ** 9
        self.assertIn("16384", self.told(lambda: detector.run([rows], [[1] * 20000]))[1])

    def test_threads_share_a_detector(self):
        import concurrent.futures
        detector = self.toy()
        ill = [dict.fromkeys(range(5), -7.0)] * 100
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda at: detector.run([ill if at % 2 else [CERTAIN] * 100], [list(range(100))]),
                                    range(60)))
        self.assertEqual(results, [[[True, 2]] if at % 2 else [[False, 0]] for at in range(60)])


class Files(Case):
    def detector(self, config=CONFIG, models='{"toy": {"eos": 1}}', table=None):
        if table is not None:
            self.write("tables/toy_5.json", table)
        self.write("tables/README", "")
        return ILLDetector(config, self.write("models.json", models), os.path.join(self.folder, "tables"))

    def test_lie_where_programs_look(self):
        for name in ("configs/config.yaml", "configs/mtype_config.json", "tools/gen_model_config.py"):
            self.assertTrue((FOLDER / name).is_file())
        self.assertTrue((FOLDER / "token2category").is_dir())

    def test_thresholds_of_any_kind(self):
        text = pathlib.Path(CONFIG).read_text(encoding="utf-8")
        for old, new, message in (("stride: 64", "stride: 640", r"window_size \(128\) must be at least stride \(640\)"),
                                  ("stride: 64", "stride: x", "stride must be a whole number of at least 1, but is x"),
                                  ("window_size: 128", "window_size: 1e9", "window_size must be a whole number"),
                                  ("window_size: 128", "window_size: 99999", "at most 16384, but is 99999"),
                                  ("category_thresh: 2", "", "rare_character.category_thresh must be .* is missing"),
                                  ("window_ratio: 0.2", "window_ratio: nan", "garbled.window_ratio must be a number from 0"),
                                  ("top1_logp_thresh: -5", "top1_logp_thresh: 5", "must be 0 or a negative number, but is 5"),
                                  ("repetition:", "repetition", "line .* is not a key with a value: repetition")):
            self.assertIn(old, text)
            path = self.write("config.yaml", text.replace(old, new, 1))
            with self.assertRaisesRegex(ValueError, "^%s: .*%s" % (path, message)):
                self.detector(path)
        with self.assertRaisesRegex(OSError, "nothing.yaml"):
            self.detector(os.path.join(self.folder, "nothing.yaml"))

    def test_tables_of_any_kind(self):
        for table in ("", "[]", '{"x": "latin"}', '{"1": 3}', '{"99999999999": "latin"}'):
            log._said.clear()
            detector = self.detector(table=table)
            result, told = self.told(lambda: detector.run([[CERTAIN]], [[1]], ["toy"]))
            self.assertEqual(result, [[False, 0]])
            self.assertIn("toy_5.json: ", told)
        with self.assertRaisesRegex(ValueError, "models.json: "):
            self.detector(models="[")
        with self.assertRaisesRegex(ValueError, "models.json: "):
            self.detector(models='{"toy": 3}')
        with self.assertRaises(OSError):
            ILLDetector(CONFIG, self.write("m.json", "{}"), os.path.join(self.folder, "nothing"))

    def test_a_table_that_is_written_anew_is_read_anew(self):
        rows = [{1: -4.0, 2: -4.0, 3: -4.0}] * 10
        detector = self.detector(table='{"1": "thai", "2": "latin", "3": "thai"}')
        self.assertEqual(detector.run([rows], [[1] * 10], ["toy"]), [[False, 0]])
        detector = self.detector(table='{"1": "thai", "2": "latin", "3": "other"}')
        self.assertEqual(detector.run([rows], [[1] * 10], ["toy"]), [[True, 1]])


class Tables(Case):
    def test_categories_follow_from_unicode(self):
        from msprobe.response_anomaly.tools.gen_model_config import category_of
        for text, category in (("word", "english_latin"), (" word", "english_latin_space"), ("\u0120", "whitespace"),
                               ("\u4e2d\u6587", "chinese_cjk"), ("\u3072\u3089", "japanese_hiragana"), ("\ud55c", "korean_hangul"),
                               ("\u0436\u0438", "cyrillic"), ("\u0e44\u0e17", "thai"), ("\u0639", "arabic"),
                               ("\u0915", "devanagari"), ("12", "numbers"), ("...", "punctuation"), ("+", "symbol_cluster"),
                               ("\U0001f600", "emoji"), ("\u0001", "control_bytes"), ("\ufffd", "symbol_cluster"),
                               ("\U0001d400", "mathematics"), ("\ufe0f", "variation_selector"), ("", "other"),
                               ("\u03b1", "other"), ("\u0436+.+\u0436+.", "gibberish_symbols")):
            self.assertEqual(category_of(text), category, ascii(text))

    @unittest.skipUnless(importlib.util.find_spec("tokenizers"), "tokenizers is not installed")
    def test_a_model_of_ones_own(self):
        import tokenizers
        model = tokenizers.Tokenizer(tokenizers.models.WordLevel({"one": 0, "\u4e2d": 1, "?": 2}, "?"))
        os.makedirs(self.folder + "/My.Model/work")
        model.save(self.folder + "/My.Model/tokenizer.json")
        self.write("My.Model/config.json", '{"eos_token_id": 2}')
        subprocess.run([sys.executable, str(FOLDER / "tools" / "gen_model_config.py"), "--model-path", ".."], check=True,
                       cwd=self.folder + "/My.Model/work", stdout=subprocess.DEVNULL)
        detector = ILLDetector(CONFIG, self.folder + "/My.Model/configs/mtype_config.json",
                               self.folder + "/My.Model/token2category")
        self.assertEqual(detector.mtype2vocab, {"my-model": 3})
        table = json.loads(pathlib.Path(self.folder, "My.Model/token2category/my-model_3.json").read_text(encoding="utf-8"))
        self.assertEqual(table, {"0": "english_latin", "1": "chinese_cjk", "2": "punctuation"})

    def test_what_is_missing_is_named(self):
        done = subprocess.run([sys.executable, str(FOLDER / "tools" / "gen_model_config.py"), "--model-path", self.folder],
                              check=False, cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "tokenizer.json: |tokenizers is needed")


if __name__ == "__main__":
    unittest.main()
