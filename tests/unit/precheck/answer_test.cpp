// SPDX-License-Identifier: Apache-2.0
#include "precheck/runner/answer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <variant>
#include <vector>

#include "precheck/runner/process.hpp"
#include "precheck/runner/tags.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::precheck_answer_test {

using namespace msprobe::precheck;

namespace {

/// `In answers:` of data/precheck/PROTOCOL.md: tag, example, what it is in Python.
std::vector<std::array<std::string, 3>> rows_of_the_page() {
  std::ifstream file(test::in_source("data/precheck/PROTOCOL.md"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text.erase(0, text.find("\nIn answers:\n"));
  const std::regex row("\\n\\| `(\\w+)` \\| .+ \\| `(.+)` \\| `(.+)` \\|");
  std::vector<std::array<std::string, 3>> rows;
  for (std::sregex_iterator at(text.begin(), text.end(), row); at != std::sregex_iterator(); ++at)
    rows.push_back({(*at)[1], (*at)[2], (*at)[3]});
  return rows;
}

std::string python_text(const CallOutput& output) {
  if (const auto* tensor = std::get_if<TensorOutput>(&output.value))
    return fmt::format("tensor({}, [{}])", tensor::info(tensor->dtype).name, fmt::join(tensor->shape, ", "));
  if (const auto* scalar = std::get_if<ScalarOutput>(&output.value)) return scalar->repr;
  if (const auto* other = std::get_if<OtherOutput>(&output.value)) return other->type;
  const auto* list = std::get_if<CallOutput::List>(&output.value);
  if (list == nullptr) return "None";
  std::vector<std::string> elements;
  for (const CallOutput& element : list->elements) elements.push_back(python_text(element));
  return fmt::format("{}{}{}", list->tuple ? '(' : '[', fmt::join(elements, ", "), list->tuple ? ')' : ']');
}

CallAnswer answer_of(const std::string& value) {
  return read_answer(R"({"id": 1, "forward": {"reference": )" + value + "}}", 1, SharedFile());
}

}  // namespace

TEST_CASE("an answer may have each value of the protocol's page") {
  const auto rows = rows_of_the_page();
  CHECK(rows.size() == 8);
  for (const auto& [tag, example, meaning] : rows) {
    CAPTURE(example);
    const CallAnswer answer = answer_of(example);
    REQUIRE(answer.forward);
    // For the tag `other` the answer has only the name of the type.
    const std::string expected = tag == "other" ? "<class 'set'>" : meaning;
    CHECK(python_text(answer.forward->reference) == expected);
  }
}

TEST_CASE("a tensor that is nowhere in the file of outputs is refused") {
  SharedFile outputs;
  outputs.append(std::vector<std::byte>(8));
  const auto answer = [&](const char* offset) {
    return read_answer(
        fmt::format(R"({{"id": 1, "forward": {{"reference": {{"tensor": ["float32", [2], {}]}}}}}})", offset),
        1, outputs);
  };
  CHECK(std::get<TensorOutput>(answer("0").forward->reference.value).bytes.size() == 8);
  for (const char* offset : {"1", "8", "4096", "9223372036854775807"}) {
    CAPTURE(offset);
    CHECK_THROWS_WITH_AS(answer(offset), "sent a malformed answer: a tensor is not where it should be",
                         RunnerLost);
  }
}

TEST_CASE("an answer with the tag of an argument, or with an unknown one, is refused") {
  std::vector<std::string_view> tags(kTagNames.begin(), kTagNames.end());
  for (const auto& [tag, example, meaning] : rows_of_the_page()) std::erase(tags, tag);
  tags.push_back("t");
  for (const std::string_view tag : tags) {
    CAPTURE(tag);
    CHECK_THROWS_WITH_AS(answer_of(fmt::format(R"({{"{}": true}})", tag)),
                         "sent a malformed answer: an output has an unknown kind", RunnerLost);
  }
}

}  // namespace msprobe::precheck_answer_test
