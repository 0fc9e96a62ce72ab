// SPDX-License-Identifier: Apache-2.0
#include "monitor/trend/tags.hpp"

#include <string>

#include "dump/names.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

using Fields = std::vector<std::string_view>;

std::string joined(const Fields& fields, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) text += '.';
    text += fields[i];
  }
  return text;
}

bool is_layer(const Fields& fields, std::size_t at, std::size_t end) {
  return at + 1 < end && !fields[at].empty() && !dump::is_digits(fields[at]) &&
         dump::is_digits(fields[at + 1]);
}

}  // namespace

std::vector<TrendTag> series_tags(std::string_view target) {
  std::vector<TrendTag> tags;
  const Fields fields = split(target, ".");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].empty() || dump::is_digits(fields[i])) continue;
    tags.push_back({std::string(fields[i]), "module"});
    if (is_layer(fields, i, fields.size())) tags.push_back({joined(fields, i, i + 2), "layer"});
  }
  return tags;
}

std::vector<TrendTag> dump_tags(std::string_view target) {
  std::vector<TrendTag> tags;
  const Fields fields = split(target, ".");
  if (fields.size() < 3) return {{std::string(target), "function"}};
  const std::size_t end = fields.size() - 2;
  tags.push_back({joined(fields, end, fields.size()), "index"});
  if (fields[end] == "parameters") tags.push_back({"parameters", "default"});
  if (fields[0] != "Module" && fields[0] != "Cell") {
    tags.push_back({joined(fields, 0, end), "function"});
    return tags;
  }
  tags.push_back({std::string(fields[0]), "default"});
  std::size_t begin = 1;  // beginning of the words outside of layers
  for (std::size_t i = 1; i <= end; ++i) {
    const bool layer = is_layer(fields, i, end);
    if (i < end && !layer) continue;
    if (i > begin) tags.push_back({joined(fields, begin, i), "module"});
    if (!layer) break;
    tags.push_back({joined(fields, i, i + 2), "layer"});
    begin = i + 2;
    ++i;
  }
  return tags;
}

}  // namespace msprobe::monitor
