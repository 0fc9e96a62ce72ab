// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.hpp"

#include <fmt/format.h>

#include <bit>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {

std::string_view kind_name(PickleKind kind) {
  constexpr std::string_view kNames[] = {"None",      "a bool",   "an integer", "an integer beyond 64 bits",
                                         "a float",   "a string", "bytes",      "a tuple",
                                         "a list",    "a set",    "a dict",     "a global name",
                                         "an object", "a storage"};
  return kNames[static_cast<std::size_t>(kind)];
}

void Pickle::wrong_kind(PickleRef ref, std::string_view wanted) const {
  throw FormatError(display(name_),
                    fmt::format("the pickle has {} instead of {}", kind_name(kind(ref)), wanted));
}

const Pickle::PickleNode& Pickle::expect(PickleRef ref, PickleKind kind) const {
  const PickleNode& found = node(ref);
  if (found.kind != kind) wrong_kind(ref, kind_name(kind));
  return found;
}

bool Pickle::boolean(PickleRef ref) const {
  return expect(ref, PickleKind::boolean).value != 0;
}

std::int64_t Pickle::integer(PickleRef ref) const {
  return static_cast<std::int64_t>(expect(ref, PickleKind::integer).value);
}

double Pickle::real(PickleRef ref) const {
  return std::bit_cast<double>(expect(ref, PickleKind::real).value);
}

std::string_view Pickle::text(PickleRef ref) const {
  expect(ref, PickleKind::text);
  return raw(ref);
}

std::string_view Pickle::raw(PickleRef ref) const {
  const PickleNode& found = node(ref);
  const bool has_characters = found.kind == PickleKind::text || found.kind == PickleKind::bytes ||
                              found.kind == PickleKind::big_integer;
  if (!has_characters) wrong_kind(ref, "a string");
  return std::string_view(characters_).substr(static_cast<std::size_t>(found.value), found.count);
}

std::span<const PickleRef> Pickle::items(PickleRef ref) const {
  const PickleNode& found = node(ref);
  const auto at = static_cast<std::size_t>(found.value);
  if (found.kind == PickleKind::tuple) return std::span(tuple_items_).subspan(at, found.count);
  if (found.kind == PickleKind::list || found.kind == PickleKind::set) return containers_[at];
  wrong_kind(ref, "a sequence");
}

std::span<const PickleRef> Pickle::pairs(PickleRef ref) const {
  return containers_[static_cast<std::size_t>(expect(ref, PickleKind::dict).value)];
}

std::optional<PickleRef> Pickle::find(PickleRef dict, std::string_view key) const {
  const auto all = pairs(dict);
  for (std::size_t i = all.size(); i >= 2; i -= 2) {
    if (kind(all[i - 2]) == PickleKind::text && text(all[i - 2]) == key) return all[i - 1];
  }
  return {};
}

const PickleGlobal& Pickle::global(PickleRef ref) const {
  return globals_[static_cast<std::size_t>(expect(ref, PickleKind::global).value)];
}

const PickleObject& Pickle::object(PickleRef ref) const {
  return objects_[static_cast<std::size_t>(expect(ref, PickleKind::object).value)];
}

PickleRef Pickle::persistent_id(PickleRef ref) const {
  return static_cast<PickleRef>(expect(ref, PickleKind::persistent).value);
}

}  // namespace msprobe::formats
