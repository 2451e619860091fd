// The statements of nests, as all relatives of C write them. What surrounds them (where operands lie, who runs which
// point) is the caller's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/nest/nest.h"

namespace aglow::codegen {

// Of a variable. What lies in memory differs for bool, and for f64, which not every device computes with: f64 and all
// that is done with it are words of the prelude.
std::string typeName(ElemKind kind);
std::string storedName(ElemKind kind);
// A literal, with the bits that Expr::number has.
std::string numberText(ElemKind kind, uint64_t bits);
std::string zeroText(ElemKind kind);
// A value as one of another kind, in as many steps as it takes.
std::string convertedText(ElemKind from, ElemKind to, std::string value);
// The value of an element in memory, which is never a quantized one; the same as one of another kind; and a value as it
// is put there.
std::string loadedText(ElemKind kind, const std::string& element);
std::string elementText(ElemKind from, ElemKind to, const std::string& element);
std::string storedText(ElemKind kind, const std::string& value);
// A primitive of formulas on values of a kind.
std::string appliedText(Scalar op, ElemKind kind, const std::string& x, const std::string& y = {},
                        const std::string& z = {});

// Text that grows line by line, indented.
class TextBlock {
public:
  void line(std::string_view text);
  void open(std::string_view text);  // with the brace
  void close();
  std::string take() { return std::move(out_); }

private:
  int depth_ = 0;
  std::string out_;
};

// Elements of operand n are p<n>[...] and those of table n t<n>[...]; the indices of the point are i0, i1, ...; values
// are v<n>, what reductions have come to r<n>, and rows k<n>.
class NestPrinter {
public:
  // `given` is what the result of an epilogue's anchor at the point is called; empty: an element of the array "given".
  // `point` is the number of the point, where there is a variable for it: what is met in that order needs no indices.
  NestPrinter(const nest::Nest& nest, TextBlock& out, std::string given = {}, std::string point = {})
      : nest_(nest), out_(out), given_(std::move(given)), point_(std::move(point)) {}

  // Elements of these accesses are w<n>[lane], n the access: the caller moves several at once. Rows are kept under this
  // index, if any.
  void moveTogether(std::vector<bool> accesses) { together_ = std::move(accesses); }
  void keepUnder(std::string index) { keptIndex_ = std::move(index); }
  // Whether four points, from a multiple of four on along the last axis or among all, have neighbouring elements that
  // begin at a multiple of four; and the number of the first, where the variables have its indices.
  bool inFours(int access) const;
  std::string place(int access) const;
  size_t outerAxes() const { return nest_.axes.size() - static_cast<size_t>(nest_.innerAxes()); }
  bool uses(size_t operand) const;
  // The values of a block, and what it stores.
  void values(const nest::Block& block);
  void stores(const nest::Block& block);
  // r<id> with the neutral value, and with one more value.
  void startReduction(int id);
  std::string combined(int id, const std::string& with) const;
  std::string combination(int id) const;  // a statement
  void combine(int id) { out_.line(combination(id)); }
  std::string tableText(size_t table) const;  // "{1.0f, 2.0f}"

private:
  std::string value(int id) const;
  std::string element(int access) const;
  bool inOrder(const nest::Access& access) const;
  std::string position(size_t first) const;
  std::string kept(int row) const;
  std::string expression(const nest::Expr& e) const;

  const nest::Nest& nest_;
  TextBlock& out_;
  std::string given_, point_;
  std::vector<bool> together_;
  std::string keptIndex_;
};

}  // namespace aglow::codegen
