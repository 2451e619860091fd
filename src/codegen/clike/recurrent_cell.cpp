// What one step of a recurrent layer makes of the sums of its gates, for a vector of neighbours or for one element.
#include <fmt/format.h>

#include <bit>

#include "codegen/clike/recurrent_layer.h"
#include "support/check.h"

namespace aglow::codegen {

namespace {

using Kind = Activation::Kind;

std::string floatText(double number) { return numberText(ElemKind::Float32, std::bit_cast<uint64_t>(number)); }

// By Activation::Kind, as vectors and single numbers have them; NaN stays.
std::string_view formula(Kind kind) {
  switch (kind) {
    case Kind::Relu:
      return "$x < 0.0f ? ($V)(0.0f) : $x";
    case Kind::Tanh:
      return "tanhf($x)";
    case Kind::Sigmoid:
      return "1.0f / (expf(-$x) + 1.0f)";
    case Kind::Affine:
      return "$x * $alpha + $beta";
    case Kind::LeakyRelu:
      return "$x < 0.0f ? $x * $alpha : $x";
    case Kind::ThresholdedRelu:
      return "$x > $alpha ? $x : ($V)(0.0f)";
    case Kind::ScaledTanh:
      return "tanhf($x * $beta) * $alpha";
    case Kind::HardSigmoid:
      return "$x * $alpha + $beta < 0.0f ? ($V)(0.0f) : $x * $alpha + $beta > 1.0f ? ($V)(1.0f) : $x * $alpha + $beta";
    case Kind::Elu:
      return "$x < 0.0f ? expm1f($x) * $alpha : $x";
    case Kind::Softsign:
      return "$x / (fabsf($x) + 1.0f)";
    case Kind::Softplus:
      break;
  }
  return "($x < 0.0f ? ($V)(0.0f) : $x) + log1pf(expf(-fabsf($x)))";
}

class CellWriter {
public:
  CellWriter(KernelWriter& writer, const RecurrentSizes& s, const RecurrentForm& f, const RecurrentPlaces& at,
             const StateAddresses& addresses)
      : writer_(writer), s_(s), f_(f), at_(at), addresses_(addresses), vector_(vectorName(ElemKind::Float32, f.lanes)) {
    const Result<std::vector<Activation>> known = activationsOf(writer.attrs());
    AGLOW_CHECK(known.ok(), "the type rule has seen the functions");
    functions_ = *known;
  }

  std::string text(int64_t phase);

private:
  std::string load(const std::string& address) const {
    return f_.lanes == 1 ? fmt::format("*({})", address) : fmt::format("vload{}(0, {})", f_.lanes, address);
  }
  std::string store(const std::string& value, const std::string& address) const {
    return f_.lanes == 1 ? fmt::format("*({}) = {};\n", address, value)
                         : fmt::format("vstore{}({}, 0, {});\n", f_.lanes, value, address);
  }
  std::string value(const std::string& name, const std::string& text) const {
    return fmt::format("const {} {} = {};\n", vector_, name, text);
  }
  // The element of an array of working memory with so many lines for each row, or for each direction.
  std::string ofRow(int64_t place) const {
    return fmt::format("work + INT64_C({}) + (direction * {} + row) * {} + j", place, at_.paddedRows, f_.padded(s_));
  }
  std::string ofDirection(int64_t place, int64_t lines, int64_t line) const {
    return fmt::format("work + INT64_C({}) + (direction * {} + {}) * {} + j", place, lines, line, f_.padded(s_));
  }
  std::string input(int64_t gate) const {
    return load(fmt::format("work + INT64_C({}) + ((direction * {} + step * {} + row) * {} + {}) * {} + j",
                            at_.products, s_.steps * s_.batch, s_.batch, s_.gates, gate, f_.padded(s_)));
  }
  std::string sum(int64_t gate) const { return fmt::format("{} + sum{}", input(gate), gate); }
  std::string functionOf(size_t function, const std::string& x, bool second) const;
  // A value and the function of it, held by `clip` or not.
  std::string applied(const std::string& name, size_t function, const std::string& x) const;
  std::string gate(const std::string& name, size_t function, const std::string& x) const;
  std::string peeping(int64_t which, const std::string& c) const {
    return writer_.has(7) ? fmt::format(" + {} * {}", load(ofDirection(at_.peepholes, 3, which)), c) : "";
  }
  std::string rnn() const { return gate("next", 0, sum(0)) + "state = next;\n"; }
  std::string lstm() const;
  std::string gru() const;
  std::string reset() const;
  // An element of a result for each lane, where there is one.
  std::string result(size_t number, const std::string& name, const std::string& value, const std::string& line) const;

