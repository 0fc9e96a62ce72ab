// SPDX-License-Identifier: Apache-2.0
#include "formats/unpickler.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <map>
#include <utility>

#include "formats/limits.hpp"
#include "formats/pickle_containers.hpp"
#include "formats/pickle_opcodes.hpp"
#include "formats/pickle_stack.hpp"
#include "formats/pickle_stream.hpp"
#include "formats/pickle_text.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using Op = PickleOp;

constexpr std::uint8_t kNewestProtocol = 5;
// Each takes the memory of many opcodes, and no data needs as many.
constexpr std::size_t kMostGlobals = 100'000;
// Of a vector or a string that grows, with its copy.
constexpr std::uint64_t kGrowth = 2;
// A name that was not there before, with its place in the index.
constexpr std::uint64_t kGlobal = 200;

}  // namespace

class Unpickler {
 public:
  Unpickler(const ByteSource& source, std::uint64_t offset, const PickleLimits& limits)
      : stream_(source, offset, limits.max_bytes),
        limits_(limits),
        allowance_(limits.file_size == 0 ? source.size() : limits.file_size),
        stack_(stream_, limits.max_stack),
        memo_(stream_) {
    pickle_.name_ = source.name();
  }

  Pickle run() {
    while (true) {
      charge(1);
      const auto op = static_cast<Op>(stream_.u8());
      if (op == Op::stop) break;
      if (!push_scalar(op) && !push_text(op) && !move_stack(op) && !fill_container(op)) call_or_refuse(op);
      charge_stores();
    }
    stream_.end_of_pickle();
    pickle_.root_ = stack_.result();
    pickle_.end_ = stream_.position();
    return std::move(pickle_);
  }

 private:
  using Node = Pickle::Node;

  [[noreturn]] void fail(const std::string& reason) const { stream_.fail(reason); }

  // Everything that takes memory or time is counted as opcodes are.
  void charge(std::uint64_t amount) {
    if (amount > limits_.max_opcodes - spent_)
      fail(fmt::format("more than {} steps refused", limits_.max_opcodes));
    spent_ += amount;
  }

  void charge_memory(std::uint64_t bytes) {
    if (!allowance_.take(bytes)) fail("refused: its values take too much memory for a file of its size");
    pickle_.memory_ += bytes;
  }

  // The stack and the memo grow in many places.
  void charge_stores() {
    const std::uint64_t memory = stack_.memory() + memo_.memory();
    if (memory <= stores_) return;
    charge_memory(memory - stores_);
    stores_ = memory;
  }

  // What has nothing of its own needs to be there once only.
  PickleRef shared(PickleRef& known, PickleKind kind, std::uint64_t value) {
    if (known == kNoPickleRef) known = add(kind, value);
    return known;
  }

  PickleRef add(PickleKind kind, std::uint64_t value, std::size_t count = 0) {
    charge_memory(sizeof(Node));
    if (pickle_.nodes_.size() >= static_cast<std::uint32_t>(kNoPickleRef)) fail("too many values");
    pickle_.nodes_.push_back(Node{.kind = kind, .count = static_cast<std::uint32_t>(count), .value = value});
    return static_cast<PickleRef>(pickle_.nodes_.size() - 1);
  }

  PickleRef add_characters(PickleKind kind, std::string_view characters) {
    charge_memory(kGrowth * std::uint64_t{characters.size()});
    const std::size_t begin = pickle_.characters_.size();
    pickle_.characters_ += characters;
    return add(kind, begin, characters.size());
  }

  PickleRef add_tuple(std::span<const PickleRef> items) {
    if (items.empty()) return shared(empty_tuple_, PickleKind::tuple, 0);
    charge_memory(kGrowth * std::uint64_t{items.size_bytes()});
    const std::size_t begin = pickle_.tuple_items_.size();
    pickle_.tuple_items_.insert(pickle_.tuple_items_.end(), items.begin(), items.end());
    return add(PickleKind::tuple, begin, items.size());
  }

  PickleRef add_container(PickleKind kind, std::span<const PickleRef> items = {}) {
    charge_memory(sizeof(std::vector<PickleRef>));
    charge_items(items.size(), true);
    pickle_.containers_.emplace_back(items.begin(), items.end());
    return add(kind, pickle_.containers_.size() - 1);
  }

