// Rows of initializers. Fans are those of weights [outputs, inputs, taps...], or with the first two turned: what each
// output sums up, and what each input reaches.
#include "grad/initializers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "graph/philox.h"
#include "support/quote.h"
#include "tensor/npy.h"

namespace aglow {

namespace {

struct Draw {
  const Type& type;
  const grad::SettingValues& settings;
  uint64_t seed;
  bool inputsFirst;

  double setting(std::string_view name) const { return settings.at(name); }
  int64_t taps() const { return type.elements() / std::max<int64_t>(type.dim(0) * type.dim(1), 1); }
  auto inputs() const { return static_cast<double>(type.dim(inputsFirst ? 0 : 1) * taps()); }
  auto outputs() const { return static_cast<double>(type.dim(inputsFirst ? 1 : 0) * taps()); }

  // Evenly between -bound and bound.
  std::vector<double> even(double bound) const {
    std::vector<double> values = uniformNumbers(type.elements(), seed, 0);
    for (double& value : values) value = bound * (2 * value - 1);
    return values;
  }
  // Around 0 (Box and Muller).
  std::vector<double> bell(double deviation) const {
    constexpr double kTwoPi = 6.283185307179586476925;
    std::vector<double> values = uniformNumbers(type.elements(), seed, 0);
    const std::vector<double> angles = uniformNumbers(type.elements(), seed, 1);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = deviation * std::sqrt(-2 * std::log1p(-values[i])) * std::cos(kTwoPi * angles[i]);
    return values;
  }
};

std::vector<double> same(const Draw& d, double value) {
  return std::vector<double>(static_cast<size_t>(d.type.elements()), value);
}
std::vector<double> zero(const Draw& d) { return same(d, 0); }
std::vector<double> constant(const Draw& d) { return same(d, d.setting("value")); }
std::vector<double> uniform(const Draw& d) { return d.even(d.setting("bound")); }
std::vector<double> normal(const Draw& d) { return d.bell(d.setting("deviation")); }
std::vector<double> xavier(const Draw& d) {
  return d.even(d.setting("gain") * std::sqrt(6 / std::max(d.inputs() + d.outputs(), 1.0)));
}
std::vector<double> he(const Draw& d) { return d.bell(d.setting("gain") * std::sqrt(2 / std::max(d.inputs(), 1.0))); }

// Rows, or columns where they are longer, of length 1 and at right angles: each loses what the earlier ones have of it,
// twice, since the first time leaves roundings.
std::vector<double> orthogonal(const Draw& d) {
  const int64_t rows = d.type.dim(0), columns = d.type.elements() / std::max<int64_t>(rows, 1);
  const bool wide = rows <= columns;
  const int64_t count = wide ? rows : columns, length = wide ? columns : rows;
  std::vector<double> drawn = d.bell(1), values(drawn.size());
  const auto of = [&](int64_t vector, int64_t i) -> double& { return drawn[static_cast<size_t>(vector * length + i)]; };
  for (int64_t v = 0; v < count; ++v) {
    for (int64_t before = 0; before < 2 * v; ++before) {
      double along = 0;
      for (int64_t i = 0; i < length; ++i) along += of(v, i) * of(before % v, i);
      for (int64_t i = 0; i < length; ++i) of(v, i) -= along * of(before % v, i);
    }
    double squares = 0;
    for (int64_t i = 0; i < length; ++i) squares += of(v, i) * of(v, i);
    for (int64_t i = 0; i < length; ++i) of(v, i) /= std::sqrt(squares);
  }
  for (int64_t v = 0; v < count; ++v)
    for (int64_t i = 0; i < length; ++i)
      values[static_cast<size_t>(wide ? v * columns + i : i * columns + v)] = d.setting("gain") * of(v, i);
  return values;
}

struct Row : InitializerRow {
  std::vector<double> (*draw)(const Draw& d) = nullptr;
  int leastRank = 0;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows{
      {{"zero", "zeros", {}}, zero},
      {{"constant", "one value", {{"value", 0}}}, constant},
      {{"uniform", "evenly between -bound and bound", {{"bound", 0.05}}}, uniform},
      {{"normal", "around 0", {{"deviation", 0.05}}}, normal},
      {{"xavier", "evenly, so that variances stay the same in both directions", {{"gain", 1}}}, xavier, 2},
      {{"he", "around 0, so that variances stay the same behind a Relu", {{"gain", 1}}}, he, 2},
      {{"orthogonal", "rows, or columns if they are longer, at right angles", {{"gain", 1}}}, orthogonal, 2},
  };
  return rows;
}

Error usage(std::string message) {
  return {.code = Code::Usage, .message = std::move(message), .where = {}, .hint = {}};
}

Result<Tensor> fromFile(const Type& type, const std::string& path) {
  AGLOW_TRY(Tensor tensor, readNpy(path, type.kind()));
  if (tensor.type() == type) return tensor;
  return usage(fmt::format("expected {} in {}, got {}", type.text(), quoted(path), tensor.type().text()));
}

// The seed, and every letter of the name.
uint64_t seedOf(std::string_view variable, uint64_t seed) {
  constexpr uint64_t kPrime = 0x100000001b3U, kStart = 0xcbf29ce484222325U;
  uint64_t hash = kStart ^ seed;
  for (const char letter : variable) hash = (hash ^ static_cast<unsigned char>(letter)) * kPrime;
  return hash;
}

}  // namespace

std::vector<InitializerRow> initializers() { return {table().begin(), table().end()}; }

Result<Initializer> parseInitializer(const std::string& text) {
  if (text.ends_with(".npy")) return Initializer{.name = "file", .path = text};
  const size_t colon = std::min(text.find(':'), text.size());
  Initializer how{.name = text.substr(0, colon)};
  for (size_t from = colon + 1; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    const std::string word = text.substr(from, to - from);
    const size_t equals = std::min(word.find('='), word.size());
    double value = 0;
    const char* begin = word.data() + std::min(equals + 1, word.size());
    const char* end = word.data() + word.size();
    const auto [last, fault] = std::from_chars(begin, end, value);
    if (fault != std::errc() || last != end || !std::isfinite(value))
      return usage(fmt::format("initializer {}: expected SETTING=NUMBER, got {}", quoted(text), quoted(word)));
    how.settings[word.substr(0, equals)] = value;
    from = to + 1;
  }
  grad::Faults faults;
  const Row* row = grad::findRow(table(), "initializer", how.name, faults);
  if (row != nullptr) grad::settingsOf(row->name, row->settings, how.settings, faults);
  AGLOW_OK(faults.status());
  return how;
}

bool isFor(const Initializer& how, const Type& type) {
  const auto row = std::find_if(table().begin(), table().end(), [&](const Row& r) { return r.name == how.name; });
  return row == table().end() || type.rank() >= row->leastRank;
}

Result<Tensor> initialTensor(const Type& type, const Initializer& how, std::string_view variable, uint64_t seed) {
  if (!isFloat(type.kind())) return usage(fmt::format("expected a variable of floats, got {}", type.text()));
  if (how.name == "file") return fromFile(type, how.path);
  grad::Faults faults;
  const Row* row = grad::findRow(table(), "initializer", how.name, faults);
  AGLOW_OK(faults.status());
  const grad::SettingValues settings = grad::settingsOf(row->name, row->settings, how.settings, faults);
  if (type.rank() < row->leastRank)
    faults.add(fmt::format("initializer '{}' needs weights [outputs, inputs, ...], got {}", row->name, type.text()));
  AGLOW_OK(faults.status());
  return Tensor::fromDoubles(type, row->draw({type, settings, seedOf(variable, seed), how.inputsFirst}));
}

}  // namespace aglow
