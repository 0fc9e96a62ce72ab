// SPDX-License-Identifier: Apache-2.0
// Is a data base that was made of foreign files one that its readers take?
#pragma once

#include <sqlite3.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace msprobe {

class WrittenDatabase {
 public:
  explicit WrittenDatabase(const std::string& path) {
    if (sqlite3_open_v2(path.c_str(), &connection_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK)
      fail("cannot be opened");
    expect("PRAGMA integrity_check", "ok");
  }
  ~WrittenDatabase() { sqlite3_close(connection_); }
  WrittenDatabase(const WrittenDatabase&) = delete;
  WrittenDatabase& operator=(const WrittenDatabase&) = delete;

  /// The first value of the first row.
  void expect(const char* question, const std::string& wanted) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(connection_, question, -1, &statement, nullptr) != SQLITE_OK) fail(question);
    std::string answer = "nothing";
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      answer = text == nullptr ? "NULL" : text;
    }
    sqlite3_finalize(statement);
    if (answer != wanted) fail((std::string(question) + " gives " + answer).c_str());
  }

  /// Every node but the top is a child of the node that it names, which names it too; and what should be JSON
  /// is.
  void check_graphs() const {
    expect(
        "SELECT count(*) FROM tb_nodes n WHERE up_node != '' AND NOT EXISTS (SELECT 1 FROM tb_nodes u, "
        "json_each(u.sub_nodes) s WHERE u.graph_id = n.graph_id AND u.step = n.step AND u.rank = n.rank AND "
        "u.data_source = n.data_source AND u.node_name = n.up_node AND s.value = n.node_name)",
        "0");
    expect(
        "SELECT count(*) FROM tb_nodes n, json_each(nullif(n.sub_nodes, '')) s WHERE NOT EXISTS (SELECT 1 "
        "FROM "
        "tb_nodes c WHERE c.step = n.step AND c.rank = n.rank AND c.data_source = n.data_source AND "
        "c.node_name = s.value AND c.up_node = n.node_name)",
        "0");
    for (const char* column :
         {"matched_node_link", "matched_distributed", "parallel_merge_info", "input_data", "output_data"}) {
      expect((std::string("SELECT count(*) FROM tb_nodes WHERE ") + column + " != '' AND NOT json_valid(" +
              column + ")")
                 .c_str(),
             "0");
    }
    expect(
        "SELECT count(*) FROM tb_nodes n WHERE NOT EXISTS (SELECT 1 FROM tb_stack s WHERE s.id = n.stack_id)",
        "0");
  }

 private:
  [[noreturn]] static void fail(const char* what) {
    std::fprintf(stderr, "the data base: %s\n", what);
    std::abort();
  }
  sqlite3* connection_ = nullptr;
};

}  // namespace msprobe
