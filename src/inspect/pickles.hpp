// SPDX-License-Identifier: Apache-2.0
// The pickles of a file, wherever they are: what they name is added to its facts, and so is what could not be
// followed, since that may name anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "formats/pickle.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// What is known of bytes that may be a pickle.
enum class PickleHint : std::uint8_t {
  none,
  named,     // by their name they are one
  elements,  // of a tensor: they may begin in any way
};

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
  /// Of other bytes: false if they are no pickle.
  bool scan_bytes(const ByteSource& bytes, const std::string& where, PickleHint hint);
  /// Of a text: does one of its lines begin a pickle that calls something? A reader of Python that begins
  /// there may have begun anywhere else.
  bool scan_lines(const ByteSource& text, const std::string& where);
  /// An object array of NumPy is a pickle behind the header. `npy` begins like an array.
  void scan_object_array(const ByteSource& npy, const std::string& where);
  /// To be called at the end.
  void tell_what_was_left_out();

 private:
  void problem(const std::string& message);
  Chain follow_chain(const ByteSource& source, std::uint64_t offset, const std::string& where, int count);
  /// Could one of the pickles from `offset` on name what Python has?
  bool may_act(const ByteSource& bytes, std::uint64_t offset, PickleHint hint) const;
  /// `initialized`: it is called as Python calls a class.
  void note(const formats::PickleGlobal& global, const std::string& where, bool initialized);
  void note_content(std::string what, const std::string& where, Rating rating);
  void note_numpy_objects(const formats::Pickle& pickle, const std::string& where);
  void note_as_unknown(std::uint64_t offset, const std::string& where);

  std::shared_ptr<const ByteSource> source_;
  PathFacts& facts_;
  FileFacts& file_;
  std::uint64_t untold_globals_ = 0;
};

}  // namespace msprobe::inspect
