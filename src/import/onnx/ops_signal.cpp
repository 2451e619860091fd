// Fourier transforms as products with constant matrices, window functions and mel weights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr int64_t kMostEntries = int64_t{1} << 26;
constexpr int64_t kDenseEntries = int64_t{1} << 22;  // of one transform's matrix, unless its length is prime

struct Transform {
  int64_t length = 0;  // of the signal that is transformed
  bool inverse = false;
  bool onesided = false;  // half of the spectrum; the signal is real

  int64_t bins() const { return onesided ? length / 2 + 1 : length; }
  int64_t inputs() const { return inverse ? bins() : length; }
  int64_t outputs() const { return inverse ? length : bins(); }
};

// The matrix from `in` numbers with `parts` parts each (real, or real and imaginary) to the transform's outputs.
Tensor matrixOf(const Transform& t, int64_t parts, ElemKind kind) {
  const bool realResult = t.inverse && t.onesided;
  const int64_t resultParts = realResult ? 1 : 2, rows = t.inputs() * parts, columns = t.outputs() * resultParts;
  if (columns == 0 || rows > kMostEntries / std::max<int64_t>(columns, 1))
    fail(Code::TooLarge, fmt::format("a transform of length {} is too long for its matrix", t.length));
  std::vector<double> matrix(static_cast<size_t>(rows * columns));
  const double size = t.inverse ? 1 / static_cast<double>(t.length) : 1;
  for (int64_t i = 0; i < t.inputs(); ++i) {
    // Half of the spectrum stands for both halves, but for the bins in the middle that have no mirror image.
    const bool single = !realResult || i == 0 || 2 * i == t.length;
    for (int64_t k = 0; k < t.outputs(); ++k) {
      // i * k stays far below the range; its remainder keeps the angle exact.
      const double angle = 2 * kPi * static_cast<double>(i * k % t.length) / static_cast<double>(t.length);
      const double cosine = size * (single ? 1 : 2) * std::cos(angle);
      const double sine = size * (single ? 1 : 2) * std::sin(angle) * (t.inverse ? 1 : -1);
      double* row = matrix.data() + i * parts * columns + k * resultParts;
      row[0] = cosine;
      if (!realResult) row[1] = sine;
      if (parts == 1) continue;
      row[columns] = -sine;
      if (!realResult) row[columns + 1] = cosine;
    }
  }
  return Tensor::fromDoubles(Type(kind, Shape{rows, columns}), matrix);
}

// The larger of the two factors that are nearest to each other; the number itself when it is prime.
int64_t middleFactor(int64_t n) {
  auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % factor != 0) --factor;
  return n / factor;
}

Value complexProduct(Builder& b, Value x, const std::vector<double>& real, const std::vector<double>& imaginary,
                     const Shape& shape) {
  const Value re = b.constant(Tensor::of(Type(x.kind(), shape), real)),
              im = b.constant(Tensor::of(Type(x.kind(), shape), imaginary));
  const int last = x.rank() - 1;
  const Value xr = sliced(b, x, last, 0, 1), xi = sliced(b, x, last, 1, 1);
  return b.concat({b.sub(b.mul(xr, re), b.mul(xi, im)), b.add(b.mul(xr, im), b.mul(xi, re))}, {.axis = last});
}

// All bins of complex signals [signals, n, 2]. Where the matrix would be large, a transform of length p * q is made of
// q transforms of length p, a turn of each result, and p transforms of length q.
Value complexTransform(Builder& b, Value x, int64_t n, bool inverse) {
  const int64_t signals = x.dim(0), p = middleFactor(n), q = n / p;
  if (4 * n * n <= kDenseEntries || q == 1) {
    const Value matrix = b.constant(matrixOf({.length = n, .inverse = inverse}, 2, x.kind()));
    return b.reshaped(b.matMul(b.reshaped(x, {signals, 2 * n}), matrix), {signals, n, 2});
  }
  const auto swapped = [&](Value v, int64_t rows, int64_t columns) {
    return b.transposed(b.reshaped(v, {signals, rows, columns, 2}), {0, 2, 1, 3});
  };
  const Value columns = b.reshaped(swapped(x, p, q), {signals * q, p, 2});
  const Value inner = b.reshaped(complexTransform(b, columns, p, inverse), {signals, q, p, 2});
  std::vector<double> real, imaginary;
  for (int64_t i = 0; i < q; ++i) {
    for (int64_t k = 0; k < p; ++k) {
      const double angle = 2 * kPi * static_cast<double>(i * k) / static_cast<double>(n);
      real.push_back(std::cos(angle));
      imaginary.push_back(inverse ? std::sin(angle) : -std::sin(angle));
    }
  }
  const Value turned = complexProduct(b, inner, real, imaginary, Shape{q, p, 1});
  const Value rows = b.reshaped(swapped(turned, q, p), {signals * p, q, 2});
  return b.reshaped(swapped(complexTransform(b, rows, q, inverse), p, q), {signals, n, 2});
}

