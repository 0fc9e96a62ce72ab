#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files that describe a model to the detector of anomalous answers: ../configs/mtype_config.json, and the
category of each token in ../token2category, relative to the current directory.

Categories follow from the Unicode properties of a token's characters. Nothing from the model's folder is executed:
the package tokenizers reads its tokenizer.json.
"""

import argparse
import collections
import json
import os
import re
import unicodedata

# A word in a character's name shows its script, even for marks and half-width forms.
_SCRIPTS = [("CJK", "chinese_cjk"), ("HIRAGANA", "japanese_hiragana"), ("HANGUL", "korean_hangul"), ("THAI", "thai"),
            ("ARABIC", "arabic"), ("CYRILLIC", "cyrillic"), ("DEVANAGARI", "devanagari"), ("LATIN", "latin"),
            ("VARIATION", "variation_selector")]
_CLASSES = {"P": "punctuation", "S": "symbol", "C": "control_bytes", "Z": "whitespace"}
_SPACES = "\t\n\r\f\v\u2581\u0120\u010a"  # also the forms in which tokenizers write a space and a new line
_EMOJI = range(0x1F300, 0x1FB00)
# In these scripts marks and symbols are not noise.
_WRITTEN = {"latin", "chinese_cjk", "japanese_hiragana", "korean_hangul", "thai", "punctuation", "numbers"}


def main():
    parser = argparse.ArgumentParser(prog="gen_model_config", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model-path", required=True, metavar="DIR", help="folder of the model, with its tokenizer.json")
    parser.add_argument("--model-name", help="as model_configs will have it; the folder's name")
    arguments = parser.parse_args()
    folder = os.path.abspath(arguments.model_path)
    name = re.sub(r"[-_.]", "-", (arguments.model_name or os.path.basename(folder)).lower())
    try:
        from tokenizers import Tokenizer
    except ImportError:
        parser.error("the package tokenizers is needed: pip install tokenizers")
    try:
        tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    except Exception as error:  # the package has no special exception class for this
        parser.error("%s/tokenizer.json: %s" % (folder, error))
    _write("../configs/mtype_config.json", {name: _ends(folder)})
    _write("../token2category/%s_%d.json" % (name, tokenizer.get_vocab_size(with_added_tokens=False)),
           {number: category_of(text) for number, text in _texts(tokenizer)})


def _texts(tokenizer):
    """Yields (token, its text), ordered by the tokens' numbers."""
    decode = tokenizer.decoder.decode if tokenizer.decoder is not None else "".join
    for token, number in sorted(tokenizer.get_vocab(with_added_tokens=True).items(), key=lambda one: one[1]):
        yield number, decode([token])


def _ends(folder):
    """Returns the numbers of the tokens with which texts begin and end."""
    for name in ("generation_config.json", "config.json"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            continue
        if found.get("eos_token_id") is not None:
            return {"bos": found.get("bos_token_id"), "eos": found["eos_token_id"]}
    raise SystemExit("gen_model_config: no eos_token_id in generation_config.json or config.json of %s" % folder)


def _write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)
    print("%s is written" % os.path.abspath(path))


def category_of(text):
    """Returns the category of most characters; in a tie, of the first ones."""
    counts = collections.Counter(map(_class_of, text)) or collections.Counter(["other"])
    total = sum(counts.values())
    most = max(counts, key=counts.get)
    if most == "symbol" and counts["symbol"] > 0.6 * total:
        return "symbol_cluster"
    if most not in _WRITTEN and total >= 3 and counts["symbol"] + counts["punctuation"] > 0.6 * total:
        return "gibberish_symbols"
    if most == "latin":
        return "english_latin_space" if counts["whitespace"] else "english_latin"
    return most


def _class_of(character):
    """Returns the script of a character, or its other category."""
    name = unicodedata.name(character, "")
    if character in _SPACES:
        return "whitespace"
    if ord(character) in _EMOJI:
        return "emoji"
    if character.isdigit():
        return "numbers"
    if "MATHEMATICAL" in name or "DOUBLE-STRUCK CAPITAL" in name or "MODIFIER LETTER" in name:
        return "mathematics"
    if "SPACE" in name:
        return "whitespace"
    script = next((category for word, category in _SCRIPTS if word in name), None)
    return script or _CLASSES.get(unicodedata.category(character)[0], "other")


if __name__ == "__main__":
    main()
