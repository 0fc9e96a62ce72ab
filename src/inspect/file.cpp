// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "archive/zip_reader.hpp"
#include "formats/element_values.hpp"
#include "formats/npz.hpp"
#include "formats/safetensors.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_tensors.hpp"
#include "formats/unpickler.hpp"
#include "inspect/facts.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::inspect {
namespace {

using formats::Container;
using formats::Pickle;
using formats::PickleKind;
using formats::PickleRef;
using formats::StoredTensor;
using Source = std::shared_ptr<const ByteSource>;

// A legacy PyTorch file is a chain of five pickles. Of one with more than this the rest would go unseen.
constexpr int kMostPickles = 10'000;
constexpr std::size_t kMostValues = 50;
// Of one file; twice as many if they are dangerous.
constexpr std::size_t kMostGlobals = 10'000;
constexpr std::size_t kMostText = 60;
// A pickle that is met beside tensors, in a member of an archive.
constexpr std::uint64_t kMostInflated = std::uint64_t{256} << 20;

class FileInspector {
 public:
  FileInspector(Source source, const Options& options, PathFacts& facts)
      : source_(std::move(source)), options_(options), facts_(facts), file_(facts.file.emplace()) {}

  void run() {
    file_.size = source_->size();
    if (file_.size == 0) {
      file_.container = "empty file";
      problem("an empty file");
      return;
    }
    file_.container = "broken zip archive";  // unless this returns
    const Container container = formats::container_of(source_);
    file_.container = formats::container_name(container);
    switch (container) {
      case Container::npy:
      case Container::npz:
      case Container::atb_bin:
        tensors();
        break;
      case Container::safetensors:
      case Container::adump:
        tensors();
        look_for_second_face();
        break;
      case Container::torch_zip:
        scan_members();
        tensors();
        break;
      case Container::torchscript:
        scan_members();
        problem("a TorchScript archive: it holds code, which is not looked at");
        break;
      case Container::other_zip:
        scan_members();
        if (!file_.has_pickle) problem("a zip archive of neither PyTorch nor NumPy");
        break;
      case Container::torch_legacy:
      case Container::unknown:
        stream_of_pickles(container == Container::torch_legacy);
        break;
    }
    if (untold_globals_ > 0) problem(fmt::format("its pickles name {} more globals", untold_globals_));
  }

  void problem(const std::string& message) {
    facts_.problems.push_back(without_path(message, source_->name()));
  }

 private:
  // Anything may be a pickle: protocols 0 and 1 have no magic. A legacy PyTorch file is one, too.
  void stream_of_pickles(bool announced) {
    std::string failure;
    const bool is_pickle = scan_chain(*source_, 0, "", failure) || announced;
    if (!is_pickle) {
      file_.container = "unknown";
      file_.globals.clear();
      file_.has_pickle = false;
      problem("no file that msprobe knows, by its contents");
      return;
    }
    std::unique_ptr<formats::TorchTensors> tensors;
    std::string reason;
    if (announced) {
      try {
        tensors = std::make_unique<formats::TorchTensors>(source_);
      } catch (const FormatError& error) {
        reason = error.what();
      }
    }
    if (tensors != nullptr) {
      describe_root(tensors->pickle());
      list(*tensors);
      return;
    }
    file_.container = "pickle";
    // A chain that reads well to its end is a pickle that was inspected, if not one of tensors. What else the
    // file holds nobody knows, so it must not pass for clean.
    if (!failure.empty()) problem(failure);
    if (!failure.empty() && !reason.empty() && reason != failure) problem(reason);
  }

  // All pickles from `offset` to the end of `source`. False if not even the first one is whole and nothing
  // was named.
  bool scan_chain(const ByteSource& source, std::uint64_t offset, const std::string& where,
                  std::string& failure) {
    bool any = false;
    for (int i = 0; offset < source.size(); ++i) {
      check_interrupt();
      if (i == kMostPickles) {
        failure = fmt::format("{}: more than {} pickles refused", display(source.name()), kMostPickles);
        break;
      }
      const Pickle pickle = formats::scan_pickle(source, offset, failure);
      for (const formats::PickleGlobal& global : pickle.globals()) note(global, where);
      any = any || failure.empty() || !pickle.globals().empty();
      if (!failure.empty()) break;
      if (i == 0 && where.empty() && file_.holds.empty())
        file_.holds = formats::kind_name(pickle.kind(pickle.root()));
      offset = pickle.end();
    }
    file_.has_pickle = file_.has_pickle || any;
    return any;
  }

