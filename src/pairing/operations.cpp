// SPDX-License-Identifier: Apache-2.0
#include "pairing/operations.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <unordered_map>

namespace msprobe::pairing {
namespace {

/// Lower case, without the marks of operators (`__add__`, `__iadd__`, `__radd__`) and of work in place
/// (`add_`). Most names are so already.
class PlainOperation {
 public:
  explicit PlainOperation(std::string_view name) : plain_(name) {
    const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    const bool has_marks = !name.empty() && (name.front() == '_' || name.back() == '_');
    if (!has_marks && std::ranges::all_of(name, is_plain)) return;
    const bool is_operator = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
    for (const char c : name) {
      if (c != '_' || (!is_operator && !changed_.empty()))
        changed_ += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    while (!changed_.empty() && changed_.back() == '_') changed_.pop_back();
    plain_ = changed_;
  }
  PlainOperation(const PlainOperation&) = delete;
  PlainOperation& operator=(const PlainOperation&) = delete;

  std::string_view text() const { return plain_; }

 private:
  std::string changed_;
  std::string_view plain_;
};

struct Known {
  const char* name;
  Nature nature;
};

constexpr Known kKnown[] = {
    {"dropout", Nature::random},
    {"dropout1d", Nature::random},
    {"dropout2d", Nature::random},
    {"dropout3d", Nature::random},
    {"alpha_dropout", Nature::random},
    {"feature_alpha_dropout", Nature::random},
    {"alphadropout", Nature::random},
    {"featurealphadropout", Nature::random},
    {"rand", Nature::random},
    {"randn", Nature::random},
    {"randint", Nature::random},
    {"rand_like", Nature::random},
    {"randn_like", Nature::random},
    {"randint_like", Nature::random},
    {"randperm", Nature::random},
    {"normal", Nature::random},
    {"uniform", Nature::random},
    {"bernoulli", Nature::random},
    {"multinomial", Nature::random},
    {"exponential", Nature::random},
    {"rrelu", Nature::random},
    {"gumbel_softmax", Nature::random},
    {"poisson", Nature::random},
    {"native_dropout", Nature::random},
    {"topk", Nature::discrete},
    {"sort", Nature::discrete},
    {"argsort", Nature::discrete},
    {"argmax", Nature::discrete},
    {"argmin", Nature::discrete},
    {"eq", Nature::discrete},
    {"ne", Nature::discrete},
    {"lt", Nature::discrete},
    {"le", Nature::discrete},
    {"gt", Nature::discrete},
    {"ge", Nature::discrete},
    {"greater", Nature::discrete},
    {"less", Nature::discrete},
    {"where", Nature::discrete},
    {"floor", Nature::discrete},
    {"ceil", Nature::discrete},
    {"round", Nature::discrete},
    {"trunc", Nature::discrete},
    {"sign", Nature::discrete},
    {"one_hot", Nature::discrete},
    {"bucketize", Nature::discrete},
    {"searchsorted", Nature::discrete},
    {"nonzero", Nature::discrete},
    {"unique", Nature::discrete},
    {"isclose", Nature::discrete},
    {"logical_and", Nature::discrete},
    {"logical_or", Nature::discrete},
    {"logical_not", Nature::discrete},
    {"bincount", Nature::discrete},
    {"histc", Nature::discrete},
    {"kthvalue", Nature::discrete},
    {"mode", Nature::discrete},
    {"floordiv", Nature::discrete},
    {"floor_divide", Nature::discrete},
    {"remainder", Nature::discrete},
    {"fmod", Nature::discrete},
    {"mod", Nature::discrete},
    {"div", Nature::division},
    {"truediv", Nature::division},
    {"true_divide", Nature::division},
    {"divide", Nature::division},
    {"rdiv", Nature::division},
    {"rtruediv", Nature::division},
    {"itruediv", Nature::division},
    {"idiv", Nature::division},
    {"reciprocal", Nature::division},
    {"rsqrt", Nature::division},
    {"addcdiv", Nature::division},
    {"normalize", Nature::division},
    {"cosine_similarity", Nature::division},
    {"log", Nature::division},
    {"add", Nature::sum},
    {"iadd", Nature::sum},
    {"radd", Nature::sum},
    {"sub", Nature::sum},
    {"isub", Nature::sum},
    {"rsub", Nature::sum},
    {"subtract", Nature::sum},
    {"lerp", Nature::sum},
    {"mse_loss", Nature::sum},
    {"l1_loss", Nature::sum},
    {"smooth_l1_loss", Nature::sum},
    {"mseloss", Nature::sum},
    {"l1loss", Nature::sum},
    {"mean", Nature::mean},
    {"sum", Nature::mean},
    {"nansum", Nature::mean},
    {"cumsum", Nature::mean},
    {"exp", Nature::exponential},
    {"softmax", Nature::exponential},
    {"pow", Nature::exponential},
    {"softmin", Nature::exponential},
    {"scaled_dot_product_attention", Nature::exponential},
    {"sinh", Nature::exponential},
    {"cosh", Nature::exponential},
    {"sin", Nature::exponential},
    {"cos", Nature::exponential},
    {"logsumexp", Nature::exponential},
    {"softplus", Nature::exponential},
    {"cross_entropy", Nature::exponential},
    {"crossentropyloss", Nature::exponential},
    {"log_softmax", Nature::exponential},
    {"layer_norm", Nature::normalising},
    {"layernorm", Nature::normalising},
    {"batch_norm", Nature::normalising},
    {"batchnorm1d", Nature::normalising},
    {"batchnorm2d", Nature::normalising},
    {"batchnorm3d", Nature::normalising},
    {"group_norm", Nature::normalising},
    {"groupnorm", Nature::normalising},
    {"instance_norm", Nature::normalising},
    {"var", Nature::normalising},
    {"std", Nature::normalising},
    {"relu", Nature::kinked},
    {"leaky_relu", Nature::kinked},
    {"leakyrelu", Nature::kinked},
    {"relu6", Nature::kinked},
    {"rrelu_with_noise", Nature::kinked},
    {"prelu", Nature::kinked},
    {"hardtanh", Nature::kinked},
    {"hardsigmoid", Nature::kinked},
    {"hardswish", Nature::kinked},
    {"threshold", Nature::kinked},
    {"clamp", Nature::kinked},
    {"clip", Nature::kinked},
    {"abs", Nature::kinked},
    {"maximum", Nature::kinked},
    {"minimum", Nature::kinked},
    {"max", Nature::kinked},
    {"min", Nature::kinked},
    {"amax", Nature::kinked},
    {"amin", Nature::kinked},
    {"max_pool1d", Nature::kinked},
    {"max_pool2d", Nature::kinked},
    {"max_pool3d", Nature::kinked},
    {"maxpool2d", Nature::kinked},
    {"adaptive_max_pool2d", Nature::kinked},
};

}  // namespace

Nature nature_of(std::string_view operation) {
  static const auto* const kByName = [] {
    auto* map = new std::unordered_map<std::string_view, Nature>;
    for (const Known& known : kKnown) map->emplace(known.name, known.nature);
    return map;
  }();
  const auto found = kByName->find(PlainOperation(operation).text());
  return found == kByName->end() ? Nature::ordinary : found->second;
}

bool is_elementwise(std::string_view operation) {
  const PlainOperation plain(operation);
  const std::string_view name = plain.text();
  if (name == "mul" || name == "rmul" || name == "imul" || name == "multiply" || name == "addcmul")
    return true;
  constexpr std::string_view kLosses = "loss";
  const Nature nature = nature_of(operation);
  return (nature == Nature::sum && name.find(kLosses) == std::string_view::npos) ||
         (nature == Nature::division && name != "cosine_similarity" && name != "normalize");
}

bool is_commutative(std::string_view operation) {
  static constexpr std::string_view kCommutative[] = {
      "add", "radd",        "mul",        "rmul",        "multiply",    "maximum",    "minimum",    "eq",
      "ne",  "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"};
  const PlainOperation plain(operation);
  return std::find(std::begin(kCommutative), std::end(kCommutative), plain.text()) != std::end(kCommutative);
}

bool is_product(std::string_view operation) {
  static constexpr std::string_view kProducts[] = {
      "linear",  "matmul", "mm",     "bmm",      "addmm",
      "baddbmm", "mv",     "einsum", "bilinear", "scaled_dot_product_attention"};
  const PlainOperation plain(operation);
  const std::string_view name = plain.text();
  return name.starts_with("conv") || is_recurrent(operation) ||
         std::find(std::begin(kProducts), std::end(kProducts), name) != std::end(kProducts);
}

bool is_recurrent(std::string_view operation) {
  const PlainOperation plain(operation);
  const std::string_view name = plain.text();
  return name == "lstm" || name == "gru" || name == "rnn" || name == "rnn_tanh" || name == "rnn_relu";
}

namespace {

bool normalizes_by_batch(std::string_view plain) {
  return plain == "batch_norm" || plain == "batchnorm" || plain == "instance_norm";
}

}  // namespace

bool is_parameter_position(std::string_view operation, std::size_t position) {
  const PlainOperation plain(operation);
  const std::string_view name = plain.text();
  if (name == "biasadd") return position == 1;
  if (name == "layernorm") return position == 1 || position == 2;
  if (name == "linear" || name == "dense" || name == "prelu" || name.starts_with("conv"))
    return position == 1 || position == 2;
  if (name == "embedding" || name == "embedding_bag") return position == 1;
  if (name == "layer_norm" || name == "group_norm") return position == 2 || position == 3;
  if (name == "rms_norm") return position == 2;
  if (normalizes_by_batch(name)) return position >= 1 && position <= 4;
  if (name == "bilinear") return position == 2 || position == 3;
  return false;
}

bool takes_parameters(std::string_view operation) {
  constexpr std::size_t kMostPositions = 5;
  for (std::size_t position = 1; position < kMostPositions; ++position) {
    if (is_parameter_position(operation, position)) return true;
  }
  return false;
}

bool is_running_statistic(std::string_view operation, std::size_t position) {
  return normalizes_by_batch(PlainOperation(operation).text()) && (position == 1 || position == 2);
}

bool is_in_place(std::string_view operation) {
  const bool is_operator = operation.starts_with("__") && operation.ends_with("__");
  if (!is_operator) return operation.ends_with('_') && operation.size() > 1;
  return operation == "__setitem__" || (operation.starts_with("__i") && operation != "__invert__");
}

bool is_activation(std::string_view operation) {
  static constexpr std::string_view kNames[] = {
      "relu",    "relu6",   "rrelu",     "leaky_relu", "elu",         "selu",         "celu",
      "silu",    "mish",    "hardtanh",  "hardswish",  "hardsigmoid", "threshold",    "tanh",
      "sigmoid", "dropout", "dropout2d", "dropout1d",  "dropout3d",   "alpha_dropout"};
  if (operation.ends_with('_')) operation.remove_suffix(1);
  return std::find(std::begin(kNames), std::end(kNames), operation) != std::end(kNames);
}

bool is_view(std::string_view operation) {
  static constexpr std::string_view kViews[] = {
      "narrow",           "view",      "view_as",   "split",     "chunk",    "unbind",
      "select",           "expand",    "expand_as", "transpose", "permute",  "t",
      "squeeze",          "unsqueeze", "detach",    "diagonal",  "unfold",   "unflatten",
      "as_strided",       "swapaxes",  "swapdims",  "movedim",   "moveaxis", "tensor_split",
      "split_with_sizes", "alias"};
  return std::find(std::begin(kViews), std::end(kViews), operation) != std::end(kViews);
}

bool only_writes(std::string_view operation) {
  static constexpr std::string_view kWriters[] = {
      "__setitem__", "copy_",       "fill_",        "zero_",          "normal_",    "uniform_",
      "random_",     "bernoulli_",  "exponential_", "cauchy_",        "geometric_", "log_normal_",
      "index_copy_", "index_fill_", "scatter_",     "masked_scatter_"};
  return std::find(std::begin(kWriters), std::end(kWriters), operation) != std::end(kWriters);
}

}  // namespace msprobe::pairing
