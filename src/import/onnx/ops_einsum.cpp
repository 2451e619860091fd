// Einsum, as transposes, reshapes, sums, matrix products and, where nothing is summed, products element by element.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "import/onnx/op_support.h"
#include "import/onnx/op_tables.h"

namespace aglow::onnx {

namespace {

// A letter, or an axis of the ellipsis counted from its last one: -1, -2 ...
using Label = int;
using Labels = std::vector<Label>;

bool contains(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Term {
  Value value;
  Labels labels;  // one an axis
};

[[noreturn]] void badEquation(const std::string& equation, const std::string& why) {
  fail(Code::BadNode, fmt::format("{} in the equation '{}'", why, equation));
}

// A term of the equation; the ellipsis takes as many axes as are left over.
Labels parseTerm(const std::string& equation, std::string_view text, int64_t rank, int64_t ellipsisAxes) {
  Labels labels;
  bool dots = false;
  const auto letters = std::count_if(text.begin(), text.end(), [](char ch) { return ch != '.'; });
  for (size_t i = 0; i < text.size(); ++i) {
    const char ch = text[i];
    if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')) {
      labels.push_back(ch);
    } else if (text.substr(i, 3) == "..." && !dots) {
      dots = true;
      i += 2;
      const int64_t axes = rank < 0 ? ellipsisAxes : rank - letters;
      for (int64_t axis = axes; axis > 0; --axis) labels.push_back(static_cast<Label>(-axis));
    } else {
      badEquation(equation, fmt::format("unexpected character {} of '{}'", i, text));
    }
  }
  if (rank >= 0 && static_cast<int64_t>(labels.size()) != rank)
    badEquation(equation, fmt::format("'{}' does not fit an operand with {} axes", text, rank));
  return labels;
}

struct Equation {
  std::vector<Labels> terms;
  Labels result;
};

Equation parse(const std::string& written, const std::vector<Value>& operands) {
  std::string text;
  std::copy_if(written.begin(), written.end(), std::back_inserter(text), [](char ch) { return ch != ' '; });
  const size_t arrow = text.find("->");
  const std::string_view left = std::string_view(text).substr(0, arrow);
  Equation equation;
  size_t start = 0;
  int64_t ellipsisAxes = 0;
  std::map<Label, int> uses;
  while (start <= left.size()) {
    const size_t end = std::min(left.find(',', start), left.size());
    if (equation.terms.size() == operands.size())
      badEquation(written, fmt::format("more than {} terms", operands.size()));
    const int64_t rank = operands[equation.terms.size()].rank();
    equation.terms.push_back(parseTerm(written, left.substr(start, end - start), rank, 0));
    for (const Label label : equation.terms.back()) {
      ++uses[label];
      ellipsisAxes = std::max<int64_t>(ellipsisAxes, -label);
    }
    start = end + 1;
  }
  if (equation.terms.size() != operands.size())
    badEquation(written, fmt::format("{} terms for {} operands", equation.terms.size(), operands.size()));
  if (arrow == std::string::npos) {
    // The ellipsis first, then the letters that occur once, in order.
    for (const auto& [label, count] : uses)
      if (label < 0 || count == 1) equation.result.push_back(label);
    return equation;
  }
  equation.result = parseTerm(written, std::string_view(text).substr(arrow + 2), -1, ellipsisAxes);
  for (size_t i = 0; i < equation.result.size(); ++i)
    if (!uses.contains(equation.result[i]) ||
        std::count(equation.result.begin(), equation.result.end(), equation.result[i]) > 1)
      badEquation(written, "an index of the result that is unknown or named twice");
  return equation;
}

class Contraction {
public:
  explicit Contraction(Builder& b) : b_(b) {}

  // Axes with the same label become their diagonal.
  void takeDiagonals(Term& term) const {
    for (size_t first = 0; first < term.labels.size(); ++first) {
      const auto found =
          std::find(term.labels.begin() + static_cast<int64_t>(first) + 1, term.labels.end(), term.labels[first]);
      if (found == term.labels.end()) continue;
      const Label label = *found;
      const auto second = static_cast<size_t>(found - term.labels.begin());
      const int64_t extent = term.value.dim(static_cast<int>(first));
      if (term.value.dim(static_cast<int>(second)) != extent)
        fail(Code::BadNode, fmt::format("expected equal extents under the index '{}', got {}", static_cast<char>(label),
                                        term.value.type().text()));
      Labels rest;
      std::vector<int64_t> perm, dims;
      for (size_t axis = 0; axis < term.labels.size(); ++axis) {
        if (axis == first || axis == second) continue;
        rest.push_back(term.labels[axis]);
        perm.push_back(static_cast<int64_t>(axis));
        dims.push_back(term.value.dim(static_cast<int>(axis)));
      }
      perm.insert(perm.end(), {static_cast<int64_t>(first), static_cast<int64_t>(second)});
      dims.push_back(extent * extent);
      const Value flat = b_.reshaped(b_.transposed(term.value, perm), dims);
      term.value = sliced(b_, flat, static_cast<int64_t>(rest.size()), 0, extent, extent + 1);
      rest.push_back(label);
      term.labels = std::move(rest);
      first = static_cast<size_t>(-1);  // once more, with the new order
    }
  }

