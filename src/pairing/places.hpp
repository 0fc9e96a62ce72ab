// SPDX-License-Identifier: Apache-2.0
// Where an item stands in its entry, and an entry in its model.
#pragma once

#include <string>
#include <string_view>

#include "dump/side.hpp"

namespace msprobe::pairing {

/// Where an item stands in its entry: the part of its name behind the entry's, `.input.0`. Keyword arguments
/// are called alike with and without data files.
struct Place {
  std::string_view front;  // `.input.` in place of `.kwargs.`, else empty
  std::string_view rest;

  bool operator==(const Place&) const = default;
};
Place place_of(const dump::Side& side, const dump::Item& item);

/// The parts of a dotted path but for those that wrappers add: `module` in front, `_orig_mod` anywhere.
std::string without_wrappers(std::string_view path);

/// A parameter, its gradient or a buffer of a module as the model calls it: `layers.0.mlp.weight`.
std::string name_in_model(const dump::Side& side, const dump::Item& item);

/// `layers.0.norm` of `Module.layers.0.norm.Norm.forward.0`; empty for entries that are no module's.
std::string_view module_path(std::string_view entry);

}  // namespace msprobe::pairing
