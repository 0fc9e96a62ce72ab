// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using Integers = std::vector<std::int64_t>;

std::string class_of(const Pickle& pickle, PickleRef ref) {
  if (pickle.kind(ref) != PickleKind::object) return {};
  const PickleRef callable = pickle.object(ref).callable;
  return pickle.kind(callable) == PickleKind::global ? pickle.global(callable).name : std::string();
}

/// The class of a tensor that only wraps others: "DTensor".
std::string wrapper_class(const TorchFile& file, const TorchFile::Core& core) {
  const Pickle& pickle = file.pickle();
  if (pickle.kind(core.callable) != PickleKind::global || core.state == kNoPickleRef) return {};
  if (pickle.global(core.callable).full_name() != "torch._utils._rebuild_wrapper_subclass") return {};
  const PickleRef type = pickle.items(core.args)[0];
  return pickle.kind(type) == PickleKind::global ? pickle.global(type).name : std::string();
}

/// Reads how a tensor is split, and which of its parts this file holds. Any unexpected value is a
/// FormatError.
class ShardReader {
 public:
  explicit ShardReader(const Pickle& pickle) : pickle_(pickle) {}

  TorchShard dtensor(const TorchFile::Core& core) const {
    TorchShard shard;
    shard.local = member(core.state, "_local_tensor");
    shard.whole = integers(pickle_.items(core.args)[2]);
    const PickleRef spec = member(core.state, "_spec");
    const PickleRef mesh = member(spec, "mesh");
    const Integers sizes = mesh_shape(mesh);
    const Integers here = integers(member(mesh, "_coordinate_on_dim"));
    const auto placements = pickle_.items(member(spec, "placements"));
    if (sizes.size() != here.size() || sizes.size() != placements.size())
      throw FormatError("its mesh and its placements do not fit");
    shard.offset.assign(shard.whole.size(), 0);
    shard.size = shard.whole;
    // FSDP splits the parts of tensor parallelism, but its axis of the mesh comes first; a strided placement
    // marks this case.
    std::vector<std::size_t> order;
    for (const bool strided : {false, true}) {
      for (std::size_t i = 0; i < placements.size(); ++i) {
        if ((class_of(pickle_, placements[i]) == "_StridedShard") == strided) order.push_back(i);
      }
    }
    check_order(spec);
    for (const std::size_t i : order) {
      if (here[i] < 0 || sizes[i] < 1 || here[i] >= sizes[i]) throw FormatError("a rank outside of its mesh");
      cut(placements[i], sizes[i], here[i], shard);
    }
    return shard;
  }

  std::vector<TorchShard> sharded_tensor(PickleRef state) const {
    const auto parts = pickle_.items(state);
    if (parts.size() < 2) throw FormatError("a sharded tensor without its metadata");
    const Integers whole = integers(member(parts[1], "size"));
    std::vector<TorchShard> shards;
    for (const PickleRef part : pickle_.items(parts[0])) {
      TorchShard& shard = shards.emplace_back();
      const PickleRef place = member(part, "metadata");
      shard.local = member(part, "tensor");
      shard.whole = whole;
      shard.offset = integers(member(place, "shard_offsets"));
      shard.size = integers(member(place, "shard_sizes"));
    }
    return shards;
  }

 private:
  /// Finds a member in an object's state: a dict, or a tuple of dicts for classes with slots.
  std::optional<PickleRef> find(PickleRef state, std::string_view name) const {
    if (state != kNoPickleRef && pickle_.kind(state) == PickleKind::object)
      state = pickle_.object(state).state;
    if (state == kNoPickleRef) return {};
    if (pickle_.kind(state) == PickleKind::dict) return find_in(state, name);
    if (pickle_.kind(state) != PickleKind::tuple) return {};
    for (const PickleRef part : at_most(pickle_.items(state))) {
      const auto found = pickle_.kind(part) == PickleKind::dict ? find_in(part, name) : std::nullopt;
      if (found) return found;
    }
    return {};
  }

  // Many tensors may share one of these dicts, so a long one would be searched again and again; at_most()
  // refuses it.
  std::optional<PickleRef> find_in(PickleRef dict, std::string_view name) const {
    at_most(pickle_.pairs(dict));
    return pickle_.find(dict, name);
  }
  static std::span<const PickleRef> at_most(std::span<const PickleRef> items) {
    constexpr std::size_t kMost = 256;
    if (items.size() > kMost) throw FormatError("refused: its placement is too long");
    return items;
  }

  PickleRef member(PickleRef state, std::string_view name) const {
    const auto found = find(state, name);
    if (!found) throw FormatError(fmt::format("its {} is missing", name));
    return *found;
  }

  /// A tuple or a list of numbers, or a torch.Size.
  Integers integers(PickleRef ref) const {
    const auto items = pickle_.items(ref);
    if (items.size() > kMaxRank) throw FormatError("a tensor with too many dimensions");
    Integers values;
    for (const PickleRef item : items) values.push_back(pickle_.integer(item));
    return values;
  }

  /// The lengths of the mesh's axes. Older files store a tensor of ranks, newer ones a layout.
  Integers mesh_shape(PickleRef mesh) const {
    if (const auto layout = find(mesh, "_layout")) {
      const auto axes = find(*layout, "axes");
      const PickleRef shape = axes ? *axes : member(*layout, "shape");
      if (!axes && pickle_.kind(shape) == PickleKind::integer) return {pickle_.integer(shape)};
      Integers sizes;
      if (pickle_.items(shape).size() > kMaxRank) throw FormatError("a mesh with too many dimensions");
      for (const PickleRef axis : pickle_.items(shape))
        sizes.push_back(product(axes ? member(axis, "shape") : axis));
      return sizes;
    }
    const PickleRef ranks = member(mesh, "mesh");
    if (pickle_.kind(ranks) != PickleKind::object) throw FormatError("its mesh is missing");
    const auto args = pickle_.items(pickle_.object(ranks).args);
    if (args.size() < 4) throw FormatError("its mesh is missing");
    return integers(args[2]);
  }