  // The sum over all axes that `kept` does not name.
  void sumAllBut(Term& term, const Labels& kept) const {
    std::vector<int64_t> axes;
    Labels rest;
    for (size_t axis = 0; axis < term.labels.size(); ++axis) {
      if (contains(kept, term.labels[axis]))
        rest.push_back(term.labels[axis]);
      else
        axes.push_back(static_cast<int64_t>(axis));
    }
    if (!axes.empty()) term.value = b_.reduced(term.value, "sum", axes, false);
    term.labels = std::move(rest);
  }

  Value inOrder(const Term& term, const Labels& order) const {
    std::vector<int64_t> perm;
    for (const Label label : order)
      perm.push_back(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin());
    return b_.transposed(term.value, perm);
  }

  // The product of two terms, summed over what they share and `kept` does not name.
  Term product(Term x, Term y, const Labels& kept) const {
    sumAllBut(x, joined(kept, y.labels));
    sumAllBut(y, joined(kept, x.labels));
    stretch(x, y);
    stretch(y, x);
    Labels batch, summed, left, right;
    for (const Label label : x.labels) {
      Labels& list = !contains(y.labels, label) ? left : contains(kept, label) ? batch : summed;
      list.push_back(label);
    }
    for (const Label label : y.labels)
      if (!contains(x.labels, label)) right.push_back(label);
    const Value a = asMatrices(x, batch, left, summed), b = asMatrices(y, batch, summed, right);
    Labels labels = joined(joined(batch, left), right);
    std::vector<int64_t> dims;
    for (const Label label : labels) dims.push_back(extent(contains(x.labels, label) ? x : y, label));
    return {b_.reshaped(summed.empty() ? b_.mul(a, b) : b_.matMul(a, b), dims), std::move(labels)};
  }

private:
  static Labels joined(Labels a, const Labels& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  static int64_t extent(const Term& term, Label label) {
    return term.value.dim(
        static_cast<int>(std::find(term.labels.begin(), term.labels.end(), label) - term.labels.begin()));
  }

  // Extents of 1 become those of the other term.
  void stretch(Term& term, const Term& other) const {
    std::vector<int64_t> dims = term.value.shape().dims();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!contains(other.labels, term.labels[axis])) continue;
      const int64_t wanted = extent(other, term.labels[axis]);
      if (dims[axis] == 1) dims[axis] = wanted;
      if (dims[axis] != wanted && wanted != 1)
        fail(Code::BadNode, fmt::format("expected equal extents under a common index, got {} and {}",
                                        term.value.type().text(), other.value.type().text()));
    }
    if (dims != term.value.shape().dims()) term.value = b_.expand(term.value, {.shape = dims});
  }

  Value asMatrices(const Term& term, const Labels& batch, const Labels& rows, const Labels& columns) const {
    const Value ordered = inOrder(term, joined(joined(batch, rows), columns));
    const auto b = static_cast<int64_t>(batch.size()), r = b + static_cast<int64_t>(rows.size());
    const Shape& shape = ordered.shape();
    return b_.reshaped(ordered,
                       {onnx::product(shape, 0, b), onnx::product(shape, b, r), onnx::product(shape, r, shape.rank())});
  }

  Builder& b_;
};

void einsum(OpImport& c) {
  const std::vector<Value> operands = c.all();
  if (operands.empty()) fail(Code::BadNode, "expected at least one operand");
  const Equation equation = parse(c.word("equation"), operands);
  const Contraction contraction(c.b);
  Term result;
  for (size_t i = 0; i < operands.size(); ++i) {
    Term term{operands[i], equation.terms[i]};
    contraction.takeDiagonals(term);
    Labels kept = equation.result;
    for (size_t later = i + 1; later < operands.size(); ++later)
      kept.insert(kept.end(), equation.terms[later].begin(), equation.terms[later].end());
    result = i == 0 ? term : contraction.product(std::move(result), std::move(term), kept);
    contraction.sumAllBut(result, kept);
  }
  c.out(contraction.inOrder(result, equation.result));
}

}  // namespace

std::span<const OpRow> einsumRows() {
  static constexpr OpRow rows[] = {{"Einsum", einsum}};
  return rows;
}

}  // namespace aglow::onnx
