// SPDX-License-Identifier: Apache-2.0
// A part of a workbook as events. No document type, so no entities of its own; nothing outside is ever asked
// for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "archive/zip_reader.hpp"

namespace msprobe::sheets {

/// Of an element; values are valid during the call. Names are without their prefix.
class Attributes {
 public:
  explicit Attributes(const char* const* pairs) : pairs_(pairs) {}
  /// Empty if there is none.
  std::string_view get(std::string_view name) const;

 private:
  const char* const* pairs_;
};

/// What it throws ends the reading.
class XmlHandler {
 public:
  virtual ~XmlHandler() = default;
  virtual void start(std::string_view name, const Attributes& attributes) = 0;
  virtual void end(std::string_view name) = 0;
  /// Text in pieces.
  virtual void text(std::string_view text) = 0;
};

struct XmlLimits {
  int depth = 64;
  std::uint64_t unpacked = std::uint64_t{4} << 30;  // bytes of the part
  std::uint64_t token = std::uint64_t{1} << 20;     // bytes of one tag or comment
};

/// FormatError naming the workbook and the part for what is no XML or exceeds the limits.
void read_xml(const archive::ZipReader& zip, const archive::ZipEntry& entry, const std::string& workbook,
              XmlHandler& handler, const XmlLimits& limits = {});

}  // namespace msprobe::sheets
