# SPDX-License-Identifier: Apache-2.0
"""Made-up answers of a model, for the test of response_anomaly and for what holds it against the Python tool.

all_cases() is the same everywhere: numbers come from a generator with a fixed seed.
"""

import json
import math
import os
import random

CATEGORIES = ["english_latin", "english_latin_space", "punctuation", "whitespace", "chinese_cjk", "cyrillic", "thai",
              "emoji", "other"]
VOCABULARY = 900  # ids from here on are in the table and are not looked at
END = 7
SETTINGS = {
    "narrow": {"window_size": 24, "stride": 24, "garbled_window_thresh": 0, "single_window_thresh": 0,
               "multi_window_thresh": 0},
    "wide": {"window_size": 300, "stride": 77},
    "eager": {"single_window_thresh": 0, "multi_window_thresh": 0},
    "patient": {"garbled_window_thresh": 3, "repet_distinct_n_thresh": 0.9, "repet_n": 5},
    "tiny": {"window_size": 4, "stride": 2, "single_window_thresh": 0, "multi_window_thresh": 0},
}


def write_files(folder, config):
    """The files of a model "toy-1b" beside a copy of the thresholds; what ILLDetector is given."""
    os.makedirs(os.path.join(folder, "token2category"), exist_ok=True)
    with open(os.path.join(folder, "mtype_config.json"), "w", encoding="utf-8") as file:
        json.dump({"toy-1b": {"bos": 1, "eos": [END, 8]}, "unknown-7b": {"bos": 1, "eos": 5}}, file)
    draw = random.Random(99)
    table = {str(number): draw.choice(CATEGORIES) for number in range(VOCABULARY + 100)}
    with open(os.path.join(folder, "token2category", "toy-1b_%d.json" % VOCABULARY), "w", encoding="utf-8") as file:
        json.dump(table, file)
    return config, os.path.join(folder, "mtype_config.json"), os.path.join(folder, "token2category")


def row(draw, top, width, rest):
    """`width` tokens: the first has `top`, the others share `rest` of what is left of the probability."""
    others = sorted((draw.random() for _ in range(width - 1)), reverse=True)
    share = max(1e-12, (1 - math.exp(top)) * rest) / (sum(others) or 1)
    ids = draw.sample(range(VOCABULARY + 50), width)
    return dict(zip(ids, [top] + [min(top, math.log(max(1e-300, other * share))) for other in others]))


def answer(seed, length, width=5, top=lambda draw, at: -draw.expovariate(2), rest=lambda draw, at: 0.9,
           token=lambda draw, at: draw.randrange(VOCABULARY)):
    draw = random.Random(seed)
    tokens = [token(draw, at) for at in range(length)]
    return [row(draw, top(draw, at), width, rest(draw, at)) for at in range(length)], tokens


def repeated(seed, length, period, begin=0, noise=1e-3, low=-0.15, width=5):
    """From `begin` on one block again and again, with the certainty that models have in it."""
    draw = random.Random(seed)
    block = [(draw.randrange(VOCABULARY), low * draw.random()) for _ in range(period)]
    return answer(seed + 1, length, width,
                  lambda draw, at: block[at % period][1] - noise * draw.random() if at >= begin else -draw.expovariate(2),
                  token=lambda draw, at: block[at % period][0] if at >= begin else draw.randrange(VOCABULARY))


def garbled(seed, length, share, top=-5.5, width=5, spare=0.02):
    """That share of the positions is a guess among many tokens."""
    return answer(seed, length, width,
                  lambda draw, at: top - draw.random() if draw.random() < share else -draw.expovariate(3),
                  lambda draw, at: spare)


