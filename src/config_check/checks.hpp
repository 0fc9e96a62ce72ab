// SPDX-License-Identifier: Apache-2.0
// The comparison of two packs, section by section.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config_check/sheet.hpp"
#include "config_check/tables.hpp"
#include "pack/pack_reader.hpp"

namespace msprobe::config_check {

/// The first is the reference. Both have been verified, so that what goes wrong here is the contents: a
/// FormatError.
struct Packs {
  const pack::Pack& bench;
  const pack::Pack& cmp;
};

Section check_environment(const Packs& packs, const Tables& tables);
/// `all`: packages that no table names too, and versions that differ in what follows a plus sign only, as
/// warnings.
Section check_packages(const Packs& packs, const Tables& tables, bool all);
Section check_dataset(const Packs& packs);
Section check_weights(const Packs& packs);
Section check_hyper_parameters(const Packs& packs, const Tables& tables);
Section check_random(const Packs& packs);

/// One comparison of two flat sets of hyper-parameters; appends to a table with the columns of the sheet.
/// Returns false if there were too many names to look for similar ones.
bool compare_hyper_parameters(const std::string& file_name, const pack::Value& bench, const pack::Value& cmp,
                              const Tables& tables, RowTable& rows);
std::vector<std::string> hyper_parameter_columns();

/// Do two frames of stacks mean the same line of source? File and function must be the same and the text
/// alike.
bool frames_match(std::string_view bench, std::string_view cmp);

/// Reads a member that must be a JSON object. FormatError naming it.
dump::Entry read_object(const pack::Pack& pack, const pack::Member& member);

}  // namespace msprobe::config_check
