// SPDX-License-Identifier: Apache-2.0
// Builds the values of a Pickle, and counts their memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/limits.hpp"
#include "formats/pickle.hpp"
#include "formats/pickle_containers.hpp"
#include "formats/pickle_stream.hpp"
#include "formats/unpickler.hpp"

namespace msprobe::formats {

/// Everything that does not fit, or exceeds a limit, is a FormatError of the stream.
class PickleBuilder {
 public:
  PickleBuilder(const PickleStream& stream, const ByteSource& source, const PickleLimits& limits);

  /// Everything that takes time is counted as opcodes are.
  void charge(std::uint64_t amount);
  void charge_memory(std::uint64_t bytes);

  PickleRef none() { return shared(none_, PickleKind::none, 0); }
  PickleRef boolean(bool value) { return shared(value ? true_ : false_, PickleKind::boolean, value ? 1 : 0); }
  PickleRef integer(std::int64_t value);
  PickleRef real(std::uint64_t bits) { return add(PickleKind::real, bits); }
  /// A text, bytes or a big_integer.
  PickleRef characters(PickleKind kind, std::string_view characters);
  PickleRef tuple(std::span<const PickleRef> items);
  /// A list, a set, or a dict of key, value, key, value, …
  PickleRef container(PickleKind kind, std::span<const PickleRef> items = {});
  /// `offset`: where the pickle mentions it.
  PickleRef global(std::string module, std::string name, std::uint64_t offset);
  /// The result of a call; that of a container's type is evaluated.
  PickleRef call(PickleRef callable, PickleRef args, PickleRef kwargs = kNoPickleRef);
  PickleRef persistent(PickleRef id);

  /// To a list or set as `wanted`, or to an object.
  void append_to(PickleRef target, std::span<const PickleRef> items, PickleKind wanted);
  void set_in(PickleRef target, std::span<const PickleRef> pairs);
  void set_state(PickleRef target, PickleRef state);

  PickleKind kind(PickleRef ref) const { return pickle_.kind(ref); }
  const Pickle& so_far() const { return pickle_; }
  Pickle finish(PickleRef root, std::uint64_t end);

 private:
  [[noreturn]] void fail(const std::string& reason) const { stream_.fail(reason); }
  PickleRef add(PickleKind kind, std::uint64_t value, std::size_t count = 0);
  PickleRef shared(PickleRef& known, PickleKind kind, std::uint64_t value);
  void charge_items(std::size_t count, bool first);
  void append(PickleRef target, std::span<const PickleRef> items);
  PickleRef part_of(PickleRef object, PickleRef PickleObject::*part, PickleKind part_kind);
  PickleRef evaluate(const ContainerName& type, PickleRef args);

  const PickleStream& stream_;
  PickleLimits limits_;
  MemoryAllowance allowance_;
  std::uint64_t spent_ = 0;
  std::map<std::pair<std::string, std::string>, std::size_t> global_index_;
  PickleRef none_ = kNoPickleRef;
  PickleRef true_ = kNoPickleRef;
  PickleRef false_ = kNoPickleRef;
  PickleRef empty_tuple_ = kNoPickleRef;
  std::vector<PickleRef> small_ = std::vector<PickleRef>(256, kNoPickleRef);
  Pickle pickle_;
};

}  // namespace msprobe::formats