def _plain():
    for seed in range(4):
        yield "text %d" % seed, answer(seed, 60 + 250 * seed, 5 + 5 * seed)
    yield "certain text", answer(5, 500, top=lambda draw, at: -0.01 * draw.random())
    yield "one token each", answer(6, 300, 1)
    yield "few tokens", answer(7, 3)
    for length in (63, 64, 65, 127, 128, 129, 200, 1030, 1100):
        yield "a word again, %d" % length, repeated(length, length, 1)
    for period in (2, 3, 5, 7, 16, 31, 40, 43, 64, 100, 200):
        yield "a block of %d again" % period, repeated(period, 900, period)
        yield "a block of %d again, later" % period, repeated(period, 900, period, begin=333)
        yield "a block of %d again, long" % period, repeated(period, 2500, period)
        yield "a block of %d again, uncertain" % period, repeated(period, 900, period, low=-0.5)
    for share in (0.05, 0.15, 0.3, 0.9):
        yield "garbled, %g" % share, garbled(int(100 * share), 300, share)
        yield "garbled in short, %g" % share, garbled(int(100 * share), 40, share)
        yield "rare, %g" % share, garbled(int(1000 * share), 300, share / 10, -7)
    rows, tokens = garbled(77, 300, 0.9)
    yield "garbled after text", (answer(8, 300)[0] + rows, answer(8, 300)[1] + tokens)
    yield "garbled, with repetition before", (repeated(9, 900, 3)[0] + rows, repeated(9, 900, 3)[1] + tokens)
    for value in (math.nan, math.inf, -math.inf):
        rows, tokens = answer(9, 100)
        rows[50] = {1: -0.1, 2: -1.0, 3: -2.0, 4: -3.0, 5: value}
        yield "a value that is %r" % value, (rows, tokens)
    rows, tokens = answer(10, 100)
    rows[50] = {1: -0.1, 2: -1.0, 3: -2.0, 4: -3.0, 5: -4.0, 6: -math.inf}
    yield "one value more", (rows, tokens)
    rows, tokens = repeated(12, 300, 1)
    yield "fewer figures than tokens", (rows[:150], tokens)
    yield "more figures than tokens", (rows, tokens[:150])
    yield "names as tokens", (rows, ["token %d" % token for token in tokens])
    yield "names of tokens", ([{str(key): value for key, value in one.items()} for one in rows], tokens)
    yield "equal values", ([{at % 7: 0.0, 8: 0.0, 9: 0.0} for at in range(400)], list(range(400)))
    yield "constant values", ([{at % 7: -0.1, 8: -4.0} for at in range(400)], [at % 4 for at in range(400)])
    yield "nothing", ([], [])
    yield "no tokens", (rows, [])


def _spoken(one):
    """That its last token says where the answer ends, so that the model's table is taken."""
    rows, tokens = one
    return rows, tokens[:-1] + [END]


def all_cases():
    """(name, settings by name, model, (figures of each token, tokens))"""
    plain = dict(_plain())
    for name, one in plain.items():
        yield name, None, None, one
    for name in ("text 2", "rare, 0.3", "garbled, 0.3", "garbled, 0.9", "garbled in short, 0.3", "few tokens",
                 "a block of 7 again", "garbled after text"):
        one = plain[name]
        for model in ("toy-1b", "Toy_1B-Chat", {"model_name": "TOY.1b"}, "", "another", 3):
            yield "%s, model %r" % (name, model), None, model, _spoken(one)
        yield name + ", another end", None, "toy-1b", one
        yield name + ", without a table", None, "unknown-7b", (one[0], one[1][:-1] + [5])
    for name in ("text 3", "a word again, 1100", "a block of 7 again", "a block of 40 again, later",
                 "a block of 100 again, long", "garbled, 0.3", "rare, 0.9", "few tokens", "a block of 5 again, uncertain"):
        one = plain[name]
        for settings in SETTINGS:
            yield "%s, %s" % (name, settings), settings, None, one
    for seed in range(60):
        draw = random.Random(1000 + seed)
        period = draw.randrange(1, 90)
        yield "mixture %d" % seed, draw.choice([None, None] + sorted(SETTINGS)), draw.choice([None, "toy-1b"]), _spoken(
            _mixture(seed, draw.randrange(20, 700), period, draw.random() / 5, draw.random() * 0.3, draw.choice((1, 3, 20))))


def _mixture(seed, length, period, uncertain, low, width):
    draw = random.Random(seed)
    block = [(draw.randrange(VOCABULARY), -low * draw.random()) for _ in range(period)]
    return answer(seed, length, width,
                  lambda draw, at: -6.5 * draw.random() if draw.random() < uncertain / 10 else block[at % period][1],
                  lambda draw, at: draw.random(),
                  lambda draw, at: block[at % period][0] if draw.random() > uncertain / 4 else draw.randrange(VOCABULARY))