// As complexTransform, with real signals and halves of spectra completed before or cut off afterwards.
Value longTransform(Builder& b, Value x, const Transform& t) {
  const int64_t signals = x.dim(0);
  if (x.dim(2) == 1) x = b.concat({x, b.splat({.elem = x.kind(), .shape = x.shape().dims()})}, {.axis = 2});
  if (t.inverse && t.onesided) {
    // The other half is the mirror image with the sign of its imaginary part turned.
    const int64_t mirrored = t.length - t.bins();
    if (mirrored > 0) {
      const Value image = sliced(b, x, 1, mirrored, mirrored, -1);
      const Value signs = b.constant(Tensor::of(Type(x.kind(), Shape{2}), std::vector<double>{1, -1}));
      x = b.concat({x, b.mul(image, signs)}, {.axis = 1});
    }
    return b.reshaped(sliced(b, complexTransform(b, x, t.length, true), 2, 0, 1), {signals, t.length, 1});
  }
  return sliced(b, complexTransform(b, x, t.length, t.inverse), 1, 0, t.outputs());
}

// x [..., n, parts] to [..., outputs, parts of the result].
Value transformed(Builder& b, Value x, const Transform& t) {
  const int last = x.rank() - 1;
  const int64_t parts = x.dim(last), wanted = t.inputs();
  // Longer signals are cut, shorter ones filled up with zeros.
  std::vector<int64_t> none(static_cast<size_t>(x.rank()), 0), after = none;
  after[static_cast<size_t>(last) - 1] = wanted - x.dim(last - 1);
  const ElemKind kind = wideKind(x.kind());
  const Value fitted = paddedOrCropped(b, b.casted(x, kind), none, after, b.scalar(kind, 0));
  const int64_t signals = product(x.shape(), 0, last - 1), resultParts = t.inverse && t.onesided ? 1 : 2;
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end() - 2);
  dims.insert(dims.end(), {t.outputs(), resultParts});
  if (wanted * parts > kDenseEntries / (t.outputs() * resultParts))
    return b.casted(b.reshaped(longTransform(b, b.reshaped(fitted, {signals, wanted, parts}), t), dims), x.kind());
  const Value y = b.matMul(b.reshaped(fitted, {signals, wanted * parts}), b.constant(matrixOf(t, parts, kind)));
  return b.casted(b.reshaped(y, dims), x.kind());
}

void checkParts(Value x, int least) {
  if (x.rank() < least || (x.dim(x.rank() - 1) != 1 && x.dim(x.rank() - 1) != 2) || !isFloat(x.kind()))
    fail(Code::BadNode,
         fmt::format("expected floats with a last axis of 1 (real) or 2 (complex), got {}", x.type().text()));
}

void checkLength(int64_t length) {
  constexpr int64_t kLongest = int64_t{1} << 22;
  if (length < 1) fail(Code::BadNode, fmt::format("expected a length of at least 1, got {}", length));
  if (length > kLongest)
    fail(Code::TooLarge, fmt::format("a transform of length {} exceeds the limit of {}", length, kLongest));
}

void dft(OpImport& c) {
  Builder& b = c.b;
  const Value x = c.in(0);
  checkParts(x, 2);
  int64_t axis = c.version < 20 ? c.integer("axis", 1) : c.has(2) ? c.constantInt(2) : -2;
  axis = c.axis(axis, x.rank());
  if (axis == x.rank() - 1) fail(Code::BadNode, "expected 'axis' before the last one, which holds the parts");
  Transform t{.inverse = c.flag("inverse"), .onesided = c.flag("onesided")};
  const int64_t extent = x.dim(static_cast<int>(axis));
  t.length = c.has(1) ? c.constantInt(1) : t.inverse && t.onesided ? 2 * (extent - 1) : extent;
  checkLength(t.length);
  if (t.onesided && !t.inverse && x.dim(x.rank() - 1) != 1)
    fail(Code::BadNode, fmt::format("expected a real signal for one half of the spectrum, got {}", x.type().text()));
  // The axis stands before the parts while it is transformed.
  std::vector<int64_t> forth = range(0, x.rank()), back = forth;
  forth.erase(forth.begin() + axis);
  forth.insert(forth.end() - 1, axis);
  for (size_t i = 0; i < forth.size(); ++i) back[static_cast<size_t>(forth[i])] = static_cast<int64_t>(i);
  c.out(b.transposed(transformed(b, b.transposed(x, forth), t), back));
}

