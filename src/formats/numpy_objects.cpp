// SPDX-License-Identifier: Apache-2.0
#include "formats/numpy_objects.hpp"

#include <cstdint>
#include <string_view>

namespace msprobe::formats {
namespace {

// numpy/core/include/numpy/ndarraytypes.h: NPY_ITEM_REFCOUNT, NPY_LIST_PICKLE, NPY_ITEM_IS_POINTER.
constexpr std::int64_t kPointerFlags = 0x01 | 0x02 | 0x04;
constexpr std::int64_t kObjectFlags = 0x3f;  // of the type of objects
// The limit for types nested within types.
constexpr int kMostDepth = 16;

class NumpyObjects {
 public:
  explicit NumpyObjects(const Pickle& pickle) : pickle_(pickle) {}

  NumpyFinding run() {
    for (std::size_t i = 0; i < pickle_.size() && worst_.rating != Rating::dangerous; ++i) {
      const auto ref = static_cast<PickleRef>(i);
      if (pickle_.kind(ref) == PickleKind::object) look_at(ref, pickle_.object(ref));
    }
    return worst_;
  }

 private:
  void note(Rating rating, std::string_view what) {
    if (rating > worst_.rating) worst_ = {rating, std::string(what)};
  }

  /// "numpy.dtype"; empty for a name outside NumPy.
  std::string numpy_name(PickleRef ref) const {
    if (ref == kNoPickleRef || pickle_.kind(ref) != PickleKind::global) return {};
    std::string name = pickle_.global(ref).full_name();
    return name.starts_with("numpy.") ? name : std::string();
  }

  void look_at(PickleRef ref, const PickleObject& object) {
    const std::string name = numpy_name(object.callable);
    if (name.empty()) return;
    if (object.items != kNoPickleRef || object.pairs != kNoPickleRef)
      note(Rating::dangerous, "a NumPy object that is changed item by item");
    if (name == "numpy.ndarray") note(Rating::dangerous, "memory that is looked at as a NumPy array");
    if (name.ends_with("._frombuffer") && !is_buffer(object.args))
      note(Rating::dangerous, "a NumPy array over the memory of an object");
    if (name == "numpy.dtype") look_at_type(ref, object);
  }

  bool is_buffer(PickleRef args) const {
    if (args == kNoPickleRef || pickle_.kind(args) != PickleKind::tuple || pickle_.items(args).empty())
      return false;
    const PickleRef first = pickle_.items(args)[0];
    if (pickle_.kind(first) == PickleKind::bytes || pickle_.kind(first) == PickleKind::persistent)
      return true;
    // A bytearray is a call in protocols before 5.
    return pickle_.kind(first) == PickleKind::object && is_bytearray(pickle_.object(first).callable);
  }

  bool is_bytearray(PickleRef callable) const {
    return callable != kNoPickleRef && pickle_.kind(callable) == PickleKind::global &&
           pickle_.global(callable).full_name() == "builtins.bytearray";
  }

  /// The name that the type was constructed with: "f8"; empty if the value is not a type, or was constructed
  /// in another way.
  std::string_view type_name(PickleRef ref) const {
    if (ref == kNoPickleRef || pickle_.kind(ref) != PickleKind::object) return {};
    const PickleObject& object = pickle_.object(ref);
    if (numpy_name(object.callable) != "numpy.dtype" || object.args == kNoPickleRef ||
        pickle_.kind(object.args) != PickleKind::tuple || pickle_.items(object.args).empty())
      return {};
    const PickleRef name = pickle_.items(object.args)[0];
    return pickle_.kind(name) == PickleKind::text ? pickle_.text(name) : std::string_view();
  }

  /// Are there objects in the base or the fields of a type?
  bool holds_objects(PickleRef ref, int depth) const {
    const std::string_view name = type_name(ref);
    if (name.empty() || depth > kMostDepth) return true;
    if (is_object_type(name)) return true;
    const PickleRef state = pickle_.object(ref).state;
    return state != kNoPickleRef && pickle_.kind(state) == PickleKind::tuple &&
           parts_hold_objects(state, depth);
  }

  bool parts_hold_objects(PickleRef state, int depth) const {
    const auto parts = pickle_.items(state);
    const auto in_tuple = [&](PickleRef tuple) {
      return pickle_.kind(tuple) != PickleKind::tuple || pickle_.items(tuple).empty() ||
             holds_objects(pickle_.items(tuple)[0], depth + 1);
    };
    if (parts.size() < 5) return false;
    if (pickle_.kind(parts[2]) != PickleKind::none && in_tuple(parts[2])) return true;
    if (pickle_.kind(parts[4]) != PickleKind::dict) return pickle_.kind(parts[4]) != PickleKind::none;
    const auto fields = pickle_.pairs(parts[4]);
    for (std::size_t i = 1; i < fields.size(); i += 2) {
      if (in_tuple(fields[i])) return true;
    }
    return false;
  }

  static bool is_object_type(std::string_view name) {
    return name.find('O') != std::string_view::npos || name.find("object") != std::string_view::npos;
  }

  void look_at_type(PickleRef ref, const PickleObject& object) {
    const std::string_view name = type_name(ref);
    if (name.empty()) return note(Rating::unknown, "a NumPy type without a name");
    const bool objects = is_object_type(name);
    if (objects) note(Rating::unknown, "a NumPy array of objects");
    if (object.state == kNoPickleRef) return;
    // (version, byte order, base, names, fields, size, alignment, flags and, of dates, a unit)
    if (pickle_.kind(object.state) != PickleKind::tuple) return note(Rating::dangerous, kState);
    const auto state = pickle_.items(object.state);
    if (state.size() < 8 || state.size() > 9 || pickle_.kind(state[7]) != PickleKind::integer)
      return note(Rating::dangerous, kState);
    const std::int64_t flags = pickle_.integer(state[7]);
    const bool right = objects                               ? flags == kObjectFlags
                       : parts_hold_objects(object.state, 0) ? (flags & kPointerFlags) != 0
                                                             : (flags & kPointerFlags) == 0;
    if (!right) note(Rating::dangerous, kState);
  }

  static constexpr std::string_view kState = "a NumPy type whose state is not that of its elements";

  const Pickle& pickle_;
  NumpyFinding worst_;
};

}  // namespace

NumpyFinding rate_numpy_objects(const Pickle& pickle) {
  return NumpyObjects(pickle).run();
}

}  // namespace msprobe::formats
