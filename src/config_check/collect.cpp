// SPDX-License-Identifier: Apache-2.0
#include "config_check/collect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "pack/environment.hpp"
#include "pack/hyper_parameters.hpp"
#include "pack/pack_writer.hpp"
#include "pack/several_values.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

constexpr std::size_t kMostFiles = 100;

void check(const CollectOptions& options) {
  if (!options.output.ends_with(".zip")) throw UsageError("-o: the name of a pack must end in .zip");
  if (options.files.size() > kMostFiles)
    throw UsageError(fmt::format("-d takes at most {} files, not {}", kMostFiles, options.files.size()));
  std::error_code error;
  for (const std::string& file : options.files) {
    if (std::filesystem::is_regular_file(file, error) && !pack::is_parameter_file(file))
      throw UsageError(display(file) +
                       ": not a .sh, .yaml or .yml file, from which hyper-parameters are read");
  }
}

bool in_table(const Tables& tables, std::string_view name) {
  for (const EnvironmentEntry& entry : tables.environment) {
    if ((entry.npu && entry.npu->name == name) || (entry.gpu && entry.gpu->name == name)) return true;
  }
  if (tables.numeric(name) != nullptr) return true;
  // These variables show the kind of machine.
  return std::ranges::any_of(
      tables.npu_marks, [&](const std::string& mark) { return name.find(mark) != std::string_view::npos; });
}

pack::PackValue as_map(const pack::FlatMap& flat) {
  pack::PackValue map = pack::PackValue::map();
  for (const auto& [name, value] : flat.items()) map.push(name, value);
  return map;
}

}  // namespace

CollectResult collect(const CollectOptions& options, const Tables& tables, const pack::Lookup& environment) {
  check(options);
  CollectResult result;
  result.output = options.output;
  if (const auto folder = std::filesystem::path(options.output).parent_path(); !folder.empty())
    create_directories(folder.string());
  pack::PackWriter writer(options.output, options.existing);

  pack::EnvironmentOptions wanted{tables.secrets, {}};
  if (options.only_table) wanted.wanted = [&](std::string_view name) { return in_table(tables, name); };
  const pack::PackValue variables = pack::environment(options.variables, wanted);
  result.variables = variables.items().size();
  writer.add_json("env", variables);

  std::vector<pack::Package> packages;
  try {
    const pack::Interpreter interpreter = pack::find_interpreter(options.python, environment);
    packages = pack::packages_of(interpreter, result.warnings);
    result.interpreter = interpreter.path;
    if (packages.empty()) result.warnings.push_back(display(interpreter.path) + ": no packages found");
    if (!interpreter.version.empty()) result.interpreter += " (" + interpreter.version + ")";
  } catch (const IoError& error) {
    if (!options.python.empty()) throw;
    result.warnings.emplace_back(error.what());
  }
  result.packages = packages.size();
  writer.add("pip", pack::package_list(packages));

  pack::FlatMap parameters;
  for (const std::string& file : options.files) {
    check_interrupt();
    try {
      pack::merge(parameters, pack::read_parameter_file(file, result.warnings));
    } catch (const Error& error) {
      result.failures.emplace_back(error.what());
    }
  }
  result.parameters = parameters.size();
  if (!parameters.empty()) {
    writer.add_json("hyperparameters/hyperparameters_static.json", as_map(parameters));
  } else if (!options.files.empty()) {
    std::vector<std::string> names;
    for (const std::string& file : options.files) names.push_back("'" + display(file) + "'");
    result.warnings.push_back(fmt::format("no hyper-parameters found in {}", fmt::join(names, ", ")));
  }
  writer.commit();
  return result;
}

}  // namespace msprobe::config_check
