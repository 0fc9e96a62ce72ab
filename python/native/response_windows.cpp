// SPDX-License-Identifier: Apache-2.0
#include "response_windows.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_set>

namespace msprobe::python {
namespace {

constexpr double kPi = 3.14159265358979323846;

struct Window {
  const ResponsePosition* positions;
  std::size_t size;
  const std::int64_t* tokens;
  std::size_t token_count;

  template <typename Is>
  std::size_t count(Is is) const {
    return static_cast<std::size_t>(std::count_if(positions, positions + size, is));
  }
  double share(std::size_t some) const { return static_cast<double>(some) / static_cast<double>(size); }
  double least_top() const {
    return std::min_element(positions, positions + size,
                            [](const auto& a, const auto& b) { return a.top < b.top; })
        ->top;
  }
};

std::size_t mixed_in(const Window& window) {
  return window.count([](const ResponsePosition& one) { return one.mixed; });
}

std::size_t below_in(const Window& window, double top) {
  return window.count([top](const ResponsePosition& one) { return one.top < top; });
}

bool has_rare(const Window& window, bool scripts, const ResponseSettings& settings) {
  return (scripts ? mixed_in(window) : below_in(window, settings.rare_top)) > 0;
}

bool is_garbled(const Window& window, bool scripts, const ResponseSettings& settings) {
  if (scripts) {
    const std::size_t mixed = mixed_in(window);
    return mixed > 0 && window.share(mixed) > settings.garbled_ratio;
  }
  const std::size_t unsure = window.count([](const ResponsePosition& one) { return one.unsure; });
  return unsure > 0 && window.share(unsure) > settings.garbled_ratio &&
         window.share(below_in(window, settings.garbled_top)) > settings.garbled_ratio;
}

/// The share of distinct sequences among those of `length` tokens.
double distinct_share(const Window& window, std::size_t length) {
  if (window.token_count < length) return 1;
  const std::size_t all = window.token_count - length + 1;
  std::unordered_set<std::string_view> seen;
  for (std::size_t at = 0; at < all; ++at) {
    seen.emplace(reinterpret_cast<const char*>(window.tokens + at), length * sizeof(std::int64_t));
  }
  return static_cast<double>(seen.size()) / static_cast<double>(all);
}

/// Measures how similar the certainty is to the certainty some tokens later. The Python tool drops the
/// highest frequency of a spectrum of 2W points on its way back, which stretches the lags a little; the
/// thresholds were chosen for this.
class Correlation {
 public:
  explicit Correlation(std::size_t window_size) : size_(window_size) {}

  /// False if the certainty does not change.
  bool measure(const Window& window, double least_deviation) {
    std::vector<double> course;
    for (std::size_t at = 0; at < window.size; ++at) course.push_back(window.positions[at].top);
    const auto count = static_cast<double>(course.size());
    const double mean = std::accumulate(course.begin(), course.end(), 0.0) / count;
    double squares = 0;
    for (double& value : course) {
      value -= mean;
      squares += value * value;
    }
    const double deviation = std::sqrt(squares / count);
    if (size_ < 2 || deviation < least_deviation || deviation == 0) return false;
    for (double& value : course) value /= deviation;
    transform_back(power_of(course));
    return true;
  }

  /// The similarity at a lag below count().
  double at(std::size_t lag) const { return half_[lag < size_ ? lag : count() - lag]; }
  std::size_t count() const { return 2 * size_ - 2; }
  /// The mean square of the differences between neighbouring lags.
  double roughness() const {
    double squares = 0;
    for (std::size_t lag = 0; lag + 1 < count(); ++lag) {
      const double step = at(lag + 1) - at(lag);
      squares += step * step;
    }
    return std::sqrt(squares);
  }

 private:
  /// The cosine, or sine, at each of `points` points of the circle.
  template <typename Function>
  static std::vector<double> waves(std::size_t points, Function function) {
    std::vector<double> values(points);
    for (std::size_t i = 0; i < points; ++i)
      values[i] = function(2 * kPi * static_cast<double>(i) / static_cast<double>(points));
    return values;
  }
  static double cosine(double angle) { return std::cos(angle); }
  static double sine(double angle) { return std::sin(angle); }

  std::vector<double> power_of(const std::vector<double>& course) {
    const std::size_t points = 2 * size_;
    if (cosines_.empty()) {
      cosines_ = waves(points, cosine);
      sines_ = waves(points, sine);
    }
    std::vector<double> power(size_);
    for (std::size_t frequency = 0; frequency < size_; ++frequency) {
      double real = 0;
      double imaginary = 0;
      for (std::size_t i = 0; i < course.size(); ++i) {
        const std::size_t angle = i * frequency % points;
        real += course[i] * cosines_[angle];
        imaginary += course[i] * sines_[angle];
      }
      power[frequency] = real * real + imaginary * imaginary;
    }
    return power;
  }

