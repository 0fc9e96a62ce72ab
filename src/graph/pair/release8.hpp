// SPDX-License-Identifier: Apache-2.0
// Compares nodes by the rules of releases 8.x: the distance between a node's results and those of its partner
// (docs/rules.md, "The index of releases 8.x").
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/data/node_source.hpp"
#include "verdict/result.hpp"

namespace msprobe::graph {

/// The result of a node under test that has items and a partner. By statistics it is the largest relative
/// error of the node's outputs. By tensors it is the smallest share of elements within a thousandth, before
/// the node minus after it. By checksums it is 1 if all are equal, else 0.
Release8 release8_node(const verdict::RankResult& result, const dump::Api& entry);

/// The worst result of the nodes in a collection.
Release8 release8_collection(const std::vector<Release8>& held, bool by_checksums);

/// The index as text, as the files have it.
std::string index_text(const Release8& node);

/// The members that releases 8.x add to an item.
TextMembers release8_members(const verdict::RankResult& result, std::size_t row);

}  // namespace msprobe::graph
