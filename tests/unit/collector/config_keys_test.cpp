// SPDX-License-Identifier: Apache-2.0
#include "collector/config_keys.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "unit/support/source_root.hpp"

namespace msprobe::collector_config_keys_test {

using namespace msprobe::collector;

namespace {

/// The keys of the first table after a line of a page, with the text of their values.
std::map<std::string, std::string, std::less<>> documented(const std::string& file, const std::string& line) {
  std::ifstream page(test::in_source(file));
  std::string text;
  while (std::getline(page, text) && text != line) {
  }
  while (std::getline(page, text) && !text.starts_with("| key |")) {
  }
  std::getline(page, text);  // |---|---|---|
  std::map<std::string, std::string, std::less<>> keys;
  std::vector<std::string> row;
  while (std::getline(page, text) && text.starts_with("|")) {
    const std::size_t values = text.find('|', 1) + 1;
    const std::string names = text.substr(1, values - 2);
    const std::string shown = text.substr(values, text.find('|', values) - values);
    const std::regex name("`([a-z_]+)`");
    const std::vector<std::string> found(std::sregex_token_iterator(names.begin(), names.end(), name, 1), {});
    if (!found.empty()) row = found;  // else the row goes on with more values
    for (const std::string& key : row) keys[key] += shown;
  }
  return keys;
}

void check_table(const std::string& file, const std::string& line, KeyGroup place) {
  CAPTURE(line);
  const auto keys = documented(file, line);
  CHECK(keys.size() == keys_of(place).size());
  for (const ConfigKey& key : keys_of(place)) {
    CAPTURE(key.name);
    const auto found = keys.find(key.name);
    REQUIRE(found != keys.end());
    const std::string& values = found->second;
    for (const std::string_view choice : key.choices) CHECK(values.find(choice) != std::string::npos);
    const nlohmann::json fallback = nlohmann::json::parse(key.fallback);
    if (fallback.empty() || fallback == "") continue;  // absent, or a list without elements
    const std::string shown = fallback.is_string() ? fallback.get<std::string>() : std::string(key.fallback);
    const std::size_t at = values.find("`" + shown + "`");
    CHECK(at != std::string::npos);
    if (!key.choices.empty()) CHECK(at == values.find('`'));  // the default comes first
  }
}

}  // namespace

TEST_CASE("the pages have every key with its choices and its default") {
  check_table("docs/settings.md", "# Settings of the recorder", KeyGroup::common);
  check_table("docs/settings.md", "and, in a section with the name of the task:", KeyGroup::task);
  check_table("docs/collector.md", "## load: a module on the inputs of another run", KeyGroup::load);
  check_table("docs/training-checks.md", "## free_benchmark: calls that are not stable",
              KeyGroup::free_benchmark);
  check_table("docs/training-checks.md", "## grad_probe: the gradients of each step", KeyGroup::grad_probe);
  check_table("docs/collector-mindspore.md", "## Level L2: kernels", KeyGroup::kernels);
}

TEST_CASE("a key stands once in its place") {
  for (const KeyGroup place : {KeyGroup::common, KeyGroup::task, KeyGroup::load, KeyGroup::free_benchmark,
                               KeyGroup::grad_probe, KeyGroup::kernels}) {
    std::map<std::string_view, int> times;
    for (const ConfigKey& key : keys_of(place)) CHECK(++times[key.name] == 1);
  }
}

}  // namespace msprobe::collector_config_keys_test
