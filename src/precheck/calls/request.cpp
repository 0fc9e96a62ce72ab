// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "dump/names.hpp"
#include "dump/operations.hpp"
#include "dump/recorded_call.hpp"
#include "formats/stored_tensor.hpp"
#include "precheck/calls/call_types.hpp"
#include "precheck/calls/not_rebuilt.hpp"
#include "precheck/runner/tags.hpp"
#include "support/crc32.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::precheck {
namespace {

using dump::ArgumentKind;
using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;
using tensor::DType;

constexpr int kMaxArgumentNesting = 16;
constexpr std::uint64_t kMaxPayload = std::uint64_t{16} << 30;  // of one call
constexpr std::size_t kArgumentPiece = std::size_t{1} << 20;

constexpr std::array<std::string_view, 20> kNumpyScalars{
    "numpy.int8",    "numpy.int16",      "numpy.int32",       "numpy.int64",    "numpy.uint8",
    "numpy.uint16",  "numpy.uint32",     "numpy.uint64",      "numpy.float16",  "numpy.float32",
    "numpy.float64", "numpy.complex64",  "numpy.complex128",  "numpy.bool_",    "numpy.str_",
    "numpy.bytes_",  "numpy.datetime64", "numpy.timedelta64", "numpy.longlong", "numpy.bool",
};

bool is_tensor_type(std::string_view type) {
  return type == "torch.Tensor" || type == "torch.nn.parameter.Parameter" || type == "mindspore.Tensor";
}

std::uint32_t seed_of(const std::string& text) {
  return crc32(0, std::as_bytes(std::span(text)));
}

Bound bound_of(const Entry& entry, Node node, std::string_view key) {
  Bound bound;
  const Node member = entry.find(node, key);
  if (member == Entry::kNone) return bound;
  if (entry.is(member, NodeKind::boolean)) {
    bound.kind = Bound::BoundKind::integer;
    bound.integer = entry.boolean(member) ? 1 : 0;
  } else if (entry.is(member, NodeKind::integer)) {
    const auto integer = entry.integer(member);
    bound.kind = integer ? Bound::BoundKind::integer : Bound::BoundKind::real;
    if (integer) {
      bound.integer = *integer;
    } else {
      bound.real = entry.number(member);
    }
  } else if (entry.is(member, NodeKind::real)) {
    bound.kind = Bound::BoundKind::real;
    bound.real = entry.number(member);
    if (std::fabs(bound.real) < 0x1p53 && bound.real == std::floor(bound.real))
      bound.integer = static_cast<std::int64_t>(bound.real);
  }
  return bound;
}

/// Rounds numbers to HF32, which has 12 bits less in the significand.
void round_to_hf32(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, 4);
    bits = ((bits >> 11) + 1) >> 1 << 12;
    std::memcpy(bytes.data() + at, &bits, 4);
  }
}

/// Writes one argument list or one gradient.
class ArgumentWriter {
 public:
  ArgumentWriter(const PlannedCall& call, const RequestOptions& options, const TensorStore* store,
                 SharedFile& payload, RandomStream& stream)
      : call_(call), options_(options), store_(store), payload_(payload), stream_(&stream) {}

  /// The types among float16, bfloat16 and float32 that were seen.
  std::set<DType> floats;
  bool float8 = false;
  bool synthetic = false;
  double scale = 0;
  std::vector<RequestTensor> tensors;
  bool may_require_grad = true;
  bool has_dtype = false;

  /// The values that follow are for backward.
  void begin_gradients(RandomStream& stream) {
    stream_ = &stream;
    may_require_grad = false;
    gradients_ = true;
    leaves_ = 0;
  }

  void positional(JsonWriter& json, const Entry& entry, Node list) {
    json.open_list();
    std::size_t index = 0;
    entry.children(list, [&](Node child) {
      where_ = fmt::format("argument {}", index);
      position_ = index++;
      json.element();
      value(json, entry, child, 0);
    });
    json.close();
  }

  void keywords(JsonWriter& json, const Entry& entry, Node object) {
    json.open_object();
    if (object != Entry::kNone) {
      const bool causal = is_causal_mask(entry, object);
      entry.children(object, [&](Node child) {
        const std::string key(entry.key(child));
        where_ = fmt::format("argument '{}'", display(key));
        position_ = kNoPosition;
        json.key(key);
        if (causal && key == "atten_mask") {
          upper_triangle(json);
        } else {
          keyword(json, entry, child);
        }
      });
    }
    json.close();
  }