  // Of a container; its first ones take a piece of memory of their own.
  void charge_items(std::size_t count, bool first) {
    constexpr std::uint64_t kPiece = 32;
    if (count == 0) return;
    charge_memory((first ? kPiece : 0) + kGrowth * sizeof(PickleRef) * std::uint64_t{count});
  }

  std::vector<PickleRef>& container(PickleRef ref) {
    return pickle_.containers_[static_cast<std::size_t>(pickle_.node(ref).value)];
  }

  PickleKind kind(PickleRef ref) const { return pickle_.kind(ref); }

  std::uint64_t key_line() {
    const auto key = decode_key(stream_.line());
    if (!key) fail("a number is malformed");
    return *key;
  }

  void push_integer(std::int64_t value) {
    const bool common = value >= 0 && value < static_cast<std::int64_t>(small_.size());
    stack_.push(common ? shared(small_[static_cast<std::size_t>(value)], PickleKind::integer,
                                static_cast<std::uint64_t>(value))
                       : add(PickleKind::integer, static_cast<std::uint64_t>(value)));
  }

  // Little-endian two's complement.
  void push_long(std::string_view bytes) {
    if (bytes.size() > 8) return stack_.push(add_characters(PickleKind::big_integer, bytes));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << (8 * i);
    }
    const bool negative = !bytes.empty() && (static_cast<std::uint8_t>(bytes.back()) & 0x80U) != 0;
    if (negative && bytes.size() < 8) value |= ~std::uint64_t{0} << (8 * bytes.size());
    push_integer(static_cast<std::int64_t>(value));
  }

  void push_number_line(std::string_view line) {
    charge(line.size());  // long numbers take time
    const auto bytes = decode_integer(line);
    if (!bytes) fail("a number is malformed");
    push_long(*bytes);
  }

  void push_boolean(bool value) {
    stack_.push(shared(value ? true_ : false_, PickleKind::boolean, value ? 1 : 0));
  }

  void push_int_line() {
    const std::string_view line = stream_.line();
    if (line == "00" || line == "01") return push_boolean(line == "01");
    push_number_line(line);
  }

  void push_long_line() {
    std::string_view line = stream_.line();
    if (line.ends_with('L')) line.remove_suffix(1);
    push_number_line(line);
  }

  bool push_scalar(Op op) {
    switch (op) {
      case Op::none:
        stack_.push(shared(none_, PickleKind::none, 0));
        return true;
      case Op::newtrue:
      case Op::newfalse:
        push_boolean(op == Op::newtrue);
        return true;
      case Op::binint:
        push_integer(static_cast<std::int32_t>(stream_.little<std::uint32_t>()));
        return true;
      case Op::binint1:
        push_integer(stream_.u8());
        return true;
      case Op::binint2:
        push_integer(stream_.little<std::uint16_t>());
        return true;
      case Op::long1:
        push_long(stream_.characters(stream_.u8()));
        return true;
      case Op::long4: {
        const auto length = stream_.little<std::uint32_t>();
        if (length > 0x7fffffff) fail("a negative length");
        push_long(stream_.characters(length));
        return true;
      }
      case Op::int_line:
        push_int_line();
        return true;
      case Op::long_line:
        push_long_line();
        return true;
      case Op::real_line: {
        const auto value = parse_number(stream_.line());
        if (!value) fail("a number is malformed");
        stack_.push(add(PickleKind::real, std::bit_cast<std::uint64_t>(*value)));
        return true;
      }
      case Op::binfloat:
        stack_.push(add(PickleKind::real, __builtin_bswap64(stream_.little<std::uint64_t>())));
        return true;
      default:
        return false;
    }
  }

  void push_characters(PickleKind kind, std::uint64_t length) {
    stack_.push(add_characters(kind, stream_.characters(length)));
  }

  void push_decoded(const std::optional<std::string>& text) {
    if (!text) fail("a string is malformed");
    stack_.push(add_characters(PickleKind::text, *text));
  }

  bool push_text(Op op) {
    switch (op) {
      case Op::binunicode:
        push_characters(PickleKind::text, stream_.little<std::uint32_t>());
        return true;
      case Op::short_binunicode:
      case Op::short_binstring:
        push_characters(PickleKind::text, stream_.u8());
        return true;
      case Op::binunicode8:
        push_characters(PickleKind::text, stream_.little<std::uint64_t>());
        return true;
      case Op::binstring: {
        const auto length = stream_.little<std::uint32_t>();
        if (length > 0x7fffffff) fail("a negative length");
        push_characters(PickleKind::text, length);
        return true;
      }
      case Op::binbytes:
        push_characters(PickleKind::bytes, stream_.little<std::uint32_t>());
        return true;
      case Op::short_binbytes:
        push_characters(PickleKind::bytes, stream_.u8());
        return true;
      case Op::binbytes8:
      case Op::bytearray8:
        push_characters(PickleKind::bytes, stream_.little<std::uint64_t>());
        return true;
      case Op::string_line:
        push_decoded(decode_quoted(stream_.line()));
        return true;
      case Op::unicode_line:
        push_decoded(decode_raw_unicode(stream_.line()));
        return true;
      default:
        return false;
    }
  }

  bool move_stack(Op op) {
    switch (op) {
      case Op::mark:
        charge(1);  // a mark takes memory that max_stack does not see
        stack_.mark();
        return true;
      case Op::pop:
        stack_.pop_value_or_mark();
        return true;
      case Op::pop_mark:
        stack_.drop_to_mark();
        return true;
      case Op::dup:
        stack_.push(stack_.top());
        return true;
      case Op::put:
        memo_.put(key_line(), stack_.top());
        return true;
      case Op::binput:
        memo_.put(stream_.u8(), stack_.top());
        return true;
      case Op::long_binput:
        memo_.put(stream_.little<std::uint32_t>(), stack_.top());
        return true;
      case Op::memoize:
        memo_.append(stack_.top());
        return true;
      case Op::get:
        stack_.push(memo_.get(key_line()));
        return true;
      case Op::binget:
        stack_.push(memo_.get(stream_.u8()));
        return true;
      case Op::long_binget:
        stack_.push(memo_.get(stream_.little<std::uint32_t>()));
        return true;
      case Op::proto: {
        const std::uint8_t version = stream_.u8();
        if (version > kNewestProtocol) fail(fmt::format("protocol {} is not known", version));
        return true;
      }
      case Op::frame:
        stream_.begin_frame(stream_.little<std::uint64_t>());
        return true;
      default:
        return false;
    }
  }

  void replace_since_mark(PickleRef made) {
    stack_.drop_to_mark();
    stack_.push(made);
  }

  void replace_last(std::size_t count) {
    const PickleRef made = add_tuple(stack_.last(count));
    stack_.drop(count);
    stack_.push(made);
  }

  // The list of what was appended to an object, or the dict of what was set in it.
  PickleRef part_of(PickleRef object, PickleRef PickleObject::*part, PickleKind part_kind) {
    const auto index = static_cast<std::size_t>(pickle_.node(object).value);
    if (pickle_.objects_[index].*part == kNoPickleRef)
      pickle_.objects_[index].*part = add_container(part_kind);
    return pickle_.objects_[index].*part;
  }

  void append_to(PickleRef target, std::span<const PickleRef> items, PickleKind wanted) {
    if (kind(target) == PickleKind::object)
      target = part_of(target, &PickleObject::items, PickleKind::list);
    else if (kind(target) != wanted)
      fail(fmt::format("it adds items to {}", kind_name(kind(target))));
    auto& content = container(target);
    charge_items(items.size(), content.empty());
    content.insert(content.end(), items.begin(), items.end());
  }

  void set_in(PickleRef target, std::span<const PickleRef> pairs) {
    if (pairs.size() % 2 != 0) fail("a key without a value");
    if (kind(target) == PickleKind::object)
      target = part_of(target, &PickleObject::pairs, PickleKind::dict);
    else if (kind(target) != PickleKind::dict)
      fail(fmt::format("it sets items of {}", kind_name(kind(target))));
    auto& content = container(target);
    charge_items(pairs.size(), content.empty());
    content.insert(content.end(), pairs.begin(), pairs.end());
  }

  bool fill_container(Op op) {
    switch (op) {
      case Op::empty_tuple:
        stack_.push(add_tuple({}));
        return true;
      case Op::empty_list:
        stack_.push(add_container(PickleKind::list));
        return true;
      case Op::empty_dict:
        stack_.push(add_container(PickleKind::dict));
        return true;
      case Op::empty_set:
        stack_.push(add_container(PickleKind::set));
        return true;
      case Op::tuple1:
        replace_last(1);
        return true;
      case Op::tuple2:
        replace_last(2);
        return true;
      case Op::tuple3:
        replace_last(3);
        return true;
      case Op::tuple:
        replace_since_mark(add_tuple(stack_.since_mark()));
        return true;
      case Op::list:
        replace_since_mark(add_container(PickleKind::list, stack_.since_mark()));
        return true;
      case Op::frozenset:
        replace_since_mark(add_container(PickleKind::set, stack_.since_mark()));
        return true;
      case Op::dict:
        if (stack_.since_mark().size() % 2 != 0) fail("a key without a value");
        replace_since_mark(add_container(PickleKind::dict, stack_.since_mark()));
        return true;
      case Op::append: {
        const PickleRef item = stack_.pop();
        append_to(stack_.top(), std::span(&item, 1), PickleKind::list);
        return true;
      }
      case Op::appends:
      case Op::additems:
        append_to(stack_.below_mark(), stack_.since_mark(),
                  op == Op::appends ? PickleKind::list : PickleKind::set);
        stack_.drop_to_mark();
        return true;
      case Op::setitem: {
        const auto pair = stack_.last(2);
        const std::array both = {pair[0], pair[1]};
        stack_.drop(2);
        set_in(stack_.top(), both);
        return true;
      }
      case Op::setitems:
        set_in(stack_.below_mark(), stack_.since_mark());
        stack_.drop_to_mark();
        return true;
      default:
        return false;
    }
  }

  PickleRef add_global(std::string module, std::string name, std::uint64_t offset) {
    PickleGlobal mention{.module = std::move(module), .name = std::move(name), .offset = offset};
    const auto [at, is_new] =
        global_index_.try_emplace(std::pair(mention.module, mention.name), pickle_.globals_.size());
    if (is_new) {
      if (at->second == kMostGlobals) fail(fmt::format("more than {} names refused", kMostGlobals));
      charge_memory(kGlobal + 2 * (std::uint64_t{mention.module.size()} + mention.name.size()));
      pickle_.globals_.push_back(std::move(mention));
    }
    return add(PickleKind::global, at->second);
  }

  PickleRef global_from_lines() {
    const std::uint64_t offset = stream_.position() - 1;
    std::string module(stream_.line());
    return add_global(std::move(module), std::string(stream_.line()), offset);
  }

  PickleRef global_from_stack() {
    const auto names = stack_.last(2);
    if (kind(names[0]) != PickleKind::text || kind(names[1]) != PickleKind::text)
      fail("a global without a name");
    // Each mention copies two strings that may come from the memo, so their length counts.
    charge((pickle_.raw(names[0]).size() + pickle_.raw(names[1]).size()) / 16);
    std::string module(pickle_.text(names[0]));
    std::string name(pickle_.text(names[1]));
    stack_.drop(2);
    return add_global(std::move(module), std::move(name), stream_.position() - 1);
  }

  PickleRef evaluate(const ContainerName& type, PickleRef args) {
    auto given = pickle_.items(args);
    if (type.takes_factory && !given.empty()) given = given.subspan(1);
    std::vector<PickleRef> content;
    if (!given.empty()) {
      const PickleRef from = given[0];
      const bool mapping = type.container == PythonContainer::dict && kind(from) == PickleKind::dict;
      const auto items = mapping ? pickle_.pairs(from) : pickle_.items(from);
      charge(items.size());
      content.assign(items.begin(), items.end());
      if (type.container == PythonContainer::dict && !mapping) {
        charge(items.size());
        content.clear();
        for (const PickleRef item : items) {
          const auto pair = pickle_.items(item);
          if (pair.size() != 2) fail("a dict made of something else than pairs");
          content.insert(content.end(), pair.begin(), pair.end());
        }
      }
    }
    switch (type.container) {
      case PythonContainer::dict:
        return add_container(PickleKind::dict, content);
      case PythonContainer::set:
        return add_container(PickleKind::set, content);
      case PythonContainer::list:
        return add_container(PickleKind::list, content);
      case PythonContainer::tuple:
        break;
    }
    return add_tuple(content);
  }

  PickleRef call(PickleRef callable, PickleRef args, PickleRef kwargs = kNoPickleRef) {
    if (kind(args) != PickleKind::tuple)
      fail(fmt::format("a call with {} for arguments", kind_name(kind(args))));
    if (kind(callable) == PickleKind::global) {
      PickleGlobal& callee = pickle_.globals_[static_cast<std::size_t>(pickle_.node(callable).value)];
      const std::string name = callee.full_name();
      const ContainerName* type = container_of_name(name);
      if (type != nullptr && kwargs == kNoPickleRef) return evaluate(*type, args);
      callee.called = true;
    } else if (kind(callable) != PickleKind::object && kind(callable) != PickleKind::persistent) {
      fail(fmt::format("it calls {}", kind_name(kind(callable))));
    }
    charge_memory(sizeof(PickleObject));
    pickle_.objects_.push_back(PickleObject{.callable = callable, .args = args, .kwargs = kwargs});
    return add(PickleKind::object, pickle_.objects_.size() - 1);
  }

  void build() {
    const PickleRef state = stack_.pop();
    const PickleRef target = stack_.top();
    switch (kind(target)) {
      case PickleKind::object:
        pickle_.objects_[static_cast<std::size_t>(pickle_.node(target).value)].state = state;
        return;
      // Attributes of containers (such as the _metadata of a state dict) are no data.
      case PickleKind::dict:
      case PickleKind::list:
      case PickleKind::set:
        return;
      default:
        fail(fmt::format("it sets the state of {}", kind_name(kind(target))));
    }
  }

  void add_persistent(PickleRef id) {
    const PickleRef made = add(PickleKind::persistent, static_cast<std::uint32_t>(id));
    charge_memory(kGrowth * sizeof(PickleRef));
    pickle_.persistents_.push_back(made);
    stack_.push(made);
  }

  void call_or_refuse(Op op) {
    switch (op) {
      case Op::global:
        return stack_.push(global_from_lines());
      case Op::stack_global:
        return stack_.push(global_from_stack());
      case Op::persid:
        return add_persistent(add_characters(PickleKind::text, stream_.line()));
      case Op::binpersid:
        return add_persistent(stack_.pop());
      case Op::reduce:
      case Op::newobj: {
        const PickleRef args = stack_.pop();
        const PickleRef callable = stack_.pop();
        return stack_.push(call(callable, args));
      }
      case Op::newobj_ex: {
        const PickleRef kwargs = stack_.pop();
        const PickleRef args = stack_.pop();
        const PickleRef callable = stack_.pop();
        if (kind(kwargs) != PickleKind::dict) fail("a call without a dict of keywords");
        return stack_.push(call(callable, args, kwargs));
      }
      case Op::inst: {
        const PickleRef callable = global_from_lines();
        const PickleRef args = add_tuple(stack_.since_mark());
        stack_.drop_to_mark();
        return stack_.push(call(callable, args));
      }
      case Op::obj: {
        const auto values = stack_.since_mark();
        if (values.empty()) fail("stack underflow");
        const PickleRef callable = values[0];
        const PickleRef args = add_tuple(values.subspan(1));
        stack_.drop_to_mark();
        return stack_.push(call(callable, args));
      }
      case Op::build:
        return build();
      case Op::ext1:
      case Op::ext2:
      case Op::ext4:
        fail("refused: it uses Python's extension registry");
      case Op::next_buffer:
      case Op::readonly_buffer:
        fail("refused: it refers to buffers outside the file");
      default:
        fail(fmt::format("unknown opcode 0x{:02x}", static_cast<unsigned>(op)));
    }
  }

  PickleStream stream_;
  PickleLimits limits_;
  Allowance allowance_;
  std::uint64_t spent_ = 0;
  std::uint64_t stores_ = 0;  // charged for the stack and the memo
  PickleStack stack_;
  PickleMemo memo_;
  std::map<std::pair<std::string, std::string>, std::size_t> global_index_;
  PickleRef none_ = kNoPickleRef;
  PickleRef true_ = kNoPickleRef;
  PickleRef false_ = kNoPickleRef;
  PickleRef empty_tuple_ = kNoPickleRef;
  std::vector<PickleRef> small_ = std::vector<PickleRef>(256, kNoPickleRef);
  Pickle pickle_;
};

Pickle load_pickle(const ByteSource& source, std::uint64_t offset, const PickleLimits& limits) {
  return Unpickler(source, offset, limits).run();
}

}  // namespace msprobe::formats
