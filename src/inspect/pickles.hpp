// SPDX-License-Identifier: Apache-2.0
// The pickles of a file, wherever they are: what they name is added to its facts, and so is what could not be
// followed, since that may name anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "archive/zip_reader.hpp"
#include "formats/pickle.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

class PickleFinder {
 public:
  /// `facts` has a file.
  PickleFinder(std::shared_ptr<const ByteSource> source, PathFacts& facts);

  struct Chain {
    bool is_pickle = false;  // the first one is whole, or it names what Python could import
    std::string failure;     // why there may be more than was found
  };
  /// One pickle behind the other, from `offset` of `source` to its end.
  Chain scan_chain(const ByteSource& source, std::uint64_t offset, const std::string& where);
  /// The first `count` pickles of the file, whose values were read without complaint before.
  Chain scan_read_chain(int count);
  /// Of a file that begins with a number, which may be chosen so that Python reads the file as a pickle, too.
  void look_for_second_face();
  /// Of a file that is something else by its first bytes: other programs look for archives elsewhere.
  void look_for_archives();
  /// Every member of the archive that is a pickle by its name, or by what is in it.
  void scan_members(bool is_npz);
  /// An object array of NumPy is a pickle behind the header.
  void scan_object_array(const ByteSource& npy, const std::string& where);
  /// The same for a member of an archive that could not be read as numbers.
  void scan_object_member(const archive::ZipReader& zip, const archive::ZipEntry& entry,
                          const std::string& where);
  /// To be called at the end.
  void tell_what_was_left_out();

 private:
  void problem(const std::string& message);
  Chain follow_chain(const ByteSource& source, std::uint64_t offset, const std::string& where, int count);
  /// The bytes of a member whose pickles are wanted; FormatError if it is packed and too many have been
  /// already.
  std::shared_ptr<const ByteSource> open_member(const archive::ZipReader& zip,
                                                const archive::ZipEntry& entry);
  void scan_members_of(const archive::ZipReader& zip, bool is_npz);
  void scan_member(const archive::ZipReader& zip, const archive::ZipEntry& entry, bool is_npz);
  void note(const formats::PickleGlobal& global, const std::string& where);
  void note_as_unknown(std::uint64_t offset, const std::string& where);

  std::shared_ptr<const ByteSource> source_;
  PathFacts& facts_;
  FileFacts& file_;
  std::uint64_t untold_globals_ = 0;
  std::uint64_t may_unpack_;
};

}  // namespace msprobe::inspect