 private:
  static constexpr std::size_t kNoPosition = SIZE_MAX;

  bool is_causal_mask(const Entry& entry, Node keywords) const {
    if (!dump::is_listed("causal_mask", call_.api.name)) return false;
    const Node mode = entry.find(keywords, "sparse_mode");
    const auto value = entry.integer(entry.is(mode, NodeKind::object) ? entry.find(mode, "value") : mode);
    return value && *value >= 2 && *value <= 4;
  }

  void upper_triangle(JsonWriter& json) {
    constexpr std::size_t kSide = 2048;
    const std::uint64_t offset = payload_.begin_tensor();
    std::vector<std::byte> row(kSide, std::byte{0});
    for (std::size_t i = 0; i < kSide; ++i) {
      for (std::size_t j = 0; j < kSide; ++j) row[j] = std::byte{j > i ? std::uint8_t{1} : std::uint8_t{0}};
      payload_.append(row);
    }
    tagged_tensor(json, DType::boolean, DType::boolean, {kSide, kSide}, offset, false);
  }

  [[noreturn]] void refuse(const std::string& reason) const { throw NotRebuilt(where_ + ' ' + reason); }

  void keyword(JsonWriter& json, const Entry& entry, Node node) {
    if (is_dtype(entry.string(node, "type"))) {
      dtype(json, entry, node);
    } else {
      value(json, entry, node, 0);
    }
  }

  static bool is_dtype(std::string_view type) { return type == "torch.dtype" || type == "mindspore.dtype"; }