void stft(OpImport& c) {
  Builder& b = c.b;
  Value x = c.in(0);
  if (x.rank() == 2) x = unsqueezed(b, x, 2);
  checkParts(x, 3);
  if (x.rank() != 3)
    fail(Code::BadNode, fmt::format("expected a signal [batch, length, parts], got {}", x.type().text()));
  const int64_t step = c.constantInt(1), length = x.dim(1);
  const Value window = c.optional(2);
  if (window && window.rank() != 1)
    fail(Code::BadNode, fmt::format("expected a window with one axis, got {}", window.type().text()));
  Transform t{.onesided = c.flag("onesided", true)};
  t.length = c.has(3) ? c.constantInt(3) : window ? window.dim(0) : length;
  checkLength(t.length);
  const int64_t width = window ? window.dim(0) : t.length;
  if (step < 1 || t.length > length || width > t.length)
    fail(Code::BadNode, fmt::format("expected a positive step and windows that fit into frames of {} elements, frames "
                                    "that fit into {}; got a step of {}, windows of {}",
                                    t.length, length, step, width));
  if (t.onesided && x.dim(2) != 1)
    fail(Code::BadNode, fmt::format("expected a real signal for one half of the spectrum, got {}", x.type().text()));
  const int64_t frames = 1 + (length - t.length) / step;
  if (frames > kMostEntries / std::max<int64_t>(width, 1))
    fail(Code::TooLarge, fmt::format("{} frames of {} elements are too many", frames, width));
  std::vector<int64_t> places;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < width; ++i) places.push_back(frame * step + i);
  Value framed = b.gather(x, b.constant(Tensor::of(Type(ElemKind::Int64, Shape{frames, width}), places)), {.axis = 1});
  if (window) framed = b.mul(framed, b.reshaped(b.casted(window, x.kind()), {width, 1}));
  c.out(transformed(b, framed, t));
}

// a0 - a1 * cos(2 pi i / n) + a2 * cos(4 pi i / n)
void cosineWindow(OpImport& c, double a0, double a1, double a2) {
  const int64_t size = c.constantInt(0);
  if (size < 0 || size > kMostEntries)
    fail(Code::BadNode, fmt::format("expected a size from 0 to {}, got {}", kMostEntries, size));
  const double period = static_cast<double>(c.flag("periodic", true) ? size : size - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = period == 0 ? 0 : 2 * kPi * static_cast<double>(i) / period;
    values.push_back(a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  c.out(c.b.constant(Tensor::of(Type(c.elem("output_datatype", ElemKind::Float32), Shape{size}), values)));
}

void hannWindow(OpImport& c) { cosineWindow(c, 0.5, 0.5, 0); }
void hammingWindow(OpImport& c) { cosineWindow(c, 25.0 / 46, 1 - 25.0 / 46, 0); }
void blackmanWindow(OpImport& c) { cosineWindow(c, 0.42, 0.5, 0.08); }

void melWeightMatrix(OpImport& c) {
  const int64_t bands = c.constantInt(0), length = c.constantInt(1), rate = c.constantInt(2);
  const double low = c.constantReal(3), high = c.constantReal(4);
  const int64_t bins = length / 2 + 1;
  if (bands < 0 || length < 1 || rate < 1 || !(low >= 0 && low < high) || bins > kMostEntries ||
      bands > kMostEntries / bins)
    fail(Code::BadNode, fmt::format("expected positive sizes, a positive rate and edges in order, got {} bands, a "
                                    "length of {}, a rate of {} and edges {} and {}",
                                    bands, length, rate, low, high));
  const auto melOf = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (melOf(high) - melOf(low)) / static_cast<double>(bands + 2);
  std::vector<int64_t> edges;  // in bins
  for (int64_t i = 0; i < bands + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + melOf(low)) / 2595) - 1);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin < static_cast<double>(bins)))
      fail(Code::BadNode, fmt::format("expected edges below half of the rate {}, got {} Hz", rate, high));
    edges.push_back(static_cast<int64_t>(bin));
  }
  // A triangle for each band.
  std::vector<double> weights(static_cast<size_t>(bins * bands), 0);
  for (int64_t band = 0; band < bands; ++band) {
    const auto i = static_cast<size_t>(band);
    const int64_t left = edges[i], middle = edges[i + 1], right = edges[i + 2];
    const auto at = [&](int64_t bin) -> double& { return weights[static_cast<size_t>(bin * bands + band)]; };
    for (int64_t bin = left; bin <= middle && middle > left; ++bin)
      at(bin) = static_cast<double>(bin - left) / static_cast<double>(middle - left);
    if (middle == left) at(middle) = 1;
    for (int64_t bin = middle; bin < right; ++bin)
      at(bin) = static_cast<double>(right - bin) / static_cast<double>(right - middle);
  }
  c.out(c.b.constant(Tensor::of(Type(c.elem("output_datatype", ElemKind::Float32), Shape{bins, bands}), weights)));
}

}  // namespace

std::span<const OpRow> signalRows() {
  static constexpr OpRow rows[] = {
      {"DFT", dft, 17},
      {"STFT", stft, 17},
      {"HannWindow", hannWindow, 17},
      {"HammingWindow", hammingWindow, 17},
      {"BlackmanWindow", blackmanWindow, 17},
      {"MelWeightMatrix", melWeightMatrix, 17},
  };
  return rows;
}

}  // namespace aglow::onnx
