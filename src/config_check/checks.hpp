// SPDX-License-Identifier: Apache-2.0
// Compares two packs, section by section.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config_check/sheet.hpp"
#include "config_check/tables.hpp"
#include "pack/pack_reader.hpp"

namespace msprobe::config_check {

/// The first pack is the reference. Both are verified already, so an error here is an error of their
/// contents: a FormatError.
struct Packs {
  const pack::Pack& bench;
  const pack::Pack& cmp;
};

SheetSection check_environment(const Packs& packs, const Tables& tables);
/// `all`: also compare packages that no table names, and report versions that differ only after a plus sign
/// as warnings.
SheetSection check_packages(const Packs& packs, const Tables& tables, bool all);
SheetSection check_dataset(const Packs& packs);
SheetSection check_weights(const Packs& packs);
SheetSection check_hyper_parameters(const Packs& packs, const Tables& tables);
SheetSection check_random(const Packs& packs);

/// One comparison of two flat sets of hyper-parameters; appends to a table with the columns of the sheet.
/// Returns false if there were too many names to look for similar ones.
bool compare_hyper_parameters(const std::string& file_name, const pack::PackValue& bench,
                              const pack::PackValue& cmp, const Tables& tables, RowTable& rows);
std::vector<std::string> hyper_parameter_columns();

/// Do two stack frames mean the same line of source? File and function must be equal and the text similar.
bool frames_match(std::string_view bench, std::string_view cmp);

/// Reads a member that must be a JSON object. FormatError naming it.
dump::Entry read_object(const pack::Pack& pack, const pack::PackMember& member);

}  // namespace msprobe::config_check
