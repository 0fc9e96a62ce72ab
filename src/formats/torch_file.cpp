// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;
using tensor::DTypeKind;

// A view may name an element of its storage many times (expand, unfold). That is how a tiny file can ask for
// an endless read, so such views are accepted up to this many bytes.
constexpr std::uint64_t kMaxExpanded = std::uint64_t{256} << 20;
// _rebuild_from_type_v2 and _rebuild_parameter wrap another rebuild call; nothing wraps them further in
// practice.
constexpr int kMaxWrapping = 8;
// The pickle of one tensor takes about 300 bytes; state of a Parameter may add some.
constexpr PickleLimits kOneTensor = {
    .max_bytes = std::uint64_t{1} << 20, .max_opcodes = 100'000, .max_stack = 10'000};

enum class Rebuild : std::uint8_t { plain, with_dtype, npu, quantized, wrapped, from_type, subclass, meta };

struct RebuildName {
  std::string_view name;
  Rebuild kind;
};

constexpr std::array kRebuildNames = {
    RebuildName{"torch._utils._rebuild_tensor", Rebuild::plain},
    RebuildName{"torch._utils._rebuild_tensor_v2", Rebuild::plain},
    RebuildName{"torch._utils._rebuild_tensor_v3", Rebuild::with_dtype},
    RebuildName{"torch_npu.utils.storage._rebuild_npu_tensor", Rebuild::npu},
    RebuildName{"torch._utils._rebuild_qtensor", Rebuild::quantized},
    RebuildName{"torch._utils._rebuild_parameter", Rebuild::wrapped},
    RebuildName{"torch._utils._rebuild_parameter_with_state", Rebuild::wrapped},
    // Tensors of devices whose storage is not in the file.
    RebuildName{"torch._utils._rebuild_device_tensor_from_cpu_tensor", Rebuild::wrapped},
    RebuildName{"torch._utils._rebuild_wrapper_subclass", Rebuild::subclass},
    RebuildName{"torch._utils._rebuild_meta_tensor_no_storage", Rebuild::meta},
    RebuildName{"torch._tensor._rebuild_from_type", Rebuild::from_type},
    RebuildName{"torch._tensor._rebuild_from_type_v2", Rebuild::from_type},
};

// Calls that appear beside the rebuild calls in a file of one tensor, in arguments that do not affect the
// tensor.
constexpr std::array<std::string_view, 3> kHarmlessCalls = {
    "torch.device",
    "torch.serialization._get_layout",
    "torch_npu.npu._format.Format",
};

std::optional<Rebuild> rebuild_of(const Pickle& pickle, PickleRef callable) {
  if (pickle.kind(callable) != PickleKind::global) return {};
  const std::string name = pickle.global(callable).full_name();
  for (const RebuildName& known : kRebuildNames) {
    if (known.name == name) return known.kind;
  }
  return {};
}

bool is_allowed_call(const std::string& name) {
  return std::ranges::any_of(kRebuildNames, [&](const RebuildName& known) { return known.name == name; }) ||
         std::find(kHarmlessCalls.begin(), kHarmlessCalls.end(), name) != kHarmlessCalls.end();
}

}  // namespace

TorchFile::TorchFile(std::shared_ptr<const ByteSource> file, const PickleLimits& limits)
    : file_(std::move(file)), container_(open_torch_container(file_, limits)) {}

void TorchFile::fail(const std::string& reason) const {
  throw FormatError(display(file_->name()), reason);
}

bool TorchFile::is_tensor(PickleRef ref) const {
  return pickle().kind(ref) == PickleKind::object &&
         rebuild_of(pickle(), pickle().object(ref).callable).has_value();
}

