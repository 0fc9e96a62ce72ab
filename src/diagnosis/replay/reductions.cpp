// SPDX-License-Identifier: Apache-2.0
// Sums, means, variances, extrema along axes, and running sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnosis/replay/operation.hpp"
#include "diagnosis/replay/product.hpp"

namespace msprobe::diagnosis::replay {
namespace {

/// An array as groups of elements that come to one each.
struct Groups {
  Shape shape;      // of the result
  Offsets starts;   // of the groups, in order of the result
  Offsets members;  // of the elements of a group, from its start

  Groups(const Array& array, const Shape& axes, bool is_all, bool keeps) {
    std::vector<bool> goes(array.shape.size(), is_all);
    for (const std::int64_t axis : axes) {
      const std::size_t place = axis_of(axis, array.rank());
      if (array.shape.empty()) continue;
      if (goes[place] && !is_all) refuse_argument();
      goes[place] = true;
    }
    std::vector<std::size_t> stay;
    std::vector<std::size_t> go;
    for (std::size_t axis = 0; axis < goes.size(); ++axis) {
      (goes[axis] ? go : stay).push_back(axis);
      if (!goes[axis]) {
        shape.push_back(array.shape[axis]);
      } else if (keeps) {
        shape.push_back(1);
      }
    }
    starts = axis_offsets(array.shape, stay);
    members = axis_offsets(array.shape, go);
  }

