// SPDX-License-Identifier: Apache-2.0
#include "compare/pairing_options.hpp"

#include <CLI/CLI.hpp>

namespace msprobe::compare {

void declare_pairing(CLI::App& app, PairingArguments& arguments) {
  app.add_option("--data_mapping", arguments.data_mapping,
                 "Pair rows by this YAML mapping of target row names to golden ones")
      ->type_name("FILE");
}

MatchOptions to_match_options(const PairingArguments& arguments) {
  MatchOptions options;
  if (!arguments.data_mapping.empty()) {
    options.method = Method::data;
    options.mapping_file = arguments.data_mapping;
  }
  return options;
}

}  // namespace msprobe::compare
