// SPDX-License-Identifier: Apache-2.0
// What a comparison says by the rules of releases 8.x: how far a node's results are from those of its partner
// (docs/rules.md, "The index of releases 8.x").
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/data/node_source.hpp"
#include "verdict/result.hpp"

namespace msprobe::graph {

/// Of a node under test with items and a partner. By statistics the largest relative error of what it
/// computes; by tensors how much smaller the least ratio of elements within a thousandth is behind it than
/// before it; by checksums 1 if all are equal, else 0.
Release8 release8_node(const verdict::RankResult& result, const dump::Api& entry);

/// The worst of what a collection holds.
Release8 release8_collection(const std::vector<Release8>& held, bool by_checksums);

/// The index as it is written.
std::string index_text(const Release8& node);

/// What is added to an item.
TextMembers release8_members(const verdict::RankResult& result, std::size_t row);

}  // namespace msprobe::graph
