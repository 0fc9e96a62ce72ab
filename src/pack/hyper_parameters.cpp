// SPDX-License-Identifier: Apache-2.0
#include "pack/hyper_parameters.hpp"

#include <algorithm>
#include <utility>

#include "pack/shell_script.hpp"
#include "pack/yaml.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of a script or a YAML file
constexpr std::size_t kMostNames = std::size_t{64} << 20;      // bytes of all names
constexpr std::size_t kMostLines = 100;                        // of a script, which warnings name

/// Is a list of this one value?
bool is_plain_list(const PackValue& list) {
  return std::ranges::none_of(list.items(), [](const PackValue& item) {
    return item.is(PackValue::Type::null) || item.is(PackValue::Type::map);
  });
}

class ParameterFlattener {
 public:
  explicit ParameterFlattener(const std::string& file) : file_(file) {}

  void add(const std::string& name, const PackValue& value) {
    const auto below = [&](const std::string& part) { return name.empty() ? part : name + "." + part; };
    if (value.is(PackValue::Type::map)) {
      for (std::size_t i = 0; i < value.items().size(); ++i)
        add(spent(below(value.keys()[i])), value.items()[i]);
    } else if (value.is(PackValue::Type::list) && !is_plain_list(value)) {
      for (std::size_t i = 0; i < value.items().size(); ++i)
        add(spent(below(std::to_string(i))), value.items()[i]);
    } else if (!value.is(PackValue::Type::null) && !name.empty()) {
      out_.set(name, value);
    }
  }
  FlatMap take() { return std::move(out_); }

 private:
  const std::string& spent(const std::string& name) {
    spent_ += name.size();
    if (spent_ > kMostNames)
      throw FormatError(display(file_), "refused: its nested names are too long in total");
    return name;
  }

  const std::string& file_;
  FlatMap out_;
  std::size_t spent_ = 0;
};

}  // namespace

FlatMap flatten(const PackValue& value, const std::string& file) {
  ParameterFlattener flattener(file);
  flattener.add("", value);
  return flattener.take();
}

bool is_parameter_file(std::string_view path) {
  return path.ends_with(".sh") || path.ends_with(".yaml") || path.ends_with(".yml");
}

FlatMap read_parameter_file(const std::string& path, std::vector<std::string>& warnings) {
  const std::string text = read_all(*open_file(path), kMostBytes);
  if (!path.ends_with(".sh")) return flatten(read_yaml(text, path), path);
  const ShellScript script = read_script(text, path);
  const std::vector<std::size_t>& lines = script.not_understood;
  for (std::size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
    warnings.push_back(display(path) + ": not understood: line " + std::to_string(lines[i]));
  if (lines.size() > kMostLines)
    warnings.push_back(display(path) + ": not understood: " + std::to_string(lines.size() - kMostLines) +
                       " more lines");
  return options_of(script);
}

}  // namespace msprobe::pack
