// SPDX-License-Identifier: Apache-2.0
#include "pack/pack_writer.hpp"

#include <utility>

#include "pack/pack_reader.hpp"
#include "support/format_version.hpp"

namespace msprobe::pack {

PackWriter::PackWriter(const std::string& path, Existing existing)
    : file_(path, existing), zip_(file_, archive::ZipStyle::secret) {}

void PackWriter::add(std::string name, std::string_view contents) {
  zip_.add_deflated(std::move(name), contents);
}

void PackWriter::add_json(std::string name, const PackValue& value) {
  std::string text;
  append_json(text, value, 4);
  add(std::move(name), text);
}

void PackWriter::commit() {
  zip_.finish(std::string(kFormatMark) + std::to_string(kPackFormat));
  file_.commit();
}

}  // namespace msprobe::pack
