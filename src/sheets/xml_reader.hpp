// SPDX-License-Identifier: Apache-2.0
// Reads a part of a workbook as events. Document types, and thus entities, are not accepted; no other file is
// ever opened.
#pragma once

#include <string>
#include <string_view>

#include "archive/zip_reader.hpp"

namespace msprobe::sheets {

/// The attributes of an element; values are valid during the call. Names have no prefix.
class Attributes {
 public:
  explicit Attributes(const char* const* pairs) : pairs_(pairs) {}
  /// The value of the attribute; empty if it is missing.
  std::string_view get(std::string_view name) const;

 private:
  const char* const* pairs_;
};

/// Receives the events. An exception ends the reading.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view name, const Attributes& attributes) = 0;
  virtual void end(std::string_view name) = 0;
  /// Receives text in pieces.
  virtual void text(std::string_view text) = 0;
};

/// Throws FormatError with the workbook and the part for a part that is no XML or exceeds limits of size.
void read_xml(const archive::ZipReader& zip, const archive::ZipEntry& entry, const std::string& workbook,
              XmlHandler& handler);

}  // namespace msprobe::sheets
