// SPDX-License-Identifier: Apache-2.0
// The options of `msprobe compare` that say which rows belong together.
#pragma once

#include <string>

#include "compare/matching/match.hpp"

namespace CLI {
class App;
}

namespace msprobe::compare {

/// What was typed.
struct PairingArguments {
  std::string data_mapping;
};

void declare_pairing(CLI::App& app, PairingArguments& arguments);

/// UsageError for options that exclude each other.
MatchOptions to_match_options(const PairingArguments& arguments);

}  // namespace msprobe::compare
