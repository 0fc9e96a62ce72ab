// SPDX-License-Identifier: Apache-2.0
// Inspects the content of a file, with archives nested to any depth. Each member is judged by its content,
// not by its name. Members that may act, and members that are not understood, are added to the facts of the
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "archive/zip_reader.hpp"
#include "formats/tensor_set.hpp"
#include "inspect/facts.hpp"
#include "inspect/pickles.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

class ContentScanner {
 public:
  /// `facts` has a file; `pickles` adds to it as well. `rates`: also report contents that are merely not
  /// known to be harmless.
  ContentScanner(std::shared_ptr<const ByteSource> source, PathFacts& facts, PickleFinder& pickles,
                 bool rates);

  /// Scans every member of the zip archive that the file is. If nothing is rated, the arrays of an npz are
  /// skipped, because another reader handles them.
  void scan_members(formats::Container container);
  /// Scans every member of each of the archives that make up the file.
  void scan_series(const std::vector<std::shared_ptr<const ByteSource>>& archives);
  /// For a file, or a member at a depth, that is something else by its first bytes: other programs search for
  /// archives at other places.
  void look_for_archives(const std::shared_ptr<const ByteSource>& bytes, const std::string& where = "",
                         int depth = 0);
  /// An array of an npz that could not be read as numbers.
  void scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                          const std::string& where);
  /// Looks at an array of NumPy, whose elements may be a pickle after its header.
  void look_at_array(const ByteSource& npy, const std::string& where);
  /// Looks at bytes that are neither tensors nor a pickle: text, code, other formats.
  void look_at_other(const ByteSource& bytes, std::string_view name, const std::string& where);
  /// Looks at the metadata of a safetensors file: loaders make configurations from them.
  void look_at_metadata(const std::vector<std::pair<std::string, std::string>>& metadata);
  /// Looks at a text of a file's metadata, which a loader may use as a template.
  void look_at_text(const ByteSource& text, const std::string& key);

 private:
  void problem(const std::string& where, const std::string& message);
  void note(ContentFacts content);
  void note(ContentFacts content, const std::string& where);
  /// The bytes of a member; FormatError if it is packed and too much has been unpacked already.
  std::shared_ptr<const ByteSource> open_member(const archive::ZipReader& zip,
                                                const archive::ZipEntry& entry);
  void scan_archive(const archive::ZipReader& zip, const std::string& prefix, int depth,
                    formats::Container container);
  void scan_nested(const std::shared_ptr<const ByteSource>& zip, const std::string& where, int depth);
  void scan_member(const std::shared_ptr<const ByteSource>& member, std::string_view member_name,
                   const std::string& where, int depth);

  std::shared_ptr<const ByteSource> source_;
  PathFacts& facts_;
  FileFacts& file_;
  PickleFinder& pickles_;
  bool rates_;
  std::uint64_t may_unpack_;
  std::size_t problem_count_ = 0;
};

}  // namespace msprobe::inspect