  void transform_back(const std::vector<double>& power) {
    if (back_.empty()) back_ = waves(count(), cosine);
    half_.assign(size_, 0);
    for (std::size_t lag = 0; lag < size_; ++lag) {
      double sum = power[0] + power[size_ - 1] * (lag % 2 == 0 ? 1 : -1);
      for (std::size_t frequency = 1; frequency + 1 < size_; ++frequency)
        sum += 2 * power[frequency] * back_[lag * frequency % count()];
      half_[lag] = sum;
    }
    const double whole = half_[0];
    for (double& value : half_) value /= whole;
  }

  const std::size_t size_;
  std::vector<double> cosines_;
  std::vector<double> sines_;
  std::vector<double> back_;  // cosines for the way back
  std::vector<double> half_;  // the other half mirrors it
};

bool is_periodic(const Window& window, Correlation& correlation, const ResponseSettings& settings) {
  if (!(window.least_top() > settings.correlated_top)) return false;
  if (!correlation.measure(window, settings.deviation)) return false;
  const auto first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(settings.min_period, 1));
  const auto last = static_cast<std::size_t>(std::max<std::ptrdiff_t>(settings.max_period, 0));
  std::size_t period = first;
  for (std::size_t lag = first; lag <= last && lag < correlation.count(); ++lag) {
    if (correlation.at(lag) > correlation.at(period)) period = lag;
  }
  if (first > last || first >= correlation.count() || correlation.at(period) <= settings.correlation)
    return false;
  const auto again = [&](std::size_t times) {
    return times * period < static_cast<std::size_t>(settings.window_size) &&
           correlation.at(times * period) > settings.harmonic;
  };
  return (again(2) || again(3)) && correlation.roughness() > settings.roughness;
}

bool is_circling(const Window& window, const ResponseSettings& settings) {
  return distinct_share(window, static_cast<std::size_t>(settings.gram)) < settings.distinct &&
         window.least_top() > settings.repeated_top;
}

/// Counts the windows with each sign of repetition.
class Repetitions {
 public:
  /// Adds a window. True if there are enough of them now.
  bool add(bool periodic, bool circling, const ResponseSettings& settings) {
    if (periodic && circling) {
      ++both_;
    } else if (periodic) {
      ++periodic_;
    } else if (circling) {
      ++circling_;
    }
    return both_ > settings.both_signs || periodic_ > settings.one_sign || circling_ > settings.one_sign;
  }

 private:
  std::ptrdiff_t both_ = 0;
  std::ptrdiff_t periodic_ = 0;
  std::ptrdiff_t circling_ = 0;
};

}  // namespace

Ill judge_windows(const std::vector<ResponsePosition>& positions, const std::vector<std::int64_t>& tokens,
                  bool scripts, const ResponseSettings& settings) {
  const auto stride = static_cast<std::size_t>(settings.stride);
  const auto window_of = [&](std::size_t begin, std::size_t length) {
    const std::size_t end = std::min(begin + length, tokens.size());
    const std::size_t known = std::min(begin, positions.size());
    return Window{positions.data() + known, std::min(end, positions.size()) - known, tokens.data() + begin,
                  end - begin};
  };
  if (tokens.size() < stride) {
    const Window all{positions.data(), positions.size(), tokens.data(), tokens.size()};
    return has_rare(all, scripts, settings) ? Ill::rare : Ill::none;
  }
  Correlation correlation(static_cast<std::size_t>(settings.window_size));
  Repetitions repetitions;
  std::ptrdiff_t garbled = 0;
  bool rare = false;
  for (std::size_t begin = 0; begin < tokens.size(); begin += stride) {
    const Window window = window_of(begin, static_cast<std::size_t>(settings.window_size));
    if (window.size > 0) {
      rare = rare || has_rare(window, scripts, settings);
      if (is_garbled(window, scripts, settings)) ++garbled;
    }
    if (garbled > settings.garbled_windows) return Ill::garbled;
    if (window.size == 0 || window.size < stride) continue;  // too short to judge
    if (repetitions.add(is_periodic(window, correlation, settings), is_circling(window, settings), settings))
      return Ill::repeated;
  }
  return rare ? Ill::rare : Ill::none;
}

}  // namespace msprobe::python
