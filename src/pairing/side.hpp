// SPDX-License-Identifier: Apache-2.0
// A flattened dump, under the names that this folder uses.
#pragma once

#include "dump/side.hpp"

namespace msprobe::pairing {

using dump::Api;
using dump::Classified;
using dump::Item;
using dump::load_side;
using dump::LoadOptions;
using dump::P2PNames;
using dump::RecordedValue;
using dump::RequiresGrad;
using dump::Side;
using dump::State;
using dump::Statistic;
using dump::StatisticValues;
using dump::ValueClass;
using dump::ValueKind;
using enum dump::Statistic;

}  // namespace msprobe::pairing
