// SPDX-License-Identifier: Apache-2.0
// Whose results `msprobe compare` gives: each folder's traits, together.
#pragma once

#include "compare/analysis/traits.hpp"
#include "compare/atb/traits.hpp"
#include "compare/result/traits.hpp"
#include "compare/single_save/traits.hpp"
#include "compare/static_graph/traits.hpp"

namespace msprobe::compare {

/// Ours, unless a trait is changed.
struct Dialect {
  bool ignores_idle_options = false;  // those that do not apply to the dumps, which are refused otherwise
  RankTraits rank;
  SearchTraits search;
  GraphTraits graph;
  SavedTraits saved;
  AtbTraits atb;
};

/// That of the Python tool 26.x: --python-rules.
Dialect python_dialect();

}  // namespace msprobe::compare
