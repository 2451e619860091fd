// Numbers of rows, put in order: for each row, which elements have its number.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/clike/kernel_writer.h"

namespace aglow::codegen {

// By digits, the lowest first, without a change to the order of equal ones: shares of the elements are counted by
// themselves, so that each knows where its own go. Everything lies in the working memory of the instruction.
struct RowOrder {
  int64_t rows = 0, updates = 0;
  int64_t bits = 0, rounds = 0;  // of a digit; how many digits
  int64_t items = 0, share = 0;  // of a group; elements of an item
  int64_t groups = 0;
  ElemKind kind = ElemKind::Int32;

  static RowOrder of(int64_t rows, int64_t updates, const DeviceShape& shape);
  int64_t bytes() const;

  // Pointers for a kernel: `row` of each element, which the caller fills; `firsts` and `ends`, what each row has in the
  // order that `launches` find; a row with the end 0 has nothing.
  void declare(KernelWriter& writer, std::initializer_list<std::string_view> names) const;
  // Statements on a `point` among the larger of both numbers, which go on for elements only.
  std::string begin() const;
  std::vector<Launch> launches(const Program& program, const Instr& instr, const DeviceShape& shape) const;
  // The element at a place in the order.
  std::string number(const std::string& place) const { return numberAfter(rounds, place); }

private:
  int64_t digits() const { return int64_t{1} << bits; }
  // The order after a round, and where rounds go on from one to the next.
  int64_t orderLength() const { return std::min<int64_t>(rounds, 2) * updates; }
  // After so many rounds.
  std::string numberAfter(int64_t round, const std::string& place) const;
  std::string text(std::string_view what, int64_t round) const;
};

}  // namespace aglow::codegen