  void note(const formats::PickleGlobal& global, const std::string& where) {
    const Rating rating = formats::rate_global(global.module, global.name);
    const std::size_t limit = rating == Rating::dangerous ? 2 * kMostGlobals : kMostGlobals;
    if (file_.globals.size() >= limit) {
      ++untold_globals_;
      return;
    }
    file_.globals.push_back({global.full_name(), where, global.offset, global.called, rating});
  }

  // These two begin with a number, which may be chosen so that Python reads the file as a pickle, too. What a
  // pickle made of mere numbers would name, no Python could import.
  void look_for_second_face() {
    std::string failure;
    const bool had_pickle = file_.has_pickle;
    const Pickle pickle = formats::scan_pickle(*source_, 0, failure);
    const auto importable = [](const formats::PickleGlobal& global) {
      return !global.module.empty() && std::all_of(global.module.begin(), global.module.end(), [](char c) {
        return c == '.' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
      });
    };
    for (const formats::PickleGlobal& global : pickle.globals()) {
      if (importable(global)) note(global, "");
    }
    file_.has_pickle = had_pickle || !file_.globals.empty();
    if (file_.has_pickle) problem("it is a pickle as well, and names globals");
  }

  // Every member of the archive that is a pickle by its name, and those that begin like one; the elements of
  // tensors may begin in any way.
  void scan_members() {
    const archive::ZipReader zip(source_);
    for (const archive::ZipEntry& entry : zip.entries()) {
      check_interrupt();
      const bool named = entry.name.ends_with(".pkl") || entry.name.ends_with(".pickle");
      if (!named && entry.name.find("/data/") != std::string::npos) continue;
      try {
        const Source member = zip.open(entry, kMostInflated);
        if (!named && !begins_like_pickle(*member)) continue;
        std::string failure;
        scan_chain(*member, 0, entry.name, failure);
        file_.has_pickle = true;
        if (!failure.empty()) problem(display(entry.name) + ": " + without_path(failure, source_->name()));
      } catch (const FormatError& error) {
        problem(error.what());
      }
    }
  }

  static bool begins_like_pickle(const ByteSource& member) {
    std::array<std::byte, 2> start{};
    if (member.size() < start.size()) return false;
    member.read_at(0, start);
    return start[0] == std::byte{0x80} && start[1] >= std::byte{1} && start[1] <= std::byte{5};
  }

  void tensors() {
    std::unique_ptr<formats::TensorSet> set;
    try {
      set = formats::open_tensors(source_);
    } catch (const FormatError& error) {
      problem(error.what());
      scan_object_array(*source_, "");
      return;
    }
    if (const auto* torch = dynamic_cast<const formats::TorchTensors*>(set.get()))
      describe_root(torch->pickle());
    if (const auto* safe = dynamic_cast<const formats::SafetensorsFile*>(set.get())) {
      file_.metadata = safe->metadata();
    }
    list(*set);
  }

  void list(const formats::TensorSet& set) {
    file_.single = set.size() == 1 && set.name(0).empty();
    file_.tensors.reserve(set.size());
    for (std::size_t i = 0; i < set.size(); ++i) {
      check_interrupt();
      TensorFacts& tensor = file_.tensors.emplace_back();
      tensor.name = set.name(i);
      try {
        describe(set.tensor(i), file_.single || options_.all_statistics, tensor);
      } catch (const FormatError& error) {
        tensor.problem = without_path(error.what(), source_->name());
        describe_unreadable(set, i, tensor);
      }
    }
  }

