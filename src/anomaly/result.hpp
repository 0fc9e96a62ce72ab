// SPDX-License-Identifier: Apache-2.0
// The result as a document: the Python tool's JSON, or one object a line.
#pragma once

#include <string>

#include "anomaly/analyze.hpp"

namespace msprobe::anomaly {

/// The roots, byte for byte as the Python tool writes them (docs/formats.md, "The result of nan_analyze").
/// With paths, each root also has `kind` and `spread`.
std::string roots_json(const Analysis& analysis);
/// One object a line, with `rank` (and `step`) in front.
std::string roots_jsonl(const Analysis& analysis);

/// The listing of levels or statistics, in the same two shapes.
std::string findings_json(const Analysis& analysis, AnomalyListing listing);
std::string findings_jsonl(const Analysis& analysis, AnomalyListing listing);

std::string_view kind_name(RootKind kind);

}  // namespace msprobe::anomaly
