// SPDX-License-Identifier: Apache-2.0
// The database that the viewer opens (docs/formats.md, "The graph database").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace msprobe::graph {

struct ConfigRow {
  std::string_view graph_type;
  std::string_view task;
  std::optional<std::string_view> tool_tip;
  std::int64_t micro_steps = 1;
  bool overflow_check = false;
  std::string_view node_colors;
  std::string_view rank_list;
  std::string_view step_list;
};

struct NodeRow {
  std::string_view id;
  std::string_view graph_id;
  std::int64_t order = 0;
  std::string_view name;
  int type = 0;
  std::string_view up_node;
  std::string_view sub_nodes;
  std::optional<double> precision_index;  // 0, 0.5 or 1
  std::optional<std::string_view> overflow_level;
  std::int64_t micro_step = 0;
  std::string_view matched_node_link;
  std::string_view stack_id;
  std::string_view parallel_merge_info;
  std::string_view input_data;
  std::string_view output_data;
  std::string_view data_source;
  std::optional<std::string_view> dump_data_dir;
  std::int64_t step = 0;
  std::int64_t rank = 0;
  bool is_distributed = false;
};

struct OriginRow {
  std::string_view id;  // of the node
  std::string_view origin;
  std::optional<double> error;
  std::optional<std::string_view> finding;
};

/// A database that is being written; it has no name until commit(). Equal rows in equal order make equal
/// bytes.
class Database {
 public:
  /// IoError if no file can be created at `path`.
  explicit Database(const std::string& path);
  ~Database();

  /// Adds a node and returns the number of its row.
  std::int64_t add(const NodeRow& row);
  void add_stack(std::string_view id, std::string_view lines);
  void add(const ConfigRow& row);
  /// Records where the error of a node comes from. The viewer does not know this table; other programs can
  /// query it.
  void add_origin(const OriginRow& row);
  /// Sets the column matched_distributed of a node.
  void set_communication(std::int64_t row, std::string_view json);

  /// A position to return to: go_back() removes the nodes and stacks that were added after it.
  struct DatabaseMark {
    std::int64_t node = 0;
    std::int64_t stack = 0;
    std::int64_t origin = 0;
  };
  DatabaseMark mark() const;
  void go_back(const DatabaseMark& mark);
  /// Has the database refused anything? Then nothing can be added any more.
  bool failed() const;

  /// Gives the file its name.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::graph