  double of(const Array& array, std::size_t group, std::size_t member) const {
    return array.values[static_cast<std::size_t>(starts[group] + members[member])];
  }
};

struct Reduced {
  Array input;
  Groups groups;
};

/// The arguments that all of them have. An empty list of axes means all.
Reduced reduced(Arguments& arguments) {
  Array input = arguments.tensor("input");
  cast_to(input, arguments.dtype("dtype"));
  const Shape axes = arguments.integers("dim", {});
  const bool keeps = arguments.flag("keepdim", false);
  arguments.workspace().take(2 * input.size() + 2);
  Groups groups(input, axes, axes.empty(), keeps);
  return {std::move(input), std::move(groups)};
}

/// Sums lose what sums of numbers of either sign lose, one after the other.
double sum_sizes(const Array& input, std::size_t members) {
  return 0.5 * std::sqrt(static_cast<double>(members)) * norm_of(input.values);
}

Results sum_of(Arguments& arguments, bool is_mean) {
  const Reduced all = reduced(arguments);
  const std::size_t count = all.groups.members.size();
  const double divisor = is_mean ? static_cast<double>(count) : 1;
  Array result = arguments.workspace().make(all.groups.shape);
  for (std::size_t i = 0; i < result.size(); ++i) {
    double sum = 0;
    for (const std::int64_t member : all.groups.members) {
      sum += all.input.values[static_cast<std::size_t>(all.groups.starts[i] + member)];
    }
    result.values[i] = sum / divisor;
  }
  return only(std::move(result), sum_sizes(all.input, count) / std::max(divisor, 1.0));
}

Results run_prod(Arguments& arguments) {
  const Reduced all = reduced(arguments);
  Array result = arguments.workspace().make(all.groups.shape, 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    for (const std::int64_t member : all.groups.members) {
      result.values[i] *= all.input.values[static_cast<std::size_t>(all.groups.starts[i] + member)];
    }
  }
  const double sizes =
      0.5 * std::sqrt(static_cast<double>(all.groups.members.size())) * norm_of(result.values);
  return only(std::move(result), sizes);
}

Results run_logsumexp(Arguments& arguments) {
  const Reduced all = reduced(arguments);
  Array result = arguments.workspace().make(all.groups.shape);
  double sizes = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto element = [&](std::int64_t member) {
      return all.input.values[static_cast<std::size_t>(all.groups.starts[i] + member)];
    };
    double largest = -std::numeric_limits<double>::infinity();
    for (const std::int64_t member : all.groups.members) largest = std::max(largest, element(member));
    const double shift = std::isfinite(largest) ? largest : 0;
    double sum = 0;
    for (const std::int64_t member : all.groups.members) sum += std::exp(element(member) - shift);
    result.values[i] = shift + std::log(sum);
    const double size = std::fabs(shift) + std::fabs(std::log(sum)) + 1;
    if (std::isfinite(size)) sizes += 4 * size * size;
  }
  return only(std::move(result), std::sqrt(sizes));
}

// ---------------------------------------------------------------------- variance

/// `var(x, unbiased)` and `var(x, dim, unbiased)`: the second argument says by its type what it is.
Results spread_of(Arguments& arguments, bool is_root, bool has_mean) {
  Array input = arguments.tensor("input");
  const Value* const dim = arguments.find("dim");
  double correction = arguments.number("correction", 1);
  Shape axes;
  if (dim != nullptr && dim->kind == Value::ValueForm::boolean) {
    correction = dim->number;
  } else {
    axes = arguments.integers("dim", {});
    if (arguments.given("unbiased")) correction = arguments.flag("unbiased", true) ? 1 : 0;
  }
  arguments.workspace().take(2 * input.size() + 2);
  const Groups groups(input, axes, axes.empty(), arguments.flag("keepdim", false));
  const auto count = static_cast<double>(groups.members.size());
  Results results(2);
  results[0].value = arguments.workspace().make(groups.shape);
  results[1].value = arguments.workspace().make(groups.shape);
  double sizes = 0;
  for (std::size_t i = 0; i < groups.starts.size(); ++i) {
    const auto element = [&](std::int64_t member) {
      return input.values[static_cast<std::size_t>(groups.starts[i] + member)];
    };
    double sum = 0;
    for (const std::int64_t member : groups.members) sum += element(member);
    const double mean = sum / count;
    double squares = 0;
    for (const std::int64_t member : groups.members)
      squares += (element(member) - mean) * (element(member) - mean);
    const double variance = squares / std::max(count - correction, 0.0);
    const double root = std::sqrt(variance);
    results[0].value.values[i] = is_root ? root : variance;
    results[1].value.values[i] = mean;
    // An error of the mean, twice.
    const double size = 2 * std::fabs(mean) * (is_root ? 1 : root) + results[0].value.values[i];
    if (std::isfinite(size)) sizes += 16 * size * size;
  }
  results[0].sizes = std::sqrt(sizes);
  results[1].sizes = sum_sizes(input, groups.members.size()) / std::max(count, 1.0);
  if (!has_mean) results.pop_back();
  return results;
}

// ---------------------------------------------------------------------- extrema

bool is_beyond(double a, double b, bool is_maximum) {
  if (std::isnan(b)) return false;
  return std::isnan(a) || (is_maximum ? a > b : a < b);
}

std::size_t extremum(const Array& input, const Groups& groups, std::size_t group, bool is_maximum) {
  if (groups.members.empty()) refuse_argument();
  std::size_t best = 0;
  const auto element = [&](std::size_t i) { return groups.of(input, group, i); };
  for (std::size_t i = 1; i < groups.members.size(); ++i) {
    if (is_beyond(element(i), element(best), is_maximum)) best = i;
  }
  return best;
}

/// Where an extremum comes more than once any of its places will do: the recorded one if it is such a place.
Expected places_of(Arguments& arguments, const Array& input, const Groups& groups, bool is_maximum,
                   std::size_t output) {
  Expected result;
  result.value = arguments.workspace().make(groups.shape);
  const Array recorded = arguments.recorded(output);
  if (recorded.shape != groups.shape) refuse_argument();
  for (std::size_t i = 0; i < result.value.size(); ++i) {
    const std::size_t best = extremum(input, groups, i, is_maximum);
    const auto element = [&](std::size_t member) { return groups.of(input, i, member); };
    const double chosen = recorded.values[i];
    const bool is_place = chosen >= 0 && chosen < static_cast<double>(groups.members.size());
    const double found = is_place ? element(static_cast<std::size_t>(chosen)) : 0;
    const bool is_same =
        is_place && (found == element(best) || (std::isnan(found) && std::isnan(element(best))));
    result.value.values[i] = is_same ? chosen : static_cast<double>(best);
  }
  return result;
}

Results extrema(Arguments& arguments, const Array& input, const Groups& groups, bool is_maximum) {
  Results results = only(arguments.workspace().make(groups.shape));
  for (std::size_t i = 0; i < groups.starts.size(); ++i)
    results[0].value.values[i] = groups.of(input, i, extremum(input, groups, i, is_maximum));
  return results;
}

Results extrema_of(Arguments& arguments, bool is_maximum) {
  const Array input = arguments.tensor("input");
  const bool keeps = arguments.flag("keepdim", false);
  if (arguments.is_tensor("dim")) {
    const Array other = arguments.tensor("dim");
    Array result = arguments.workspace().make(broadcast(input.shape, other.shape));
    walk<2>(result.shape, {&input, &other}, [&](std::size_t i, const std::array<double, 2>& x) {
      result.values[i] = is_beyond(x[1], x[0], is_maximum) ? x[1] : x[0];
    });
    return only(std::move(result));
  }
  const Shape axes = arguments.given("dim") ? Shape{arguments.integer("dim", 0)} : Shape();
  arguments.workspace().take(2 * input.size() + 2);
  const Groups groups(input, axes, axes.empty(), keeps);
  Results results = extrema(arguments, input, groups, is_maximum);
  if (!axes.empty()) {
    if (arguments.outputs() < 2) refuse_argument();
    results.push_back(places_of(arguments, input, groups, is_maximum, 1));
  }
  return results;
}

Results all_extrema_of(Arguments& arguments, bool is_maximum) {
  const Reduced all = reduced(arguments);
  return extrema(arguments, all.input, all.groups, is_maximum);
}

Results place_of_extremum(Arguments& arguments, bool is_maximum) {
  const Reduced all = reduced(arguments);
  Results results;
  results.push_back(places_of(arguments, all.input, all.groups, is_maximum, 0));
  return results;
}

// ---------------------------------------------------------------------- running sums

Results run_cumsum(Arguments& arguments) {
  Array array = arguments.tensor("input");
  const std::size_t axis = axis_of(arguments.integer("dim", 0), array.rank());
  if (!arguments.given("dim")) refuse_argument();
  cast_to(array, arguments.dtype("dtype"));
  const std::size_t length = array.shape.empty() ? 1 : static_cast<std::size_t>(array.shape[axis]);
  const std::size_t inner = array.shape.empty() || array.values.empty()
                                ? 1
                                : static_cast<std::size_t>(row_major(array.shape)[axis]);
  // Each sum goes on from the one before: its error stays.
  const double sizes = 0.5 * static_cast<double>(length) * norm_of(array.values);
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i / inner % length != 0) array.values[i] += array.values[i - inner];
  }
  return only(std::move(array), sizes);
}

}  // namespace

