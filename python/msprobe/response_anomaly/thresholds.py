# SPDX-License-Identifier: Apache-2.0
"""The thresholds of the detector, from config.yaml."""

_WIDEST = 16384  # tokens of a window: work grows with its square


def _whole(least, most=2 ** 31):
    return (lambda value: type(value) is int and least <= value <= most,
            "a whole number of at least %d%s" % (least, " and at most %d" % most if most == _WIDEST else ""))


_SHARE = (lambda value: 0 <= value <= 1, "a number from 0 to 1")
_LOGARITHM = (lambda value: value <= 0, "0 or a negative number")

# (key in the file, attribute, requirement for the value).
_KEYS = [
    ("window_size", "window_size", _whole(1, _WIDEST)),
    ("stride", "stride", _whole(1)),
    ("rare_character.explogp_sum_thresh", "rare_explogp_sum_thresh", _SHARE),
    ("rare_character.category_thresh", "rare_cat_thresh", _whole(0)),
    ("rare_character.top1_logp_thresh", "rare_top1_logp_thresh", _LOGARITHM),
    ("garbled.top1_logp_thresh", "garbled_top1_logp_thresh", _LOGARITHM),
    ("garbled.window_ratio", "garbled_window_ratio", _SHARE),
    ("garbled.window_thresh", "garbled_window_thresh", _whole(0)),
    ("repetition.trajectory.n", "repet_n", _whole(1)),
    ("repetition.trajectory.distinct_n_thresh", "repet_distinct_n_thresh", _SHARE),
    ("repetition.trajectory.logp_thresh", "repet_logp_thresh", _LOGARITHM),
    ("repetition.acf.acf_threshold", "acf_threshold", _SHARE),
    ("repetition.acf.logp_thresh", "acf_logp_thresh", _LOGARITHM),
    ("repetition.single_window_thresh", "single_window_thresh", _whole(0)),
    ("repetition.multi_window_thresh", "multi_window_thresh", _whole(0)),
]

# As the native part takes them.
NAMES = ("window_size", "stride", "rare_explogp_sum_thresh", "rare_cat_thresh", "rare_top1_logp_thresh",
         "garbled_top1_logp_thresh", "garbled_window_ratio", "garbled_window_thresh", "repet_n",
         "repet_distinct_n_thresh", "repet_logp_thresh", "w_std_threshold", "acf_threshold", "acf_harmonic_threshold",
         "acf_logp_thresh", "acf_min_period", "acf_max_period", "linalg_logp_thresh", "single_window_thresh",
         "multi_window_thresh")


def read(path):
    """Attribute -> threshold. A ValueError names the error and its place."""
    with open(path, encoding="utf-8") as file:
        values = _numbers(path, file)
    found = {}
    for key, attribute, (fits, what) in _KEYS:
        value = values.get(key)
        if not isinstance(value, (int, float)) or not fits(value):
            raise ValueError("%s: %s must be %s, but is %s" % (path, key, what, "missing" if value is None else value))
        found[attribute] = value
    if found["window_size"] < found["stride"]:
        raise ValueError("%s: window_size (%d) must be at least stride (%d)" % (path, found["window_size"], found["stride"]))
    found.update(w_std_threshold=1e-12, acf_harmonic_threshold=found["acf_threshold"] // 2, acf_min_period=3,
                 acf_max_period=found["window_size"] // 3, linalg_logp_thresh=0.9)
    return found


def _numbers(path, lines):
    """"section.key" -> value, of that part of YAML which thresholds need: keys, numbers, indentation, remarks."""
    values = {}
    sections = []  # (indentation, name)
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].rstrip()
        key, colon, value = (part.strip() for part in text.partition(":"))
        if not key or text == "---":
            continue
        if not colon:
            raise ValueError("%s: line %d is not a key with a value: %.80s" % (path, number, text))
        indentation = len(text) - len(text.lstrip())
        while sections and sections[-1][0] >= indentation:
            sections.pop()
        if value:
            values[".".join([name for _, name in sections] + [key])] = _number(value)
        else:
            sections.append((indentation, key))
    return values


def _number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
