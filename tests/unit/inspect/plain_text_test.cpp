// SPDX-License-Identifier: Apache-2.0
#include "inspect/plain_text.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "inspect/configuration.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect::plain_text_test {
namespace {

Rating rating(std::string_view text, std::string_view name) {
  Rating worst = Rating::ok;
  for (const ContentFacts& found : rate_text(*memory_source(text), name))
    worst = std::max(worst, found.rating);
  return worst;
}

}  // namespace

TEST_CASE("inspect: a text is read by the parser of its kind") {
  CHECK(text_kind("a/config.JSON") == TextKind::json);
  CHECK(text_kind("README.md") == TextKind::prose);
  CHECK(text_kind("LICENSE-MIT") == TextKind::prose);
  CHECK(text_kind("requirements.txt") == TextKind::program);
  CHECK(text_kind("train.conf") == TextKind::other);
  CHECK(text_kind("site.pth") == TextKind::other);
}

TEST_CASE("inspect: JSON passes if no text in it is a name of code") {
  for (const std::string_view text :
       {R"({"a": [1, 2.5, NaN, null, "text"], "torch_dtype": "torch.bfloat16"})",
        R"({"file": "model-00001.safetensors"})", R"({"id2label": {"0": "os.system"}})",
        R"({"weight_map": {"a.weight": "model.bin"}})", R"({"v": "4.31.0.dev0"})",
        R"({"url": "https://example.org/x.y"})", R"J({"license": "MIT (Expat)"})J",
        R"({"chat_template": "{{ m.content }}"})"})
    CHECK_MESSAGE(rating(text, "config.json") == Rating::ok, text);
  for (const std::string_view text :
       {"{", "{} {}", R"({"a": "package.module"})", R"({"a": "module:function"})", R"({"a": "own/code.py"})",
        R"({"auto_map": {"AutoModel": "modeling_own.Model"}})", R"({"a": "owner/code--module.Class"})",
        R"({"loader_module": "evil"})", R"({"a": "${oc.env:X}"})", R"({"a": "$import os"})",
        R"J({"a": "eval(x)"})J", R"J({"a": "exec (bytes ([1]))"})J", R"J({"a": "open ('x', 'w')"})J",
        R"({"__kind__": "instance"})", R"({"filters": [{"id": "pickle"}]})", R"({"url": "http://a';rm x'"})",
        R"({"ignore": {"_target_": "own.Net"}})", R"J({"a": "{\"_target_\": \"own.Net\"}"})J",
        R"({"class_name": "Lambda"})"})
    CHECK_MESSAGE(rating(text, "config.json") == Rating::unknown, text);
  for (const std::string_view text :
       {R"({"_target_": "os.system"})", R"({"\u005ftarget_": "os.system"})", R"({"type": "os.system"})",
        R"({"chat_template": "{{ x.__globals__ }}"})"})
    CHECK_MESSAGE(rating(text, "config.json") == Rating::dangerous, text);
}

TEST_CASE("inspect: files of a known kind have special keys") {
  CHECK(rating(R"([{"type": "sentence_transformers.models.Pooling"}])", "modules.json") == Rating::ok);
  CHECK(rating(R"([{"type": "own.Pooling"}])", "modules.json") == Rating::unknown);
  CHECK(rating(R"({"unet": ["diffusers", "UNet"]})", "model_index.json") == Rating::ok);
  CHECK(rating(R"({"unet": ["evil", "UNet"]})", "model_index.json") == Rating::unknown);
  CHECK(
      rating(
          R"({"model": {"merges": ["a.b c"], "vocab": {"x": 1}}, "added_tokens": [{"content": "os.system"}]})",
          "tokenizer.json") == Rating::ok);
}

TEST_CASE("inspect: YAML is read with its tags, anchors and documents") {
  for (const std::string_view text : {"a: 1\n# !!python/name:os.system\n", "b: !!python/tuple [0.9, 0.99]\n",
                                      "---\na: 1\n---\nb: x\n", "a: &x {b: 1}\nc: *x\n"})
    CHECK_MESSAGE(rating(text, "a.yaml") == Rating::ok, text);
  for (const std::string_view text : {"a: !!python/object:own.Config {}\n", "a: !apply:f []\n", "a: [\n",
                                      "# a\rb: 1\n", "x: &k _target_\n*k : own.Net\n", "a: b\xc2\x85\n",
                                      "id2label: &a {x: own.f}\nb: *a\n", "a: own.Net\n", "? [a]\n: 1\n"})
    CHECK_MESSAGE(rating(text, "a.yaml") == Rating::unknown, text);
  for (const std::string_view text :
       {"a: !!python/object/apply:os.system [x]\n", "a: !<tag:yaml.org,2002:%70ython/name:os.system> ''\n",
        "%TAG !p! tag:yaml.org,2002:py\n---\na: !p!thon/name:os.system ''\n",
        "a: 'x\n  # y'\nb: !!python/name:os.system ''\n", "_target_: >-\n  os.system\n"})
    CHECK_MESSAGE(rating(text, "a.yaml") == Rating::dangerous, text);
}

TEST_CASE("inspect: what people read passes, with the front matter of a model card") {
  CHECK(rating("---\nlicense: mit\ntags: [a.b]\n---\n# A model\n\nfrom transformers import x\n${HOME}\n",
               "README.md") == Rating::ok);
  CHECK(rating("---\nx: !!python/name:os.system ''\n---\n# A model\n", "README.md") == Rating::dangerous);
  CHECK(rating("a: !!python/name:os.system ''\n", "settings.txt") == Rating::dangerous);
  CHECK(rating("${open('x')}\n", "prompt.txt") == Rating::unknown);
  CHECK(rating("[loggers]\nkeys=root\n", "logging.ini") == Rating::unknown);
  CHECK(rating("[handler_h]\nclass=FileHandler\n", "logging.txt") == Rating::unknown);
  CHECK(rating("[the holder]\n\nof the rights\n", "notes.txt") == Rating::ok);
  CHECK(rating("[boosting: gbdt]\n[objective: binary]\n", "model.txt") == Rating::ok);
  for (const char* blank : {"", " ", "\t", "\xc2\xa0", "\xe2\x80\x83"})
    CHECK(rating(std::string("utt1 touch x |") + blank + "\n", "feats.txt") == Rating::unknown);
  CHECK(rating("a | b\n", "notes.txt") == Rating::ok);
  CHECK(rating("a: !!python/name:os.system ''\n", "no_ending") == Rating::dangerous);
}

}  // namespace msprobe::inspect::plain_text_test
