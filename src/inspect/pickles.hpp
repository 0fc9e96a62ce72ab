// SPDX-License-Identifier: Apache-2.0
// Finds the pickles of a file, at any place. Their names are added to its facts; so are parts that could not
// be followed, since they may name anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "formats/pickle.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

/// The caller's knowledge about bytes that may be a pickle.
enum class PickleHint : std::uint8_t {
  none,
  named,     // their name says that they are a pickle
  elements,  // elements of a tensor, which may begin with any bytes
};

class PickleFinder {
 public:
  /// `facts` has a file.
  PickleFinder(std::shared_ptr<const ByteSource> source, PathFacts& facts);

  struct Chain {
    bool is_pickle = false;  // the first pickle is complete, or it names something that Python could import
    std::string failure;     // why there may be more than was found
  };
  static constexpr int kNoLimit = 0;
  /// Scans consecutive pickles, from `offset` of `source` to its end. `count`: only so many, whose values
  /// another reader has read without an error.
  Chain scan_chain(const ByteSource& source, std::uint64_t offset, const std::string& where,
                   int count = kNoLimit);
  /// For a file that begins with a number: the number may be chosen so that Python reads the file as a
  /// pickle, too.
  void look_for_second_face();
  /// For other bytes. False if they are not a pickle.
  bool scan_bytes(const ByteSource& bytes, const std::string& where, PickleHint hint);
  /// For a text: does one of its lines begin a pickle that calls something? A reader in Python could begin
  /// there as well as anywhere else.
  bool scan_lines(const ByteSource& text, const std::string& where);
  /// Scans an object array of NumPy, which has a pickle after the header. `npy` begins like an array.
  void scan_object_array(const ByteSource& npy, const std::string& where);
  /// Call this last: reports how many names were left out.
  void tell_what_was_left_out();

 private:
  void problem(const std::string& message);
  /// Could one of the pickles from `offset` on name something that Python has?
  bool may_act(const ByteSource& bytes, std::uint64_t offset, PickleHint hint) const;
  /// `initialized`: the pickle calls the class with its initialiser.
  void note(const formats::PickleGlobal& global, const std::string& where, bool initialized);
  void note_content(std::string what, const std::string& where, Rating rating);

  std::shared_ptr<const ByteSource> source_;
  PathFacts& facts_;
  FileFacts& file_;
  std::uint64_t untold_globals_ = 0;
};

}  // namespace msprobe::inspect