std::optional<TorchFile::Core> TorchFile::core_of(PickleRef ref) const {
  if (pickle().kind(ref) != PickleKind::object) return {};
  Core core{pickle().object(ref).callable, pickle().object(ref).args, kNoPickleRef};
  for (int depth = 0; depth <= kMaxWrapping; ++depth) {
    if (pickle().kind(core.args) != PickleKind::tuple) return {};
    const auto rebuild = rebuild_of(pickle(), core.callable);
    const auto args = pickle().items(core.args);
    if (!rebuild || args.size() < 3) return {};
    const bool wrapped = *rebuild == Rebuild::wrapped;
    if (!wrapped && *rebuild != Rebuild::from_type) return core;
    if (wrapped && pickle().kind(args[0]) != PickleKind::object) return {};
    if (wrapped) {
      core = {pickle().object(args[0]).callable, pickle().object(args[0]).args, kNoPickleRef};
    } else {
      core = {args[0], args[2], args.size() > 3 ? args[3] : kNoPickleRef};
    }
  }
  return {};
}

std::size_t TorchFile::rank(PickleRef ref) const {
  const auto core = core_of(ref);
  if (!core) return 0;
  const bool meta = rebuild_of(pickle(), core->callable) == Rebuild::meta;
  const PickleRef size = pickle().items(core->args)[meta ? 1 : 2];
  return pickle().kind(size) == PickleKind::tuple ? pickle().items(size).size() : 0;
}

std::string TorchFile::place(PickleRef ref) const {
  const auto core = core_of(ref);
  const auto rebuild = core ? rebuild_of(pickle(), core->callable) : std::nullopt;
  if (!rebuild || *rebuild == Rebuild::meta || *rebuild == Rebuild::subclass) return {};
  const auto args = pickle().items(core->args);
  try {
    const TorchStorageId id = read_storage_id(pickle(), args[0], file_->name());
    if (id.bytes == 0 || args.size() < 4) return {};
    return fmt::format("{}/{}/{}/{}/{}", id.key, id.view_offset, pickle().integer(args[1]),
                       fmt::join(integers(args[2]), ","), fmt::join(integers(args[3]), ","));
  } catch (const FormatError&) {
    return {};  // the read will report the reason
  }
}

StoredTensor TorchFile::tensor(PickleRef ref) const {
  if (!is_tensor(ref)) fail(fmt::format("it has {} instead of a tensor", kind_name(pickle().kind(ref))));
  const PickleObject& object = pickle().object(ref);
  return tensor(object.callable, object.args, 0);
}

StoredTensor TorchFile::tensor(PickleRef callable, PickleRef args_ref, int depth) const {
  const auto rebuild = rebuild_of(pickle(), callable);
  if (!rebuild) fail("it has something else instead of a tensor");
  if (depth > kMaxWrapping) fail("refused: a tensor wrapped too many times");
  const auto args = pickle().items(args_ref);
  const auto need = [&](std::size_t least, std::size_t most) {
    if (args.size() < least || args.size() > most) {
      fail(fmt::format("{} is called with {} arguments", pickle().global(callable).name, args.size()));
    }
  };
  StoredTensor result;
  switch (*rebuild) {
    case Rebuild::plain:
      need(4, 7);
      result = geometry(args, {});
      if (args.size() > 6) apply_metadata(args[6], result);
      break;
    case Rebuild::npu:
      // The seventh argument describes the layout on the device; the bytes in the file are in plain order.
      need(6, 7);
      result = geometry(args, {});
      break;
    case Rebuild::quantized:
      need(7, 7);
      result = geometry(args, {});
      break;
    case Rebuild::with_dtype: {
      need(7, 8);
      const std::string name = pickle().global(args[6]).full_name();
      const auto dtype = name.starts_with("torch.") ? tensor::dtype_from_torch(name) : std::nullopt;
      if (!dtype) fail(fmt::format("element type {} is not supported", display(name)));
      result = geometry(args, dtype);
      if (args.size() > 7) apply_metadata(args[7], result);
      break;
    }
    case Rebuild::meta:
      need(3, 4);
      fail(fmt::format("a tensor of shape [{}] on the device meta: the file does not have its elements",
                       fmt::join(integers(args[1]), ", ")));
    case Rebuild::subclass:
      need(3, 16);
      fail(fmt::format("a tensor of the class {}, which is not supported",
                       display(pickle().global(args[0]).full_name())));
    case Rebuild::wrapped: {
      need(3, 4);
      const PickleObject& inner = pickle().object(args[0]);
      return tensor(inner.callable, inner.args, depth + 1);
    }
    case Rebuild::from_type:
      need(4, 4);
      return tensor(args[0], args[2], depth + 1);
  }
  check(result);
  return result;
}