  /// The length of an axis that may itself consist of several axes.
  std::int64_t product(PickleRef ref) const {
    if (pickle_.kind(ref) == PickleKind::integer) return pickle_.integer(ref);
    std::int64_t all = 1;
    for (const std::int64_t each : integers(ref)) {
      if (each < 1 || __builtin_mul_overflow(all, each, &all)) throw FormatError("an empty mesh");
    }
    return all;
  }

  /// Newer PyTorch records the order in which the mesh's axes split a tensor axis; msprobe supports only
  /// rising order.
  void check_order(PickleRef spec) const {
    const auto order = find(spec, "shard_order");
    if (!order || pickle_.kind(*order) != PickleKind::tuple) return;
    for (const PickleRef entry : at_most(pickle_.items(*order))) {
      if (pickle_.kind(entry) != PickleKind::object) continue;
      const auto args = pickle_.items(pickle_.object(entry).args);
      if (args.size() != 2) continue;
      const Integers axes = integers(args[1]);
      if (!std::is_sorted(axes.begin(), axes.end()) && !any_strided(spec))
        throw FormatError("it is split along the axes of its mesh in an unsupported order");
    }
  }

  bool any_strided(PickleRef spec) const {
    const auto placements = pickle_.items(member(spec, "placements"));
    return std::ranges::any_of(placements,
                               [&](PickleRef each) { return class_of(pickle_, each) == "_StridedShard"; });
  }

  /// The number that an object's constructor got: a member, or the first of a list of its members.
  std::int64_t dimension(PickleRef placement) const {
    const PickleObject& object = pickle_.object(placement);
    if (const auto found = find(object.state, "dim")) return pickle_.integer(*found);
    for (const PickleRef part : {object.state, object.args}) {
      if (part == kNoPickleRef) continue;
      const PickleKind kind = pickle_.kind(part);
      const bool listed = kind == PickleKind::list || kind == PickleKind::tuple;
      if (listed && !pickle_.items(part).empty()) return pickle_.integer(pickle_.items(part)[0]);
    }
    throw FormatError("it does not say along which axis it is split");
  }

  void cut(PickleRef placement, std::int64_t count, std::int64_t index, TorchShard& shard) const {
    const std::string name = class_of(pickle_, placement);
    if (name == "Replicate") return;
    if (name != "Shard" && name != "_StridedShard") {
      throw FormatError(fmt::format("its placement {} is not supported", name.empty() ? "?" : display(name)));
    }
    std::int64_t dim = dimension(placement);
    if (dim < 0) dim += static_cast<std::int64_t>(shard.whole.size());
    if (dim < 0 || dim >= static_cast<std::int64_t>(shard.whole.size()))
      throw FormatError("it is split along an axis that it does not have");
    const auto axis = static_cast<std::size_t>(dim);
    const std::int64_t length = shard.size[axis];
    if (length < 0) throw FormatError("a tensor of negative size");
    // torch.chunk() gives all parts but the last ones the same length.
    const std::int64_t step = length / count + (length % count == 0 ? 0 : 1);
    std::int64_t begin = 0;
    if (__builtin_mul_overflow(step, index, &begin)) begin = length;
    begin = std::min(begin, length);
    shard.offset[axis] += begin;
    shard.size[axis] = std::min(step, length - begin);
  }

  const Pickle& pickle_;
};

}  // namespace

bool is_sharded(const TorchFile& file, PickleRef ref) {
  const auto core = file.core_of(ref);
  const std::string type = core ? wrapper_class(file, *core) : std::string();
  return type == "DTensor" || type == "ShardedTensor";
}

std::vector<TorchShard> read_shards(const TorchFile& file, PickleRef ref) {
  const ShardReader reader(file.pickle());
  std::vector<TorchShard> shards;
  try {
    const TorchFile::Core core = file.core_of(ref).value();
    if (wrapper_class(file, core) == "DTensor") {
      shards.push_back(reader.dtensor(core));
    } else {
      shards = reader.sharded_tensor(core.state);
    }
    for (TorchShard& shard : shards) {
      const bool fits = shard.whole.size() == shard.offset.size() && shard.whole.size() == shard.size.size();
      if (!fits) shard.problem = "its part has a different number of dimensions";
      if (!file.is_tensor(shard.local)) shard.problem = "it has something else instead of its elements";
    }
  } catch (const FormatError& error) {
    TorchShard broken;
    broken.local = ref;
    broken.problem = error.what();
    shards = {std::move(broken)};
  }
  return shards;
}

std::vector<std::pair<std::string, PickleRef>> kept_tensors(const TorchFile& file, PickleRef ref) {
  constexpr std::size_t kMost = 256;
  std::vector<std::pair<std::string, PickleRef>> kept;
  const auto core = file.core_of(ref);
  const Pickle& pickle = file.pickle();
  if (!core || wrapper_class(file, *core).empty() || pickle.kind(core->state) != PickleKind::dict)
    return kept;
  const auto pairs = pickle.pairs(core->state);
  for (std::size_t i = 0; i + 1 < std::min(pairs.size(), kMost); i += 2) {
    if (pickle.kind(pairs[i]) == PickleKind::text && file.is_tensor(pairs[i + 1]))
      kept.emplace_back(pickle.text(pairs[i]), pairs[i + 1]);
  }
  return kept;
}

}  // namespace msprobe::formats