std::span<const Operation> reduction_operations() {
  static const std::vector<Operation> kOperations = {
      {"sum", [](Arguments& arguments) { return sum_of(arguments, false); }},
      {"mean", [](Arguments& arguments) { return sum_of(arguments, true); }},
      {"prod", &run_prod},
      {"logsumexp", &run_logsumexp},
      {"var", [](Arguments& arguments) { return spread_of(arguments, false, false); }},
      {"std", [](Arguments& arguments) { return spread_of(arguments, true, false); }},
      {"var_mean", [](Arguments& arguments) { return spread_of(arguments, false, true); }},
      {"std_mean", [](Arguments& arguments) { return spread_of(arguments, true, true); }},
      {"max", [](Arguments& arguments) { return extrema_of(arguments, true); }},
      {"min", [](Arguments& arguments) { return extrema_of(arguments, false); }},
      {"amax", [](Arguments& arguments) { return all_extrema_of(arguments, true); }},
      {"amin", [](Arguments& arguments) { return all_extrema_of(arguments, false); }},
      {"argmax", [](Arguments& arguments) { return place_of_extremum(arguments, true); }},
      {"argmin", [](Arguments& arguments) { return place_of_extremum(arguments, false); }},
      {"cumsum", &run_cumsum},
  };
  return kOperations;
}

}  // namespace msprobe::diagnosis::replay
