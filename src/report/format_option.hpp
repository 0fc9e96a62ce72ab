// SPDX-License-Identifier: Apache-2.0
// The option --format of commands that write tables.
#pragma once

#include <vector>

#include "report/writers.hpp"
#include "support/option_list.hpp"

namespace msprobe::report {

inline const Choices<Format> kFormats = {
    {"csv", Format::csv}, {"xlsx", Format::xlsx}, {"json", Format::json}, {"jsonl", Format::jsonl}};

/// Accepts any of the formats; without the option `formats` stays unchanged.
inline Option add_formats(OptionList& options, std::vector<Format>& formats) {
  return options.add_list("--format=LIST", formats, kFormats,
                          "Any of csv, xlsx, json, jsonl, separated by commas");
}

}  // namespace msprobe::report
