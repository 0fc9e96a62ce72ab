// SPDX-License-Identifier: Apache-2.0
// Loads a pickle and visits every value of it: each handle must lead to a value. Scans it as well: what can
// be loaded can be followed, to the same end and to the same names.
#include "formats/pickle.hpp"

#include <cstddef>
#include <cstdint>

#include "formats/pickle_scan.hpp"
#include "formats/pickle_search.hpp"
#include "formats/unpickler.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

namespace {

using msprobe::formats::kNoPickleRef;
using msprobe::formats::Pickle;
using msprobe::formats::PickleGlobal;
using msprobe::formats::PickleKind;
using msprobe::formats::PickleRef;
using msprobe::formats::PickleScan;

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

// Names that are too long to be any are not followed over the stack.
bool is_same(const PickleGlobal& loaded, const PickleGlobal& scanned) {
  constexpr std::size_t kLongest = 500;
  if (loaded.module.size() > kLongest || loaded.name.size() > kLongest) return true;
  return loaded.module == scanned.module && loaded.name == scanned.name && loaded.offset == scanned.offset &&
         loaded.called == scanned.called && !scanned.computed;
}

void compare_scan(const Pickle& pickle, const PickleScan& scan) {
  if (!scan.failure.empty() || scan.end != pickle.end()) __builtin_trap();
  if (scan.globals.size() > pickle.globals().size()) __builtin_trap();
  for (std::size_t i = 0; i < scan.globals.size(); ++i) {
    if (scan.globals.size() == pickle.globals().size() && !is_same(pickle.globals()[i], scan.globals[i]))
      __builtin_trap();
  }
}

}  // namespace

FUZZ_TARGET(pickle)(const std::uint8_t* data, std::size_t size) {
  static volatile std::size_t sink = 0;
  const auto input = msprobe::fuzz_input(data, size);
  const PickleScan scan = msprobe::formats::scan_pickle(*input, 0);
  if (scan.end > size) __builtin_trap();
  sink = sink + msprobe::formats::search_dangerous_names(*input, 0).size();
  msprobe::unless_refused([&] {
    const Pickle pickle = msprobe::formats::load_pickle(
        *input, 0, {.max_bytes = 1 << 20, .max_opcodes = 100'000, .max_stack = 10'000});
    compare_scan(pickle, scan);
    check(pickle, pickle.root());
    if (pickle.end() > size) __builtin_trap();
    for (std::uint32_t i = 0; i < pickle.size(); ++i) sink = sink + visit(pickle, PickleRef{i});
  });
}