std::vector<std::int64_t> TorchFile::integers(PickleRef ref) const {
  const auto items = pickle().items(ref);
  if (items.size() > kMaxRank) fail(fmt::format("refused: a tensor of {} dimensions", items.size()));
  std::vector<std::int64_t> values;
  values.reserve(items.size());
  for (const PickleRef item : items) values.push_back(pickle().integer(item));
  return values;
}

// All rebuild calls begin with the arguments storage, offset, size and stride.
StoredTensor TorchFile::geometry(std::span<const PickleRef> args, std::optional<DType> dtype) const {
  const TorchStorageId id = read_storage_id(pickle(), args[0], file_->name());
  if (!dtype) dtype = id.dtype;
  if (!dtype) fail("a tensor without an element type");
  StoredTensor result;
  result.dtype = *dtype;
  result.offset = pickle().integer(args[1]);
  result.shape = integers(args[2]);
  result.strides = integers(args[3]);
  result.big_endian = container_->big_endian();
  result.storage = container_->storage(id);
  if (id.view_bytes != id.bytes) result.storage = slice_source(result.storage, id.view_offset, id.view_bytes);
  return result;
}

void TorchFile::apply_metadata(PickleRef metadata, StoredTensor& tensor) const {
  if (pickle().kind(metadata) != PickleKind::dict) return;
  const auto flag = [&](std::string_view name) {
    const auto value = pickle().find(metadata, name);
    return value && pickle().kind(*value) == PickleKind::boolean && pickle().boolean(*value);
  };
  const DTypeKind kind = tensor::info(tensor.dtype).kind;
  tensor.conjugate = flag("conj") && kind == DTypeKind::complex;
  tensor.negative = flag("neg");
  if (tensor.negative && kind != DTypeKind::complex && kind != DTypeKind::floating)
    fail("a negated view of integers");
}

// Checks the guarantees of StoredTensor; every sum and product is checked for overflow.
void TorchFile::check(const StoredTensor& tensor) const {
  if (tensor.shape.size() != tensor.strides.size()) fail("its size and stride have different lengths");
  const std::uint64_t item_size = tensor::info(tensor.dtype).size;
  std::int64_t last = tensor.offset;
  bool overflow = false;
  if (tensor.offset < 0) fail("a tensor at a negative offset");
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] < 0) fail("a tensor of negative size");
    if (tensor.strides[i] < 0) fail("a tensor of negative stride");
  }
  const auto wanted = checked_size(tensor.shape, item_size);
  if (!wanted) fail("a tensor with more elements than memory can hold");
  if (*wanted == 0) return;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    std::int64_t reach = 0;
    overflow = overflow || __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach) ||
               __builtin_add_overflow(last, reach, &last);
  }
  const std::uint64_t bytes = tensor.storage->size();
  if (overflow || static_cast<std::uint64_t>(last) >= bytes / item_size) {
    fail(fmt::format("a tensor reaches beyond its storage of {} bytes", bytes));
  }
  if (*wanted > std::max(bytes, kMaxExpanded)) {
    fail(fmt::format("refused: a tensor of {} bytes over a storage of {} bytes", *wanted, bytes));
  }
}

StoredTensor open_torch_tensor(const std::shared_ptr<const ByteSource>& file) {
  const TorchFile torch(file, kOneTensor);
  const Pickle& pickle = torch.pickle();
  for (const PickleGlobal& global : pickle.globals()) {
    const std::string name = global.full_name();
    if (global.called && !is_allowed_call(name)) {
      throw FormatError(display(file->name()), fmt::format("refused: the pickle calls {}", display(name)));
    }
  }
  if (!torch.is_tensor(pickle.root())) {
    throw FormatError(display(file->name()),
                      fmt::format("it contains {}, not one tensor", kind_name(pickle.kind(pickle.root()))));
  }
  return torch.tensor(pickle.root());
}

}  // namespace msprobe::formats
