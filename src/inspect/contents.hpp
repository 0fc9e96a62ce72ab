// SPDX-License-Identifier: Apache-2.0
// What is in a file, to any depth of archives within archives: each member is looked at by its content,
// whatever its name. What may act is added to the facts of the file, and so is what is not understood.
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
  /// `facts` has a file; `pickles` adds to it as well. `rates`: also what is merely not known to be harmless
  /// is told.
  ContentScanner(std::shared_ptr<const ByteSource> source, PathFacts& facts, PickleFinder& pickles,
                 bool rates);

  /// Every member of the zip archive that the file is. Where nothing is rated, the arrays of an npz are left
  /// to whoever reads them.
  void scan_members(formats::Container container);
  /// Every member of each of the archives that the file is made of.
  void scan_series(const std::vector<std::shared_ptr<const ByteSource>>& archives);
  /// Of a file that is something else by its first bytes: other programs look for archives elsewhere.
  void look_for_archives();
  /// An array of an npz that could not be read as numbers.
  void scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                          const std::string& where);
  /// An array of NumPy, which may be a pickle behind its header.
  void look_at_array(const ByteSource& npy, const std::string& where);
  /// What is neither tensors nor a pickle: text, code, other formats.
  void look_at_other(const ByteSource& bytes, std::string_view name, const std::string& where);
  /// Of a safetensors file: loaders make configurations of it.
  void look_at_metadata(const std::vector<std::pair<std::string, std::string>>& metadata);
  /// A text of the metadata of a file, which loaders may take for a template.
  void look_at_text(const ByteSource& text, const std::string& key);

 private:
  void problem(const std::string& where, const std::string& message);
  void note(ContentFacts content);
  void note(ContentFacts content, const std::string& where);
  /// The bytes of a member; FormatError if it is packed and too many have been already.
  std::shared_ptr<const ByteSource> open_member(const archive::ZipReader& zip,
                                                const archive::ZipEntry& entry);
  void scan_archive(const archive::ZipReader& zip, const std::string& prefix, int depth,
                    formats::Container container);
  void scan_nested(const std::shared_ptr<const ByteSource>& zip, const std::string& where, int depth);
  void scan_member(const std::shared_ptr<const ByteSource>& member, std::string_view member_name,
                   const std::string& where, int depth);
  void look_for_archives_in(const std::shared_ptr<const ByteSource>& bytes, const std::string& where,
                            int depth);

  std::shared_ptr<const ByteSource> source_;
  PathFacts& facts_;
  FileFacts& file_;
  PickleFinder& pickles_;
  bool rates_;
  std::uint64_t may_unpack_;
  std::size_t problem_count_ = 0;
};

}  // namespace msprobe::inspect
