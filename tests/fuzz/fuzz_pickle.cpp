// SPDX-License-Identifier: Apache-2.0
// Loads a pickle and visits every value of it: each handle must lead to a value.
#include "formats/pickle.hpp"

#include <cstddef>
#include <cstdint>

#include "formats/unpickler.hpp"
#include "fuzz_input.hpp"
#include "support/error.hpp"

namespace {

using msprobe::formats::kNoPickleRef;
using msprobe::formats::Pickle;
using msprobe::formats::PickleKind;
using msprobe::formats::PickleRef;

void check(const Pickle& pickle, PickleRef ref) {
  if (static_cast<std::size_t>(ref) >= pickle.size()) __builtin_trap();
}

void check_optional(const Pickle& pickle, PickleRef ref, PickleKind kind) {
  if (ref == kNoPickleRef) return;
  check(pickle, ref);
  if (pickle.kind(ref) != kind) __builtin_trap();
}

// Adds up all characters, so that a sanitizer sees each of them read.
std::size_t visit(const Pickle& pickle, PickleRef ref) {
  std::size_t sum = 0;
  switch (pickle.kind(ref)) {
    case PickleKind::none:
      break;
    case PickleKind::boolean:
      return pickle.boolean(ref) ? 1 : 0;
    case PickleKind::integer:
      return static_cast<std::size_t>(pickle.integer(ref));
    case PickleKind::real:
      return pickle.real(ref) > 0 ? 1 : 0;
    case PickleKind::big_integer:
    case PickleKind::text:
    case PickleKind::bytes:
      for (const char c : pickle.raw(ref)) sum += static_cast<unsigned char>(c);
      break;
    case PickleKind::tuple:
    case PickleKind::list:
    case PickleKind::set:
      for (const PickleRef item : pickle.items(ref)) check(pickle, item);
      break;
    case PickleKind::dict:
      if (pickle.pairs(ref).size() % 2 != 0) __builtin_trap();
      for (const PickleRef item : pickle.pairs(ref)) check(pickle, item);
      sum += pickle.find(ref, "a").has_value() ? 1 : 0;
      break;
    case PickleKind::global:
      return pickle.global(ref).full_name().size();
    case PickleKind::object: {
      const auto& object = pickle.object(ref);
      check(pickle, object.callable);
      check_optional(pickle, object.args, PickleKind::tuple);
      check_optional(pickle, object.kwargs, PickleKind::dict);
      if (object.state != kNoPickleRef) check(pickle, object.state);
      check_optional(pickle, object.items, PickleKind::list);
      check_optional(pickle, object.pairs, PickleKind::dict);
      break;
    }
    case PickleKind::persistent:
      check(pickle, pickle.persistent_id(ref));
      break;
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static volatile std::size_t sink = 0;
  try {
    const Pickle pickle =
        msprobe::formats::load_pickle(*msprobe::fuzz_input(data, size), 0,
                                      {.max_bytes = 1 << 20, .max_opcodes = 100'000, .max_stack = 10'000});
    check(pickle, pickle.root());
    if (pickle.end() > size) __builtin_trap();
    for (std::uint32_t i = 0; i < pickle.size(); ++i) sink = sink + visit(pickle, PickleRef{i});
  } catch (const msprobe::FormatError&) {
  }
  return 0;
}
