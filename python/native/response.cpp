// SPDX-License-Identifier: Apache-2.0
#include "response.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "response_windows.hpp"

namespace msprobe::python {
namespace {

// The numbers of categories in tables; 0 means a token that the table lacks.
constexpr std::uint16_t kLatinWithSpace = 1;
constexpr std::uint16_t kLatin = 2;
constexpr std::uint16_t kWhitespace = 4;  // and 3 punctuation

/// The work grows with the square of the window.
constexpr Py_ssize_t kWidestWindow = 16384;

struct Candidate {
  double value;
  std::int64_t token;  // -1: not a number
};

/// The category of each token, and how categories are counted.
struct Categories {
  const char* bytes = nullptr;
  std::size_t count = 0;
  std::int64_t last = 0;  // later tokens do not count
  Py_ssize_t most = 0;

  std::uint16_t of(std::int64_t token) const {
    std::uint16_t category = 0;
    if (token >= 0 && token <= last && static_cast<std::size_t>(token) < count)
      std::memcpy(&category, bytes + 2 * token, 2);
    return category;
  }

  /// Do the candidates have more categories than `most`? Spaces and marks go with any category, and a word
  /// with its space counts as the word without it.
  bool mixed(const std::vector<Candidate>& candidates) const {
    std::vector<std::uint16_t> found;
    for (const Candidate& one : candidates) {
      const std::uint16_t category = of(one.token);
      const bool counts = category > kWhitespace || category == kLatinWithSpace || category == kLatin;
      if (counts) found.push_back(category == kLatin ? kLatinWithSpace : category);
    }
    std::sort(found.begin(), found.end());
    return std::unique(found.begin(), found.end()) - found.begin() > most;
  }
};

/// Reads arguments from Python. If a function returns false, a Python exception is pending.
class Reader {
 public:
  Reader(Py_ssize_t width, double least_sum, const Categories& categories)
      : width_(width), least_sum_(least_sum), categories_(categories) {}

  bool read_tokens(PyObject* given) {
    const Ref list(PySequence_List(given));
    if (!list) return false;
    const Py_ssize_t size = PyList_Size(list.get());
    tokens.reserve(static_cast<std::size_t>(size));
    for (Py_ssize_t at = 0; at < size; ++at) {
      tokens.push_back(PyLong_AsLongLong(PyList_GetItem(list.get(), at)));
      if (tokens.back() == -1 && PyErr_Occurred() != nullptr) return false;
    }
    return true;
  }

  bool read_rows(PyObject* given) {
    const Ref list(PySequence_List(given));
    if (!list) return false;
    const Py_ssize_t size = PyList_Size(list.get());
    Py_ssize_t narrowest = PY_SSIZE_T_MAX;
    for (Py_ssize_t at = 0; at < size; ++at) {
      PyObject* row = PyList_GetItem(list.get(), at);
      if (!PyDict_Check(row)) {
        PyErr_Format(PyExc_TypeError, "position %zd has no dict of token to logprob", at);
        return false;
      }
      narrowest = std::min(narrowest, PyDict_Size(row));
    }
    if (width_ > 0) narrowest = width_;
    positions.reserve(static_cast<std::size_t>(size));
    for (Py_ssize_t at = 0; at < size; ++at) {
      // Copy the dict, because converting its values to numbers may run code that changes it.
      const Ref row(PyDict_Copy(PyList_GetItem(list.get(), at)));
      if (!row) return false;
      if (PyDict_Size(row.get()) == 0) {
        PyErr_Format(PyExc_ValueError, "position %zd has no logprobs", at);
        return false;
      }
      if (!read_row(row.get(), static_cast<std::size_t>(narrowest))) return false;
    }
    return true;
  }

  std::vector<ResponsePosition> positions;
  std::vector<std::int64_t> tokens;
  bool finite = true;

 private:
  bool read_row(PyObject* row, std::size_t width) {
    candidates_.clear();
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    bool has_nan = false;
    for (Py_ssize_t at = 0; PyDict_Next(row, &at, &key, &value) != 0;) {
      Candidate one{PyFloat_AsDouble(value), -1};
      if (one.value == -1 && PyErr_Occurred() != nullptr) return false;
      if (categories_.bytes != nullptr) one.token = number_of(key);
      has_nan = has_nan || std::isnan(one.value);
      candidates_.push_back(one);
    }
    if (has_nan) {
      finite = false;
      return true;
    }
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
    candidates_.resize(std::min(candidates_.size(), width));
    finite = finite && std::isfinite(candidates_.front().value) && std::isfinite(candidates_.back().value);
    double sum = 0;
    for (const Candidate& one : candidates_) sum += std::exp(one.value);
    const bool unsure = sum < least_sum_;
    const bool mixed = unsure && categories_.bytes != nullptr && categories_.mixed(candidates_);
    positions.push_back({candidates_.front().value, unsure, mixed});
    return true;
  }

  static std::int64_t number_of(PyObject* key) {
    const std::int64_t number = PyLong_AsLongLong(key);
    if (number == -1) PyErr_Clear();  // a name
    return number;
  }

  const Py_ssize_t width_;
  const double least_sum_;
  const Categories& categories_;
  std::vector<Candidate> candidates_;
};

/// Releases the interpreter lock while it exists.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { PyEval_RestoreThread(thread_); }

 private:
  PyThreadState* thread_;
};

PyObject* raise_in_python(const char* text) {
  PyErr_SetString(PyExc_ValueError, text);
  return nullptr;
}

}  // namespace

// judge_response(dicts of token to logprob, tokens, categories or None, last token of them, how many of each
// dict or 0, settings) -> 0: nothing, 1: rare characters, 2: garbled, 3: repetition, 4: NaN or Inf
PyObject* judge_response(PyObject*, PyObject* arguments) {
  PyObject* rows = nullptr;
  PyObject* tokens = nullptr;
  PyObject* table = nullptr;
  long long last = 0;
  Py_ssize_t width = 0;
  double least_sum = 0;
  Categories categories;
  ResponseSettings settings{};
  if (PyArg_ParseTuple(arguments, "OOOLn(nndndddnnddddddnndnn)", &rows, &tokens, &table, &last, &width,
                       &settings.window_size, &settings.stride, &least_sum, &categories.most,
                       &settings.rare_top, &settings.garbled_top, &settings.garbled_ratio,
                       &settings.garbled_windows, &settings.gram, &settings.distinct, &settings.repeated_top,
                       &settings.deviation, &settings.correlation, &settings.harmonic,
                       &settings.correlated_top, &settings.min_period, &settings.max_period,
                       &settings.roughness, &settings.one_sign, &settings.both_signs) == 0) {
    return nullptr;
  }
  if (settings.window_size < 1 || settings.window_size > kWidestWindow || settings.stride < 1 ||
      settings.gram < 1)
    return raise_in_python("window_size (of 1 to 16384), stride and n must be positive");
  if (table != Py_None) {
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(table, &bytes, &size) != 0) return nullptr;
    categories.bytes = bytes;
    categories.count = static_cast<std::size_t>(size) / 2;
    categories.last = last;
  }
  try {
    Reader reader(width, least_sum, categories);
    if (!reader.read_rows(rows) || !reader.read_tokens(tokens)) return nullptr;
    Ill found = Ill::not_finite;
    if (reader.finite) {
      const Unlocked others_may_run;
      found = judge_windows(reader.positions, reader.tokens, table != Py_None, settings);
    }
    return PyLong_FromLong(static_cast<long>(found));
  } catch (const std::bad_alloc&) {
    return PyErr_NoMemory();
  }
}

}  // namespace msprobe::python
