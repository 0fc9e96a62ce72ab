// SPDX-License-Identifier: Apache-2.0
// `.pt` files built from a pickle written by hand, so that a test can falsify it.
#pragma once

#include <string>
#include <vector>

#include "unit/archive/zip_builder.hpp"

namespace msprobe::formats {

/// Opcodes of the values that a tensor's pickle is made of.
inline std::string pickled(std::int64_t value) {
  return "\x8a\x08" + archive::Bytes().u64(static_cast<std::uint64_t>(value)).str();
}
inline std::string pickled(const std::string& text) {
  return "X" + archive::Bytes().u32(text.size()).str() + text;
}
inline std::string pickled(const std::vector<std::int64_t>& values) {
  std::string out = "(";
  for (const std::int64_t value : values) out += pickled(value);
  return out + "t";
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

/// The contents of a tensor's pickle; the defaults are a plain float32 tensor of two elements.
struct PtRecipe {
  std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");
  std::string storage_class = global("torch", "FloatStorage");
  std::string key = pickled(std::string("0"));
  std::int64_t count = 2;
  std::int64_t offset = 0;
  std::vector<std::int64_t> size = {2};
  std::vector<std::int64_t> stride = {1};
  std::string hooks = global("collections", "OrderedDict") + ")R";
  std::string more_arguments = {};
  std::string view = {};   // sixth item of the storage's id, in legacy files
  std::string after = {};  // opcodes between the tensor and STOP

  std::string pickle() const {
    return "\x80\x02" + rebuild + "((" + pickled(std::string("storage")) + storage_class + key +
           pickled(std::string("cpu")) + pickled(count) + view + "tQ" + pickled(offset) + pickled(size) +
           pickled(stride) + "\x89" + hooks + more_arguments + "tR" + after + ".";
  }
};

/// The form before PyTorch 1.6, with one storage of `count` elements.
inline std::string build_legacy(const std::string& pickle, const std::string& count, const std::string& data,
                                bool little_endian = true) {
  const std::string magic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);
  return magic + "}" + pickled(std::string("little_endian")) + (little_endian ? "\x88s." : "\x89s.") +
         pickle + "](" + pickled(std::string("0")) + "e." + count + data;
}

inline std::vector<archive::Piece> pt_pieces(const std::string& pickle, const std::string& data) {
  return {{.name = "t/data.pkl", .payload = pickle}, {.name = "t/data/0", .payload = data}};
}

inline std::string build_pt(const std::string& pickle, const std::string& data = "abcdefgh") {
  return archive::build_zip(pt_pieces(pickle, data));
}

}  // namespace msprobe::formats
