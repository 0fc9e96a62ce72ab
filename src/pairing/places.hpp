// SPDX-License-Identifier: Apache-2.0
// The place of an item in its entry, and of an entry in its model.
#pragma once

#include <string>
#include <string_view>

#include "dump/side.hpp"

namespace msprobe::pairing {

/// The place of an item in its entry: the part of its name after the entry's name, `.input.0`. A keyword
/// argument has the same place with and without data files.
struct Place {
  std::string_view front;  // `.input.` in place of `.kwargs.`, else empty
  std::string_view rest;

  bool operator==(const Place&) const = default;
};
Place place_of(const dump::Side& side, const dump::Item& item);

/// A dotted path without the parts that wrappers add: `module` in front, `_orig_mod` anywhere.
std::string without_wrappers(std::string_view path);

/// A parameter, its gradient or a buffer of a module as the model calls it: `layers.0.mlp.weight`.
std::string name_in_model(const dump::Side& side, const dump::Item& item);

/// `layers.0.norm` of `Module.layers.0.norm.Norm.forward.0`; empty for entries that are no module's.
std::string_view module_path(std::string_view entry);

}  // namespace msprobe::pairing
