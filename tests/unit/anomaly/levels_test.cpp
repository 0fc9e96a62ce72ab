// SPDX-License-Identifier: Apache-2.0
#include "anomaly/levels.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "dump/member_stream.hpp"
#include "dumps.hpp"
#include "support/byte_source.hpp"
#include "unit/dump/entry_text.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::anomaly_levels_test {

using namespace msprobe;
using namespace msprobe::anomaly;

namespace {

std::string golden(const char* name) {
  return test::in_source(std::string("tests/data/golden/anomaly/") + name);
}

struct Expected {
  std::string before = "none";
  std::string after = "none";
};

std::vector<std::string> statistics(const std::string& in, const std::string& out) {
  const dump::Entry entry = dump::entry_of(R"({"input_args": [)" + in + R"(], "output": [)" + out + "]}");
  std::vector<std::string> lines;
  for (const EntryFinding& finding : find_statistics("e", entry, default_rules()))
    lines.push_back(finding.what + " " + finding.where + ": " + finding.text);
  return lines;
}

std::string half(const std::string& max, const std::string& min = "-1.0") {
  return R"({"type": "torch.Tensor", "dtype": "torch.float16", "Max": )" + max + R"(, "Min": )" + min +
         R"(, "Mean": 0.0, "Norm": 1.0})";
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("levels of the golden entries, before and after the ignore rules") {
  const auto file = open_file(golden("levels.json"));
  const AnomalyRules rules = default_rules();
  std::map<std::string, dump::Entry> entries;
  std::map<std::string, Expected> expected;
  dump::MemberStream stream(*file);
  stream.enter();
  std::string section;
  while (stream.next(section)) {
    stream.enter();
    std::string name;
    while (stream.next(name)) {
      dump::Entry entry;
      stream.entry(entry, name);
      entry.keep();
      if (section == "data") {
        entries[name] = entry;
      } else {
        const auto level = [&](const char* key) {
          const auto node = entry.find(0, key);
          return entry.is(node, dump::NodeKind::null) ? std::string("none") : std::string(entry.text(node));
        };
        expected[name] = {level("before_ignore_rules"), level("level")};
      }
    }
  }
  REQUIRE(entries.size() == 30);
  REQUIRE(expected.size() == 30);
  for (const auto& [name, entry] : entries) {
    CAPTURE(name);
    const AnomalyLevel level = level_of(find_scene(entry, rules));
    CHECK(level_name(level) == expected[name].before);
    CHECK(level_name(is_expected_bad(name, entry, rules) ? AnomalyLevel::none : level) ==
          expected[name].after);
  }
  // The list holds those that are left.
  std::map<std::string, std::string> listed;
  for (const EntryFinding& finding : list_entries(*file, anomaly::AnomalyListing::levels, rules).found)
    listed[finding.name] = level_name(finding.level);
  for (const auto& [name, levels] : expected)
    CHECK((listed.contains(name) ? listed[name] : "none") == levels.after);
}

TEST_CASE("a level names the places of the bad values") {
  const std::string text =
      dump_of({R"("Torch.cat.0.forward": {"input_args": [)" + tensor_json('c') + ", [" + tensor_json('n') +
               R"(]], "input_kwargs": {"a": )" + tensor_json('c') + R"(, "b": )" + tensor_json('i') +
               R"(}, "output": )" + tensors("cn") + "}"});
  const auto found =
      list_entries(*memory_source(text, "dump.json"), anomaly::AnomalyListing::levels, default_rules()).found;
  REQUIRE(found.size() == 1);
  CHECK(found[0].scene == Scene::input_bad_output_bad);
  CHECK(found[0].bad_arguments == std::vector<std::size_t>{1});
  CHECK(found[0].bad_keywords == std::vector<std::string>{"b"});
  CHECK(found[0].bad_outputs == std::vector<std::size_t>{1});
}

TEST_CASE("a sum that may have left its type's range is no Inf, and a mask's values are no jump") {
  const auto scene = [](const std::string& in, const std::string& out) {
    return scene_name(find_scene(
        dump::entry_of(R"({"input_args": [)" + in + R"(], "output": [)" + out + "]}"), default_rules()));
  };
  const auto tensor = [](const std::string& dtype, const std::string& statistics) {
    return R"({"type": "torch.Tensor", "dtype": "torch.)" + dtype + R"(", "shape": [16, 16], )" + statistics +
           "}";
  };
  const std::string scores = tensor("float32", R"("Max": 2.0, "Min": -3.0, "Mean": 0.1, "Norm": 20.0)");
  // masked_fill with torch.finfo.min, as the Python tool and as the collector record it
  for (const char* sums :
       {R"("Mean": -Infinity, "Norm": Infinity)", R"("Mean": -1.6e+38, "Norm": 3.7e+39)"}) {
    const std::string masked =
        tensor("float32", std::string(R"("Max": 2.0, "Min": -3.4028234663852886e+38, )") + sums);
    CAPTURE(masked);
    CHECK(scene(scores, masked).empty());
    CHECK(scene(masked, scores).empty());
    CHECK(statistics(scores + R"(, {"type": "float", "value": -3.4028234663852886e+38})", masked).empty());
  }
  // Another value of a mask is one of the arguments, or round.
  const auto shallow = [&](const std::string& dtype, const std::string& fill) {
    return tensor(dtype, R"("Max": 2.0, "Min": )" + fill + R"(, "Mean": -5e3, "Norm": 113137.0)");
  };
  CHECK(scene(scores, shallow("float32", "-12345.0")) == "NumericalMutationScene");
  CHECK(scene(scores + R"(, {"type": "float", "value": -12345.0})", shallow("float32", "-12345.0")).empty());
  CHECK(scene(scores, shallow("float32", "-10000.0")).empty());
  CHECK(scene(scores, shallow("float32", "-1000000000.0")).empty());
  CHECK(scene(scores, shallow("bfloat16", "-9984.0")).empty());
  CHECK(scene(scores, shallow("float32", "-9984.0")) == "NumericalMutationScene");
  CHECK(scene(scores, shallow("int64", "-10000")) == "NumericalMutationScene");
  // The norm of float16 is float16 with old recorders.
  const std::string half = tensor("float16", R"("Max": 9e3, "Min": -9e3, "Mean": 0.5, "Norm": Infinity)");
  const std::string small = tensor("float16", R"("Max": 90.0, "Min": -90.0, "Mean": 0.5, "Norm": 900.0)");
  CHECK(scene(small, half).empty());
  CHECK(scene(half, small).empty());
  CHECK(statistics(small, half).empty());
  // The elements show growth, and a NaN that Max and Min do not show counts where nothing could overflow.
  const std::string tiny = tensor("float16", R"("Max": 0.5, "Min": -0.5, "Mean": 0.0, "Norm": 4.0)");
  CHECK(scene(tiny, half) == "NumericalMutationScene");
  CHECK(statistics(tiny, half) == Lines{"norm_jump : largest norm 4.0 in, 9000.0 or more out"});
  CHECK(scene(tiny, tensor("float16", R"("Max": 0.5, "Min": -0.5, "Mean": NaN, "Norm": NaN)")) ==
        "InputNormalOutputAnomalyScene");
}

TEST_CASE("statistics: outputs at the largest finite number of their dtype") {
  CHECK(statistics(half("1.0"), half("65504.0")) ==
        Lines{"saturated output.0: Max 65504.0 is the largest float16"});
  CHECK(statistics(half("1.0"), half("3.0", "-65504")) ==
        Lines{"saturated output.0: Min -65504.0 is the lowest float16"});
  CHECK(statistics(half("1.0"), half("65472.0")).empty());
  CHECK(statistics(half("65504.0"), half("65504.0")).empty());  // it came in so
  CHECK(statistics(half("1.0"), "[" + half("1.0") + ", " + half("65504.0") + "]") ==
        Lines{"saturated output.0.1: Max 65504.0 is the largest float16"});
  CHECK(statistics("", R"({"dtype": "BFloat16", "Max": 3.3895313892515355e+38, "Min": 0})").size() == 1);
  CHECK(statistics("", R"({"dtype": "torch.int64", "Max": 65504, "Min": 0})").empty());
}

TEST_CASE("statistics: means and norms that are not finite, and norms that jump") {
  const auto with = [](const std::string& mean, const std::string& norm) {
    return R"({"type": "torch.Tensor", "dtype": "torch.float32", "Max": 1.0, "Min": 0.0, "Mean": )" + mean +
           R"(, "Norm": )" + norm + "}";
  };
  CHECK(statistics(with("0.0", "1.0"), with("NaN", "2.0")) ==
        Lines{"bad_mean output.0: Mean is nan, maximum and minimum are finite"});
  CHECK(statistics(with("0.0", "1.0"), with("0.0", "Infinity")) ==
        Lines{"bad_norm output.0: Norm is inf, maximum and minimum are finite",
              "norm_jump : largest norm 1.0 in, inf out"});
  CHECK(statistics(with("0.0", "1.0"), with("0.0", "100.0")).empty());
  CHECK(statistics(with("0.0", "1.0"), with("0.0", "100.5")) ==
        Lines{"norm_jump : largest norm 1.0 in, 100.5 out"});
  CHECK(statistics(with("0.0", "0.0"), with("0.0", "100.5")).size() == 1);
  // Where maximum and minimum are bad already there is nothing to add.
  CHECK(statistics("", R"({"dtype": "torch.float32", "Max": NaN, "Min": NaN, "Mean": NaN, "Norm": NaN})")
            .empty());
}

}  // namespace msprobe::anomaly_levels_test