  void dtype(JsonWriter& json, const Entry& entry, Node node) {
    std::string_view name = entry.string(node, "value");
    std::string as_in_torch;
    if (const auto known = tensor::dtype_from_mindspore(name)) {
      as_in_torch = fmt::format("torch.{}", tensor::info(*known).name);
      name = as_in_torch;
    }
    const auto [library, attribute] = dump::split_last(name);
    const bool plain = !attribute.empty() && std::ranges::all_of(attribute, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    });
    if ((library != "torch" && library != "numpy") || !plain)
      refuse(fmt::format("is '{}', which is not an element type", display(name)));
    has_dtype = true;
    tagged(json, Tag::dtype, name);
  }

  void list(JsonWriter& json, const Entry& entry, Node node, int depth, bool as_tuple) {
    open_tagged(json, as_tuple ? Tag::tuple : Tag::list);
    json.open_list();
    entry.children(node, [&](Node child) {
      json.element();
      value(json, entry, child, depth + 1);
    });
    json.close();
    json.close();
  }

  /// Whether a list is an index, which Python gives as a tuple: it contains slices, for example.
  bool is_index(const Entry& entry, Node node) const {
    if (!dump::is_listed("subscript", call_.api.name)) return false;
    bool special = false;
    entry.children(node, [&](Node child) {
      const std::string_view type = entry.string(child, "type");
      special = special || type == "slice" || type == "ellipsis" || type == "torch.Tensor" ||
                entry.is(child, NodeKind::null);
    });
    return special || position_ == 1;
  }

  void value(JsonWriter& json, const Entry& entry, Node node, int depth) {
    if (depth > kMaxArgumentNesting) refuse("is nested too deeply");
    const dump::Argument argument = dump::read_argument(entry, node);
    const bool is_tensor = argument.kind == ArgumentKind::tensor && is_tensor_type(argument.type);
    if (argument.kind != ArgumentKind::list && !is_tensor) ++leaves_;
    switch (argument.kind) {
      case ArgumentKind::none:
        json.null();
        return;
      case ArgumentKind::plain:
        tagged(json, Tag::plain, entry, node);
        return;
      case ArgumentKind::list:
        list(json, entry, node, depth, depth == 0 && is_index(entry, node));
        return;
      case ArgumentKind::mapping:
        if (entry.empty(node)) refuse("was not recorded");
        mapping(json, entry, node, depth);
        return;
      case ArgumentKind::tensor:
        if (!is_tensor) refuse_type(argument.type);
        tensor(json, entry, node);
        return;
      case ArgumentKind::typed:
        typed(json, entry, node, argument);
    }
  }

  /// Opens an object with a tag; the caller closes it after its content.
  static void open_tagged(JsonWriter& json, Tag tag) {
    json.open_object();
    json.key(name_of(tag));
  }

  static void tagged(JsonWriter& json, Tag tag, const auto& content) {
    open_tagged(json, tag);
    json.value(content);
    json.close();
  }

  static void tagged(JsonWriter& json, Tag tag, const Entry& entry, Node node) {
    open_tagged(json, tag);
    dump::append_json(json, entry, node);
    json.close();
  }

  [[noreturn]] void refuse_type(std::string_view type) const {
    refuse(fmt::format("is a {}, which cannot be recreated", display(type)));
  }

  void typed(JsonWriter& json, const Entry& entry, Node node, const dump::Argument& argument) {
    const auto& [kind, type, content] = argument;
    if (type == "torch.memory_format") {
      tagged(json, Tag::memory_format, entry.string(node, "format"));
      return;
    }
    if (content == Entry::kNone) refuse_type(type);
    if (type.starts_with("numpy.")) {
      numpy(json, entry, content, type);
    } else if (type == "torch.Size") {
      tagged(json, Tag::size, entry, content);
    } else if (type == "slice") {
      tagged(json, Tag::slice, entry, content);
    } else if (type == "ellipsis") {
      tagged(json, Tag::ellipsis, true);
    } else if (type == "torch.device") {
      tagged(json, Tag::device, true);
    } else if (is_dtype(type)) {
      dtype(json, entry, node);
    } else if (entry.is_container(content)) {
      refuse_type(type);
    } else {
      tagged(json, Tag::plain, entry, content);
    }
  }

  void mapping(JsonWriter& json, const Entry& entry, Node node, int depth) {
    open_tagged(json, Tag::mapping);
    json.open_object();
    entry.children(node, [&](Node child) {
      json.key(entry.key(child));
      value(json, entry, child, depth + 1);
    });
    json.close();
    json.close();
  }

  void numpy(JsonWriter& json, const Entry& entry, Node content, std::string_view type) {
    if (std::find(kNumpyScalars.begin(), kNumpyScalars.end(), type) == kNumpyScalars.end()) refuse_type(type);
    open_tagged(json, Tag::numpy);
    json.open_list();
    json.value(type.substr(std::string_view("numpy.").size()));
    json.element();
    dump::append_json(json, entry, content);
    json.close();
    json.close();
  }

  void tagged_tensor(JsonWriter& json, DType stored, DType dtype, const std::vector<std::uint64_t>& shape,
                     std::uint64_t offset, bool requires_grad) {
    std::uint64_t size = tensor::info(stored).size;
    for (const std::uint64_t length : shape) size *= length;
    tensors.push_back({gradients_, leaves_++, stored, shape, offset, size});
    open_tagged(json, Tag::tensor);
    json.list(tensor::info(stored).name, shape, offset, tensor::info(dtype).name, requires_grad);
    json.close();
  }

  std::uint64_t count_of(const std::vector<std::uint64_t>& shape, DType dtype) {
    std::uint64_t count = 1;
    bool too_large = false;
    if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) return 0;
    for (const std::uint64_t length : shape) too_large |= __builtin_mul_overflow(count, length, &count);
    std::uint64_t bytes = 0;
    too_large |= __builtin_mul_overflow(count, tensor::info(dtype).size, &bytes);
    if (too_large || bytes > kMaxPayload - std::min(taken_, kMaxPayload))
      refuse(fmt::format("makes the arguments larger than {}", human_bytes(kMaxPayload)));
    taken_ += bytes;
    return count;
  }

  void note(DType dtype) {
    if (dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::float32) floats.insert(dtype);
    if (tensor::info(dtype).kind == tensor::DTypeKind::floating && tensor::info(dtype).size == 1)
      float8 = true;
  }

  /// Updates `scale`, the largest finite magnitude.
  void measure(DType dtype, std::span<const std::byte> bytes) {
    const tensor::DTypeInfo& type = tensor::info(dtype);
    const std::size_t parts = type.kind == tensor::DTypeKind::complex ? 2 : 1;
    if (type.kind != tensor::DTypeKind::floating && parts == 1) return;
    constexpr std::size_t kBlock = 4096;
    std::array<double, 2 * kBlock> values;
    for (std::size_t at = 0; at < bytes.size(); at += kBlock * type.size) {
      const std::size_t count = std::min(kBlock, (bytes.size() - at) / type.size);
      const std::span<double> block = std::span(values).first(count * parts);
      tensor::to_double(dtype, bytes.subspan(at, count * type.size), block);
      for (const double value : block) {
        if (std::isfinite(value)) scale = std::max(scale, std::fabs(value));
      }
    }
  }

  void tensor(JsonWriter& json, const Entry& entry, Node node) {
    const dump::TensorRecord record = dump::read_tensor(entry, node);
    const auto recorded = tensor::dtype_from_name(record.dtype);
    if (!recorded) refuse(fmt::format("has elements of the unknown type '{}'", display(record.dtype)));
    DType dtype = *recorded;
    // MindSpore's dumps do not record requires_grad, since MindSpore computes any gradient that a program
    // asks for.
    const bool requires_grad =
        may_require_grad && (record.requires_grad || options_.framework == Framework::mindspore);
    if (!record.file.empty() && store_ != nullptr) {
      dumped(json, dtype, std::string(record.file), requires_grad);
      return;
    }
    if (!record.shape) refuse("has a malformed shape");
    if (record.shape->size() > 64) refuse("has more than 64 axes");
    const std::vector<std::uint64_t> shape(record.shape->begin(), record.shape->end());
    // There is no file of a tensor without elements.
    if (options_.real_data_only && std::find(shape.begin(), shape.end(), 0U) == shape.end())
      refuse("was not dumped as a tensor");
    if (is_made_float(dtype)) dtype = DType::float32;
    RandomTensor random{dtype,
                        count_of(shape, dtype),
                        bound_of(entry, node, "Min"),
                        bound_of(entry, node, "Max"),
                        bound_of(entry, node, "Min_except_inf_nan"),
                        bound_of(entry, node, "Max_except_inf_nan")};
    const bool is_target = takes_labels() && tensor::info(dtype).kind == tensor::DTypeKind::integer;
    if (is_target && random.min.number() <= 0) {
      random.min.kind = Bound::BoundKind::integer;
      random.min.integer = 0;
    }
    synthetic = synthetic || random.count > 0;
    const std::uint64_t offset = payload_.begin_tensor();
    const bool rounded = is_rounded(dtype);
    std::vector<std::byte> piece;
    random_elements(random, *stream_, [&](std::span<const std::byte> bytes) {
      measure(dtype, bytes);
      if (!rounded) {
        payload_.append(bytes);
        return;
      }
      piece.assign(bytes.begin(), bytes.end());
      round_to_hf32(piece);
      payload_.append(piece);
    });
    note(dtype);
    tagged_tensor(json, dtype, is_target && dtype == DType::int32 ? DType::int64 : dtype, shape, offset,
                  requires_grad);
  }

  bool takes_labels() const { return position_ == 1 && dump::is_listed("labels", call_.api.name); }

  bool is_made_float(DType dtype) const {
    return tensor::info(dtype).kind == tensor::DTypeKind::integer &&
           dump::is_listed("no_integers", call_.api.name);
  }

  bool is_rounded(DType dtype) const {
    return options_.hf32 && dtype == DType::float32 && dump::is_listed("rounded_to_hf32", call_.api.name);
  }

  void dumped(JsonWriter& json, DType dtype, const std::string& file, bool requires_grad) {
    const formats::StoredTensor stored = store_->open(file);
    const tensor::DTypeInfo& type = tensor::info(stored.dtype);
    std::vector<std::uint64_t> shape(stored.shape.begin(), stored.shape.end());
    std::uint64_t left = count_of(shape, stored.dtype);
    const std::uint64_t offset = payload_.begin_tensor();
    const bool rounded = is_rounded(dtype) && stored.dtype == dtype;
    formats::ElementReader reader(stored);
    std::vector<std::byte> piece;
    while (left > 0) {
      const std::uint64_t count = std::min<std::uint64_t>(left, kArgumentPiece);
      piece.resize(count * type.size);
      reader.read(piece);
      if (rounded) round_to_hf32(piece);
      measure(stored.dtype, piece);
      payload_.append(piece);
      left -= count;
    }
    note(dtype);
    if (takes_labels() && dtype == DType::int32) dtype = DType::int64;
    if (is_made_float(dtype)) dtype = DType::float32;
    tagged_tensor(json, stored.dtype, dtype, shape, offset, requires_grad);
  }

  const PlannedCall& call_;
  const RequestOptions& options_;
  const TensorStore* store_;
  SharedFile& payload_;
  RandomStream* stream_;
  std::string where_;
  std::size_t position_ = kNoPosition;
  std::size_t leaves_ = 0;
  bool gradients_ = false;
  std::uint64_t taken_ = 0;
};

