// SPDX-License-Identifier: Apache-2.0
// linear, matmul and their kin, einsum and convolutions as products of matrices.
#include <algorithm>
#include <cmath>
#include <string>

#include "diagnosis/replay/product.hpp"

namespace msprobe::diagnosis::replay {
namespace {

using Axes = std::vector<std::size_t>;

Axes axes_between(std::size_t begin, std::size_t end) {
  Axes axes;
  for (std::size_t axis = begin; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

/// x W^T + b
Results linear_of(Arguments& arguments, Array input, Array weight, const std::optional<Array>& bias) {
  if (input.rank() < 1 || weight.rank() < 1 || weight.rank() > 2 ||
      input.shape.back() != weight.shape.back()) {
    refuse_argument();
  }
  const std::size_t last = input.shape.size() - 1;
  Product product;
  product.shape.assign(input.shape.begin(), input.shape.end() - 1);
  const std::int64_t features = weight.rank() == 2 ? weight.shape[0] : 1;
  if (weight.rank() == 2) product.shape.push_back(features);
  product.left = {
      &input, {0}, axis_offsets(input.shape, axes_between(0, last)), axis_offsets(input.shape, {last})};
  product.right = {
      &weight, {0}, offsets_of({weight.shape.back()}, {1}), offsets_of({features}, {weight.shape.back()})};
  const auto rows = static_cast<std::int64_t>(product.left.row.size());
  product.output = {nullptr, {0}, offsets_of({rows}, {features}), offsets_of({features}, {1})};
  if (bias) {
    if (bias->rank() > 1 || (bias->size() != 1 && bias->shape.back() != features)) refuse_argument();
    product.added = {&*bias,
                     {0},
                     Offsets(static_cast<std::size_t>(rows), 0),
                     offsets_of({features}, Shape{bias->size() == 1 ? 0 : 1})};
  }
  return replay_product(arguments, product, input, weight);
}

Results run_linear(Arguments& arguments) {
  Array input = arguments.unread_tensor("input");
  Array weight = arguments.unread_tensor("weight");
  return linear_of(arguments, std::move(input), std::move(weight), arguments.tensor_if_given("bias"));
}

Results run_linear_module(Arguments& arguments) {
  Array weight = arguments.need_unread_parameter("weight");
  Array input = arguments.unread_tensor("input");
  return linear_of(arguments, std::move(input), std::move(weight), arguments.parameter("bias"));
}

/// alpha * a b + beta * added, with the axes before the last two broadcast.
Results matmul_of(Arguments& arguments, Array a, Array b, const Array* added, double alpha, double beta) {
  if (a.rank() < 1 || b.rank() < 1) refuse_argument();
  // A vector is a matrix of one row on the left, of one column on the right; that axis then goes.
  Shape left = a.shape;
  Shape right = b.shape;
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  const std::size_t left_last = left.size() - 1;
  const std::size_t right_last = right.size() - 1;
  if (left[left_last] != right[right_last - 1]) refuse_argument();
  const Shape left_batch(left.begin(), left.end() - 2);
  const Shape right_batch(right.begin(), right.end() - 2);
  const Shape batch = broadcast(left_batch, right_batch);
  const std::int64_t rows = left[left_last - 1];
  const std::int64_t columns = right[right_last];
  Product product;
  product.alpha = alpha;
  product.beta = beta;
  product.shape = batch;
  if (a.rank() > 1) product.shape.push_back(rows);
  if (b.rank() > 1) product.shape.push_back(columns);
  Shape whole = batch;
  whole.push_back(rows);
  whole.push_back(columns);
  arguments.workspace().take(static_cast<std::uint64_t>(count_of(whole)));
  const auto batch_offsets = [&](const Shape& own, std::int64_t matrix) {
    Shape strides = broadcast_strides(own, batch);
    for (std::int64_t& stride : strides) stride *= matrix;
    return offsets_of(batch, strides);
  };
  product.left = {&a, batch_offsets(left_batch, rows * left[left_last]),
                  offsets_of({rows}, {left[left_last]}), offsets_of({left[left_last]}, {1})};
  product.right = {&b, batch_offsets(right_batch, columns * right[right_last - 1]),
                   offsets_of({right[right_last - 1]}, {columns}), offsets_of({columns}, {1})};
  product.output = {nullptr, batch_offsets(batch, rows * columns), offsets_of({rows}, {columns}),
                    offsets_of({columns}, {1})};
  if (added != nullptr) {
    const Shape strides = broadcast_strides(added->shape, whole);
    const Shape batch_strides(strides.begin(), strides.end() - 2);
    product.added = {added, offsets_of(batch, batch_strides),
                     offsets_of({rows}, {strides[strides.size() - 2]}),
                     offsets_of({columns}, {strides.back()})};
  }
  // One matrix on the right for all: its batches are rows.
  if (right_batch.empty() && left_batch == batch) {
    const std::int64_t all = count_of(batch) * rows;
    product.left.row = offsets_of({all}, {left[left_last]});
    product.output.row = offsets_of({all}, {columns});
    product.left.batch = product.right.batch = product.output.batch = {0};
    if (added != nullptr) {
      const Shape strides = broadcast_strides(added->shape, whole);
      Shape lengths = batch;
      lengths.push_back(rows);
      product.added.row = offsets_of(lengths, Shape(strides.begin(), strides.end() - 1));
      product.added.batch = {0};
    }
  }
  return replay_product(arguments, product, a, b);
}

Results run_matmul(Arguments& arguments) {
  Array a = arguments.unread_tensor("input");
  Array b = arguments.unread_tensor(arguments.name(1));
  return matmul_of(arguments, std::move(a), std::move(b), nullptr, 1, 1);
}

/// addmm, addmv, baddbmm
Results run_added_product(Arguments& arguments) {
  Array added = arguments.tensor("input");
  Array a = arguments.unread_tensor(arguments.name(1));
  Array b = arguments.unread_tensor(arguments.name(2));
  // The result is a matrix of one column here, so a vector that is added to it becomes a column, too.
  if (b.rank() == 1 && added.rank() > 0) added.shape.push_back(1);
  const double beta = arguments.number("beta", 1);
  return matmul_of(arguments, std::move(a), std::move(b), &added, arguments.number("alpha", 1), beta);
}

Results run_outer(Arguments& arguments) {
  Array a = arguments.tensor("input");
  Array b = arguments.tensor("vec2");
  if (a.rank() != 1 || b.rank() != 1) refuse_argument();
  a.shape.push_back(1);
  b.shape.insert(b.shape.begin(), 1);
  return matmul_of(arguments, std::move(a), std::move(b), nullptr, 1, 1);
}

// ---------------------------------------------------------------------- einsum

struct Labels {
  std::string left;
  std::string right;
  std::string out;
};

/// Letters for the axes that `...` stands for, aligned at their ends.
std::string with_ellipsis(std::string text, std::size_t axes, std::size_t most) {
  const std::size_t at = text.find("...");
  if (at == std::string::npos) return text;
  std::string letters;
  for (std::size_t i = most - axes; i < most; ++i) letters += static_cast<char>('0' + i);
  return text.replace(at, 3, letters);
}

std::size_t axes_of_ellipsis(std::string_view text, std::int64_t rank) {
  if (text.find("...") == std::string_view::npos) {
    if (static_cast<std::int64_t>(text.size()) != rank) refuse_argument();
    return 0;
  }
  const std::int64_t axes = rank - static_cast<std::int64_t>(text.size() - 3);
  if (axes < 0 || axes > 9) refuse_argument();
  return static_cast<std::size_t>(axes);
}

Labels parse_equation(std::string_view equation, std::int64_t left_rank, std::int64_t right_rank) {
  std::string text;
  for (const char letter : equation) {
    if (letter != ' ') text += letter;
  }
  const std::size_t comma = text.find(',');
  const std::size_t arrow = text.find("->");
  if (comma == std::string::npos || text.find(',', comma + 1) != std::string::npos) refuse_argument();
  if (arrow != std::string::npos && arrow < comma) refuse_argument();
  Labels labels{text.substr(0, comma),
                text.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1),
                arrow == std::string::npos ? "" : text.substr(arrow + 2)};
  const std::size_t left_axes = axes_of_ellipsis(labels.left, left_rank);
  const std::size_t right_axes = axes_of_ellipsis(labels.right, right_rank);
  const std::size_t most = std::max(left_axes, right_axes);
  labels.left = with_ellipsis(labels.left, left_axes, most);
  labels.right = with_ellipsis(labels.right, right_axes, most);
  if (arrow != std::string::npos) {
    // `...` that is not in the result is summed over.
    labels.out = with_ellipsis(labels.out, most, most);
  } else {
    // The result has the letters that occur once, in the order of the alphabet, after the axes of `...`.
    std::string all = labels.left + labels.right;
    std::sort(all.begin(), all.end());
    for (const char letter : all) {
      const bool is_axis = letter >= '0' && letter <= '9';
      if ((is_axis && labels.out.find(letter) == std::string::npos) ||
          (!is_axis && std::count(all.begin(), all.end(), letter) == 1)) {
        labels.out += letter;
      }
    }
  }
  for (const std::string* side : {&labels.left, &labels.right, &labels.out}) {
    for (const char letter : *side) {
      const bool is_label = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
                            (letter >= 'A' && letter <= 'Z');
      // A diagonal is no product of matrices.
      if (!is_label || std::count(side->begin(), side->end(), letter) != 1) refuse_argument();
    }
  }
  return labels;
}

/// Sums over the axes of one operand that neither the other one nor the result has.
Array sum_away(Arguments& arguments, const Array& array, std::string& labels, const std::string& kept) {
  Axes stay;
  Axes go;
  std::string left;
  Shape shape;
  for (std::size_t axis = 0; axis < labels.size(); ++axis) {
    const bool stays = kept.find(labels[axis]) != std::string::npos;
    (stays ? stay : go).push_back(axis);
    if (!stays) continue;
    left += labels[axis];
    shape.push_back(array.shape[axis]);
  }
  if (go.empty()) return array;
  Array result = arguments.workspace().make(shape);
  const Offsets outer = axis_offsets(array.shape, stay);
  const Offsets inner = axis_offsets(array.shape, go);
  for (std::size_t i = 0; i < outer.size(); ++i) {
    for (const std::int64_t offset : inner)
      result.values[i] += array.values[static_cast<std::size_t>(outer[i] + offset)];
  }
  labels = left;
  return result;
}

Results run_einsum(Arguments& arguments) {
  const std::string_view equation = arguments.text("equation", "");
  // Two operands, or a list of them.
  const std::vector<Value>& given = arguments.call().positional;
  arguments.ignore_all();
  const bool is_list = given.size() == 2 && given[1].kind == Value::ValueForm::list;
  const std::span<const Value> operands =
      is_list ? std::span(given[1].items) : std::span(given).subspan(std::min<std::size_t>(given.size(), 1));
  if (operands.size() != 2) refuse_argument();
  const Value* const first = &operands[0];
  const Value* const second = &operands[1];
  if (first->kind != Value::ValueForm::tensor || second->kind != Value::ValueForm::tensor) refuse_argument();
  Array left = arguments.workspace().load(first->tensor);
  Array right = arguments.workspace().load(second->tensor);
  Labels labels = parse_equation(equation, left.rank(), right.rank());
  left = sum_away(arguments, left, labels.left, labels.right + labels.out);
  right = sum_away(arguments, right, labels.right, labels.left + labels.out);

  Product product;
  product.left.array = &left;
  product.right.array = &right;
  const Shape left_strides = row_major(left.shape);
  const Shape right_strides = row_major(right.shape);
  const auto length_and_stride = [](const std::string& own, const Array& array, const Shape& strides,
                                    char label, std::int64_t& length) {
    const std::size_t axis = own.find(label);
    if (axis == std::string::npos) return std::int64_t{0};
    if (length != 1 && array.shape[axis] != 1 && array.shape[axis] != length) refuse_argument();
    const std::int64_t stride = array.shape[axis] == 1 ? 0 : strides[axis];
    length = std::max(length, array.shape[axis]);
    return stride;
  };
  struct Group {
    Shape lengths, left, right, out;
  };
  Group batch, rows, columns, depth;
  for (const char label : labels.out) {
    std::int64_t length = 1;
    length_and_stride(labels.left, left, left_strides, label, length);
    length_and_stride(labels.right, right, right_strides, label, length);
    if ((labels.left + labels.right).find(label) == std::string::npos) refuse_argument();
    product.shape.push_back(length);
  }
  const Shape out_strides = row_major(product.shape);
  std::string all = labels.out;
  for (const char label : labels.left) {
    if (all.find(label) == std::string::npos) all += label;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t length = 1;
    const bool in_left = labels.left.find(all[i]) != std::string::npos;
    const bool in_right = labels.right.find(all[i]) != std::string::npos;
    const std::int64_t left_stride = length_and_stride(labels.left, left, left_strides, all[i], length);
    const std::int64_t right_stride = length_and_stride(labels.right, right, right_strides, all[i], length);
    Group& group =
        i >= labels.out.size() ? depth : (in_left && in_right ? batch : (in_left ? rows : columns));
    group.lengths.push_back(length);
    group.left.push_back(left_stride);
    group.right.push_back(right_stride);
    group.out.push_back(i < out_strides.size() ? out_strides[i] : 0);
  }
  for (const Group* group : {&batch, &rows, &columns, &depth}) {
    arguments.workspace().take(static_cast<std::uint64_t>(count_of(group->lengths)));
  }
  product.left.batch = offsets_of(batch.lengths, batch.left);
  product.left.row = offsets_of(rows.lengths, rows.left);
  product.left.column = offsets_of(depth.lengths, depth.left);
  product.right.batch = offsets_of(batch.lengths, batch.right);
  product.right.row = offsets_of(depth.lengths, depth.right);
  product.right.column = offsets_of(columns.lengths, columns.right);
  product.output = {nullptr, offsets_of(batch.lengths, batch.out), offsets_of(rows.lengths, rows.out),
                    offsets_of(columns.lengths, columns.out)};
  return replay_product(arguments, product, left, right);
}

// ---------------------------------------------------------------------- convolutions

struct Convolution {
  Shape stride;
  Shape dilation;
  Shape before;  // zeros in front of each axis
  Shape after;
  std::int64_t groups = 1;
};

Shape one_each(Shape given, std::size_t axes) {
  if (given.size() == 1) given.assign(axes, given[0]);
  if (given.size() != axes) refuse_argument();
  return given;
}

Array padded(Arguments& arguments, const Array& input, const Convolution& how) {
  Shape shape = input.shape;
  for (std::size_t axis = 0; axis < how.before.size(); ++axis)
    shape[axis + 2] += how.before[axis] + how.after[axis];
  Array result = arguments.workspace().make(shape);
  const Shape strides = row_major(shape);
  std::int64_t start = 0;
  for (std::size_t axis = 0; axis < how.before.size(); ++axis) start += how.before[axis] * strides[axis + 2];
  const Offsets places = offsets_of(input.shape, strides);
  for (std::size_t i = 0; i < places.size(); ++i) {
    result.values[static_cast<std::size_t>(places[i] + start)] = input.values[i];
  }
  return result;
}

Results convolve(Arguments& arguments, Array input, Array weight, const std::optional<Array>& bias,
                 const Convolution& how) {
  const std::size_t axes = how.stride.size();
  const bool has_batch = input.shape.size() == axes + 2;
  if (!has_batch) input.shape.insert(input.shape.begin(), 1);
  if (input.shape.size() != axes + 2 || weight.shape.size() != axes + 2 || how.groups < 1 ||
      weight.shape[0] % how.groups != 0 || input.shape[1] != weight.shape[1] * how.groups) {
    refuse_argument();
  }
  Array whole = padded(arguments, input, how);
  Shape out = {input.shape[0], weight.shape[0]};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t window = how.dilation[axis] * (weight.shape[axis + 2] - 1) + 1;
    if (how.stride[axis] < 1 || how.dilation[axis] < 1 || weight.shape[axis + 2] < 1) refuse_argument();
    if (whole.shape[axis + 2] < window) refuse_argument();
    out.push_back((whole.shape[axis + 2] - window) / how.stride[axis] + 1);
  }
  arguments.workspace().take(2 * static_cast<std::uint64_t>(count_of(out)));
  // Groups are batches, places of the window are rows, and what the window sees are columns.
  const Shape strides = row_major(whole.shape);
  const Shape out_strides = row_major(out);
  const std::int64_t per_group = out[1] / how.groups;
  Shape places = {out[0]};
  Shape steps = {strides[0]};
  Shape seen = {weight.shape[1]};
  Shape seen_steps = {strides[1]};
  Shape out_steps = {out_strides[0]};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    places.push_back(out[axis + 2]);
    steps.push_back(strides[axis + 2] * how.stride[axis]);
    seen.push_back(weight.shape[axis + 2]);
    seen_steps.push_back(strides[axis + 2] * how.dilation[axis]);
    out_steps.push_back(out_strides[axis + 2]);
  }
  Product product;
  product.shape = out;
  if (!has_batch) product.shape.erase(product.shape.begin());
  const Shape groups = {how.groups};
  const std::int64_t depth = count_of(seen);
  product.left = {&whole, offsets_of(groups, {weight.shape[1] * strides[1]}), offsets_of(places, steps),
                  offsets_of(seen, seen_steps)};
  product.right = {&weight, offsets_of(groups, {per_group * depth}), offsets_of({depth}, {1}),
                   offsets_of({per_group}, {depth})};
  product.output = {nullptr, offsets_of(groups, {per_group * out_strides[1]}), offsets_of(places, out_steps),
                    offsets_of({per_group}, {out_strides[1]})};
  if (bias) {
    if (bias->shape != Shape{out[1]}) refuse_argument();
    product.added = {&*bias, offsets_of(groups, {per_group}), Offsets(product.left.row.size(), 0),
                     offsets_of({per_group}, {1})};
  }
  return replay_product(arguments, product, whole, weight);
}

Results run_convolution(Arguments& arguments) {
  Array weight = arguments.tensor("weight");
  if (weight.rank() < 3) refuse_argument();
  const std::size_t axes = weight.shape.size() - 2;
  Convolution how;
  how.stride = one_each(arguments.integers("stride", {1}), axes);
  how.dilation = one_each(arguments.integers("dilation", {1}), axes);
  how.groups = arguments.integer("groups", 1);
  const Value* const padding = arguments.find("padding");
  how.before.assign(axes, 0);
  how.after = how.before;
  if (padding != nullptr && padding->kind == Value::ValueForm::text) {
    if (padding->text != "valid" && padding->text != "same") refuse_argument();
    for (std::size_t axis = 0; padding->text == "same" && axis < axes; ++axis) {
      const std::int64_t total = how.dilation[axis] * (weight.shape[axis + 2] - 1);
      how.before[axis] = total / 2;
      how.after[axis] = total - total / 2;
    }
  } else {
    how.before = one_each(arguments.integers("padding", {0}), axes);
    how.after = how.before;
  }
  for (const Shape* lengths : {&how.stride, &how.dilation, &how.before}) {
    const auto is_wrong = [](std::int64_t length) { return length < 0 || length > (std::int64_t{1} << 30); };
    if (std::any_of(lengths->begin(), lengths->end(), is_wrong)) refuse_argument();
  }
  Array input = arguments.tensor("input");
  return convolve(arguments, std::move(input), std::move(weight), arguments.tensor_if_given("bias"), how);
}

/// Stride, padding and groups of a module are not recorded. A window of one element that left the shape as it
/// was can only have been moved by one.
Results run_convolution_module(Arguments& arguments) {
  Array weight = arguments.need_parameter("weight");
  Array input = arguments.tensor("input");
  const std::size_t axes = weight.shape.size() < 3 ? 0 : weight.shape.size() - 2;
  Convolution how;
  how.stride.assign(axes, 1);
  how.dilation = how.stride;
  how.before.assign(axes, 0);
  how.after = how.before;
  const Shape& out = arguments.output(0).shape;
  const bool is_alike = axes > 0 && out.size() == input.shape.size() && input.shape.size() >= axes + 1 &&
                        std::equal(out.end() - static_cast<std::ptrdiff_t>(axes), out.end(),
                                   input.shape.end() - static_cast<std::ptrdiff_t>(axes));
  const bool is_one = is_alike && std::all_of(weight.shape.begin() + 2, weight.shape.end(),
                                              [](std::int64_t length) { return length == 1; });
  if (!is_one || input.shape[input.shape.size() - axes - 1] != weight.shape[1]) {
    throw NoStatement(Status::argument_not_recorded);
  }
  return convolve(arguments, std::move(input), std::move(weight), arguments.parameter("bias"), how);
}

}  // namespace

std::span<const Operation> product_operations() {
  static const std::vector<Operation> kOperations = {
      {"linear", &run_linear, nullptr, nullptr, &run_linear_module},
      {"matmul", &run_matmul},
      {"added_product", &run_added_product},
      {"outer", &run_outer},
      {"einsum", &run_einsum},
      {"convolution", &run_convolution, nullptr, nullptr, &run_convolution_module},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay
