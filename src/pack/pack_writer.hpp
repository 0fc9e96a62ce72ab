// SPDX-License-Identifier: Apache-2.0
// A configuration pack in the making.
#pragma once

#include <string>
#include <string_view>

#include "archive/zip_writer.hpp"
#include "pack/value.hpp"
#include "support/output_file.hpp"

namespace msprobe::pack {

/// Members are added in the order in which the Python tool adds them; the file gets its name when commit() is
/// called. Destroyed before, it leaves nothing.
class PackWriter {
 public:
  explicit PackWriter(const std::string& path, Existing existing = Existing::replace);

  void add(std::string name, std::string_view contents);
  /// As JSON, in the form of the Python tool.
  void add_json(std::string name, const PackValue& value);
  void commit();

 private:
  OutputFile file_;
  archive::ZipWriter zip_;
};

}  // namespace msprobe::pack