  // What can be said of a tensor whose elements are out of reach.
  void describe_unreadable(const formats::TensorSet& set, std::size_t index, TensorFacts& tensor) {
    if (const auto* safe = dynamic_cast<const formats::SafetensorsFile*>(&set)) {
      tensor.dtype = safe->dtype_name(index);
      tensor.shape = safe->shape(index);
    }
    if (const auto* npz = dynamic_cast<const formats::NpzFile*>(&set)) {
      try {
        scan_object_array(*npz->member(index), set.name(index));
      } catch (const FormatError&) {
        // Its problem is told already.
      }
    }
  }

  void describe(const StoredTensor& stored, bool in_full, TensorFacts& tensor) const {
    tensor.dtype = tensor::info(stored.dtype).name;
    tensor.shape = stored.shape;
    tensor.strides = stored.strides;
    tensor.offset = stored.offset;
    tensor.elements = stored.numel();
    tensor.bytes = static_cast<std::uint64_t>(tensor.elements) * tensor::info(stored.dtype).size;
    tensor.big_endian = stored.big_endian && tensor::info(stored.dtype).size > 1;
    tensor.conjugate = stored.conjugate;
    tensor.negative = stored.negative;
    if (!in_full) return;
    tensor.statistics = formats::statistics_of(stored);
    tensor.first = formats::first_elements(stored, options_.first);
  }

  // An object array of NumPy is a pickle behind the header.
  void scan_object_array(const ByteSource& npy, const std::string& where) {
    std::array<std::byte, 12> start{};
    if (npy.size() <= start.size()) return;
    npy.read_at(0, start);
    const bool is_npy = start[0] == std::byte{0x93} && start[1] == std::byte{'N'};
    const bool short_length = start[6] == std::byte{1};
    const std::uint64_t payload = short_length ? 10 + std::uint64_t{load_le<std::uint16_t>(&start[8])}
                                               : 12 + std::uint64_t{load_le<std::uint32_t>(&start[8])};
    if (!is_npy || payload >= npy.size()) return;
    const std::size_t before = file_.globals.size();
    const bool had_pickle = file_.has_pickle;
    std::string failure;
    scan_chain(npy, payload, where, failure);
    // Numbers that are not a pickle may still begin like one.
    if (file_.globals.size() == before) file_.has_pickle = had_pickle;
  }

  void describe_root(const Pickle& pickle) {
    const PickleRef root = pickle.root();
    file_.holds = formats::kind_name(pickle.kind(root));
    if (pickle.kind(root) != PickleKind::dict) return;
    const auto pairs = pickle.pairs(root);
    file_.holds = fmt::format("a dict of {}", pairs.size() / 2);
    for (std::size_t i = 0; i + 1 < pairs.size() && file_.values.size() < kMostValues; i += 2) {
      const std::string value = value_text(pickle, pairs[i + 1]);
      if (pickle.kind(pairs[i]) == PickleKind::text && !value.empty()) {
        file_.values.emplace_back(pickle.text(pairs[i]), value);
      }
    }
  }

  /// Empty for what is told elsewhere.
  static std::string value_text(const Pickle& pickle, PickleRef ref) {
    switch (pickle.kind(ref)) {
      case PickleKind::none:
        return "None";
      case PickleKind::boolean:
        return pickle.boolean(ref) ? "True" : "False";
      case PickleKind::integer:
        return std::to_string(pickle.integer(ref));
      case PickleKind::real:
        return python_repr(pickle.real(ref));
      case PickleKind::text:
        return python_repr(pickle.text(ref).substr(0, kMostText));
      case PickleKind::dict:
        return fmt::format("a dict of {}", pickle.pairs(ref).size() / 2);
      case PickleKind::list:
      case PickleKind::tuple:
      case PickleKind::set:
        return fmt::format("{} of {}", formats::kind_name(pickle.kind(ref)), pickle.items(ref).size());
      default:
        return {};
    }
  }

  Source source_;
  const Options& options_;
  PathFacts& facts_;
  FileFacts& file_;
  std::uint64_t untold_globals_ = 0;
};

}  // namespace

void inspect_file(const std::string& path, const Options& options, PathFacts& facts) {
  const Source source = open_file(path);
  FileInspector inspector(source, options, facts);
  try {
    inspector.run();
  } catch (const FormatError& error) {
    inspector.problem(error.what());
  }
}

}  // namespace msprobe::inspect
