// SPDX-License-Identifier: Apache-2.0
// The options of `msprobe compare` that say which rows belong together.
#pragma once

#include <string>

#include "compare/matching/match.hpp"
#include "support/option_list.hpp"

namespace msprobe::compare {

/// What was typed. -am, -cm and -lm may stand without a file.
struct PairingArguments {
  struct Mapping {
    std::string file;
    Option option;
  };
  bool fuzzy = false;
  Mapping api;
  Mapping cell;
  Mapping data;
  Mapping layer;
  std::string suggest;
};

void declare_pairing(OptionList& options, PairingArguments& arguments);

/// UsageError for options that exclude each other, unless the traits let one of them win.
MatchOptions to_match_options(const PairingArguments& arguments, const PairingTraits& traits);

}  // namespace msprobe::compare