void tell_type(JsonWriter& json, std::string_view key, const std::optional<DType>& dtype) {
  json.key(key);
  if (dtype) {
    json.value(tensor::info(*dtype).name);
  } else {
    json.null();
  }
}

}  // namespace

CallRequest RequestBuilder::build(std::uint64_t id, const PlannedCall& call, const Entry& forward,
                                  const Entry* backward, SharedFile& payload) {
  payload.clear();
  const Node arguments = forward.find(0, "input_args");
  if (!forward.is(arguments, NodeKind::array)) throw NotRebuilt("its arguments were not recorded");
  const Node keywords = forward.find(0, "input_kwargs");
  if (keywords != Entry::kNone && !forward.is(keywords, NodeKind::object))
    throw NotRebuilt("its keyword arguments are not a mapping");
  if (is_random(call, forward, arguments, keywords)) throw Excluded("its result is random");
  RandomStream of_arguments(options_.seed.value_or(seed_of(call.name + ".forward")));
  RandomStream of_gradients(options_.seed ? *options_.seed + 1 : seed_of(call.name + ".backward"));
  const bool has_out = keywords != Entry::kNone && forward.find(keywords, "out") != Entry::kNone;

  CallRequest request;
  ArgumentWriter writer(call, options_, tensors_.get(), payload, of_arguments);
  writer.may_require_grad = !has_out;
  JsonWriter json({.indent = 0, .compact = true});
  json.open_object();
  json.member("id", id);
  json.member("type", call.api.type);
  json.member("name", call.api.name);
  json.key("args");
  writer.positional(json, forward, arguments);
  json.key("kwargs");
  writer.keywords(json, forward, keywords);
  const bool view = dump::is_listed("not_raised_as_bits", call.api.name) && writer.has_dtype;
  const bool plain_reference = !options_.raise_reference || view ||
                               dump::is_listed("not_raised", call.api.name) ||
                               (options_.hf32 && dump::is_listed("rounded_to_hf32", call.api.name) &&
                                writer.floats.contains(DType::float32));
  json.member("raise", plain_reference ? std::vector<std::pair<std::string, std::string>>()
                                       : raised_types(writer.floats));
  json.member("raise_dtype", !plain_reference);
  const std::optional<DType> output = output_type(forward);
  // MindSpore casts before the recorded call.
  const std::optional<DType> cast =
      options_.framework == Framework::mindspore ? std::nullopt : autocast_type(writer.floats, output);
  tell_type(json, "autocast", cast);
  if (cast && cast == output && writer.floats.contains(DType::float32)) request.cast = cast;
  // The reference gets inputs that have the precision after such a cast, not more.
  tell_type(json, "narrow", request.cast);
  json.member("device", options_.device_call);
  if (options_.reference_on_device) json.member("reference_on_device", true);

  if (has_out && backward != nullptr) {
    request.backward.skip = "the argument out has no gradient";
  } else if (backward != nullptr) {
    const Node gradients = backward->find(0, "input");
    request.backward.wanted = backward->is(gradients, NodeKind::array) && !backward->empty(gradients);
    if (request.backward.wanted) {
      writer.begin_gradients(of_gradients);
      json.key("grads");
      writer.positional(json, *backward, gradients);
    } else {
      request.backward.skip = "its gradients were not recorded";
    }
  }
  json.member("timeout", options_.timeout);
  json.close();
  request.json = json.take();
  request.float8_input = writer.float8;
  request.synthetic = writer.synthetic;
  request.input_scale = writer.scale;
  request.tensors = std::move(writer.tensors);
  return request;
}

}  // namespace msprobe::precheck
