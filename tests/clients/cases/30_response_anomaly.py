# SPDX-License-Identifier: Apache-2.0
"""AISBench, MindIE-Motor, vllm-ascend: answers of language models are judged."""
import os, sys; sys.path.insert(0, os.path.dirname(__file__))
from lib import *
import math, pathlib
text = [{at % 50: -0.3, 60: -2.0, 61: -3.0} for at in range(300)], [at * 7 % 53 for at in range(300)]
guessed = [{at: -6.0, at + 1: -6.5, at + 2: -7.0} for at in range(300)], list(range(300))
circling = [{at % 7: -0.02 * (at % 7), 60: -5.0, 61: -6.0} for at in range(900)], [at % 7 for at in range(900)]
broken = [{1: -0.1, 2: math.nan}] * 5, [1] * 5
answers = [text, guessed, circling, broken, ([], [])]
def once():  # AISBench
    from msprobe.response_anomaly import analyze_output_anomaly
    return [analyze_output_anomaly([rows], [tokens], ["Qwen3-30B-A3B"])[0] for rows, tokens in answers]
attempt("analyze_output_anomaly", once)
def files():
    import msprobe.response_anomaly as package
    base = pathlib.Path(package.__file__).resolve().parent
    return [str(base / "configs" / "config.yaml"), str(base / "configs" / "mtype_config.json"), str(base / "token2category")]
def shared():  # a later AISBench, MindIE-Motor: one detector for all, in a thread
    from concurrent.futures import ThreadPoolExecutor
    from msprobe.response_anomaly.detector import ILLDetector
    detector = ILLDetector(*files())
    def run(one):
        if hasattr(detector, "topk"):
            detector.topk = None
        return detector.run([one[0]], [one[1]], [None])
    with ThreadPoolExecutor(1) as pool:
        return list(pool.map(run, answers[:4]))
attempt("one detector", shared)
def windows():  # vllm-ascend: a window a call
    from msprobe.response_anomaly.detector import ILLDetector
    detector = ILLDetector(*files())
    detector.window_size = detector.stride = 128
    detector.garbled_window_thresh = detector.single_window_thresh = detector.multi_window_thresh = 0
    found = [detector.detector(rows[:128], tokens[:128], {"model_name": "Qwen3-30B-A3B"}) for rows, tokens in answers]
    return [(getattr(one, "is_ill", None), one.ill_type) for one in found]
attempt("windows", windows)
