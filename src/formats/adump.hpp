// SPDX-License-Identifier: Apache-2.0
// Dumps of device kernels (adump): a header that describes inputs, outputs, buffers and workspaces, then
// their bytes. Two forms of header: a protobuf message, and the tagged blocks of the nano form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

enum class AdumpRole : std::uint8_t { input, output, buffer, space };

struct AdumpItem {
  AdumpRole role = AdumpRole::input;
  std::size_t index = 0;  // number among the items of its role
  std::int64_t type = 0;  // element type as in adump.cpp; or the code of the kind of buffer
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // of its bytes in the file
  std::uint64_t size = 0;
};

struct AdumpFile {
  std::shared_ptr<const ByteSource> file;
  bool nano = false;
  std::vector<AdumpItem> items;  // in file order: inputs, outputs, buffers, spaces
};

/// Reads the header. FormatError if the header is broken or describes more bytes than the file has. For
/// sliced dumps (FFTS+) the file's name says which thread the shapes belong to.
AdumpFile open_adump(std::shared_ptr<const ByteSource> file);

/// The tensor of an input or output. FormatError for an unsupported type, and if the item has fewer bytes
/// than its shape needs; surplus bytes are ignored.
StoredTensor adump_tensor(const AdumpFile& dump, const AdumpItem& item);

/// "float32", "uint1", …; "type 13" for a code that has no name.
std::string adump_type_name(std::int64_t code);

/// Does the file's name begin as that of an overflow debug record does?
bool is_op_debug_name(std::string_view name);

/// The content of an overflow debug record (the bytes of an output) as JSON, indented by four blanks per
/// level. FormatError naming `file` if the record has neither of the two known forms.
std::string op_debug_json(std::string_view record, const std::string& file);

}  // namespace msprobe::formats