  KernelWriter& writer_;
  const RecurrentSizes& s_;
  const RecurrentForm& f_;
  const RecurrentPlaces& at_;
  const StateAddresses& addresses_;
  std::string vector_;
  std::vector<Activation> functions_;
};

std::string CellWriter::applied(const std::string& name, size_t function, const std::string& x) const {
  const size_t each = functions_.size() / static_cast<size_t>(s_.directions);
  const auto text = [&](size_t direction) {
    const Activation& f = functions_[direction * each + function];
    return fill(formula(f.kind),
                {{"x", x}, {"V", vector_}, {"alpha", floatText(f.alpha)}, {"beta", floatText(f.beta)}});
  };
  const std::string first = text(0), second = text(functions_.size() / each - 1);
  if (first == second) return value(name, first);
  return fmt::format("{0} {1};\nif (direction == 0)\n  {1} = {2};\nelse\n  {1} = {3};\n", vector_, name, first, second);
}

std::string CellWriter::gate(const std::string& name, size_t function, const std::string& x) const {
  const std::string before = name + "Sum";
  const double clip = writer_.attrs().real("clip");
  if (!(clip > 0)) return value(before, x) + applied(name, function, before);
  const std::string free = name + "Free", low = floatText(-clip), high = floatText(clip);
  return value(free, x) +
         value(before, fmt::format("{0} < {1} ? ({3})({1}) : {0} > {2} ? ({3})({2}) : {0}", free, low, high, vector_)) +
         applied(name, function, before);
}

std::string CellWriter::lstm() const {
  const std::string cell = ofRow(at_.cells);
  std::string text = value("c", load(cell)) + gate("in", 0, sum(0) + peeping(0, "c")) + gate("fresh", 1, sum(3));
  if (writer_.attrs().flag("input_forget"))
    text += value("cell", "c + in * (fresh - c)");
  else
    text += gate("forget", 0, sum(2) + peeping(2, "c")) + value("cell", "forget * c + in * fresh");
  text += gate("out", 0, sum(1) + peeping(1, "cell")) + applied("shown", 2, "cell");
  return text + store("cell", cell) + "state = out * shown;\n";
}

std::string CellWriter::reset() const {
  return gate("update", 0, sum(0)) + gate("passed", 0, sum(1)) + store("update", ofRow(at_.updates)) +
         store("passed * state", addresses_.seen);
}

std::string CellWriter::gru() const {
  std::string text;
  if (s_.halves) {
    text = value("update", load(ofRow(at_.updates))) + gate("fresh", 1, sum(2));
  } else {
    const std::string late = writer_.has(3) ? " + " + load(ofDirection(at_.late, 1, 0)) : "";
    text = gate("update", 0, sum(0)) + gate("passed", 0, sum(1)) +
           gate("fresh", 1, fmt::format("{} + passed * (sum2{})", input(2), late));
  }
  return text + "state = fresh + update * (state - fresh);\n";
}

std::string CellWriter::result(size_t number, const std::string& name, const std::string& value,
                               const std::string& line) const {
  writer_.result(number, name);
  const ElemKind kind = storageKind(writer_.out(number).kind());
  const std::string address = fmt::format("{} + ({}) * {} + j", name, line, s_.hidden);
  if (kind == ElemKind::Float32 && s_.hidden % f_.lanes == 0) return store(value, address);
  const auto stored = [&](const std::string& element) {
    return storedText(kind, convertedText(ElemKind::Float32, kind, element));
  };
  if (f_.lanes == 1) return store(stored(value), address);
  return fmt::format(
      "{{\nfloat lanes[{0}];\nvstore{0}({1}, 0, lanes);\nfor (int32_t lane = 0; lane < {0} && j + lane < "
      "{2}; ++lane) ({3})[lane] = {4};\n}}\n",
      f_.lanes, value, s_.hidden, address, stored("lanes[lane]"));
}

// Rows that have ended keep their state and give zeros.
std::string CellWriter::text(int64_t phase) {
  const bool last = phase + 1 == s_.phases(), ends = writer_.has(4);
  std::string text;
  if (ends) text += "const bool active = step < lengths[row];\n";
  text += fmt::format("{} state = {};\n{}{{\n", vector_, load(addresses_.before), ends ? "if (active) " : "");
  text += !last ? reset() : s_.cell == Op::LSTM ? lstm() : s_.cell == Op::GRU ? gru() : rnn();
  text += "}\n";
  if (!last) return text;
  text += store("state", addresses_.after);
  const std::string shown = ends ? fmt::format("active ? state : ({})(0.0f)", vector_) : "state";
  text += fmt::format("const {} given = {};\n", vector_, shown);
  text += result(0, "y", "given", fmt::format("(step * {} + direction) * {} + row", s_.directions, s_.batch));
  std::string ending;
  const std::string line = fmt::format("direction * {} + row", s_.batch);
  const auto shows = [&](size_t number) { return writer_.anchor().results()[number].region != kNoRegion; };
  if (shows(1)) ending += result(1, "lastH", "state", line);
  if (s_.cell == Op::LSTM && shows(2)) ending += result(2, "lastC", load(ofRow(at_.cells)), line);
  return ending.empty() ? text : text + fmt::format("if (index == {}) {{\n{}}}\n", s_.steps - 1, ending);
}

}  // namespace

std::string cellText(KernelWriter& writer, const RecurrentSizes& s, const RecurrentForm& f, const RecurrentPlaces& at,
                     const StateAddresses& addresses, int64_t phase) {
  return CellWriter(writer, s, f, at, addresses).text(phase);
}

}  // namespace aglow::codegen
