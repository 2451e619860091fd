#include "tensor/map_value.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tensor/slices.h"

namespace aglow {

namespace {

// Where the keys stand in ascending order, of equal ones the last.
template <class T>
std::vector<int64_t> orderOf(const std::vector<T>& keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](int64_t i) -> const T& { return keys[static_cast<size_t>(i)]; };
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return at(a) < at(b) || (at(a) == at(b) && a < b); });
  // Seen from the end, the last of equal keys comes first.
  const auto kept = std::unique(order.rbegin(), order.rend(), [&](int64_t a, int64_t b) { return at(a) == at(b); });
  order.erase(order.begin(), kept.base());
  return order;
}

MapKeys taken(const MapKeys& keys, const std::vector<int64_t>& order) {
  return std::visit(
      [&](const auto& list) -> MapKeys {
        std::remove_cvref_t<decltype(list)> result;
        for (const int64_t i : order) result.push_back(list[static_cast<size_t>(i)]);
        return result;
      },
      keys);
}

bool isIdentity(const std::vector<int64_t>& order, int64_t size) {
  return std::ssize(order) == size && std::is_sorted(order.begin(), order.end());
}

// Some columns of a matrix.
Tensor taken(const Tensor& numbers, const std::vector<int64_t>& order) {
  const Type& type = numbers.type();
  const auto bytes = static_cast<size_t>(elemBytes(type.kind()));
  Tensor result(type.withShape({type.dim(0), std::ssize(order)}));
  std::byte* to = result.mutableData();
  for (int64_t row = 0; row < type.dim(0); ++row)
    for (const int64_t column : order) {
      std::memcpy(to, numbers.data() + static_cast<size_t>(row * type.dim(1) + column) * bytes, bytes);
      to += bytes;
    }
  return result;
}

MapColumn taken(const MapColumn& values, const std::vector<int64_t>& order) {
  if (const auto* strings = std::get_if<StringTensor>(&values)) {
    std::vector<std::string> result;
    for (const int64_t i : order) result.push_back(strings->strings()[static_cast<size_t>(i)]);
    return StringTensor(Shape{std::ssize(order)}, std::move(result));
  }
  const auto& numbers = std::get<Tensor>(values);
  const Tensor row = numbers.retyped(numbers.type().withShape({1, numbers.type().elements()}));
  const Tensor result = taken(row, order);
  return result.retyped(result.type().withShape({std::ssize(order)}));
}

std::vector<int64_t> orderOf(const MapKeys& keys) {
  return std::visit([](const auto& list) { return orderOf(list); }, keys);
}

}  // namespace

int64_t sizeOf(const MapKeys& keys) {
  return std::visit([](const auto& list) { return static_cast<int64_t>(list.size()); }, keys);
}

int64_t lengthOf(const MapColumn& values) {
  if (const auto* strings = std::get_if<StringTensor>(&values)) return strings->shape().elements();
  return std::get<Tensor>(values).type().elements();
}

bool areStrings(const MapKeys& keys) { return std::holds_alternative<std::vector<std::string>>(keys); }

std::string keyText(const MapKeys& keys, int64_t index) {
  const auto at = static_cast<size_t>(index);
  if (const auto* words = std::get_if<std::vector<std::string>>(&keys)) return (*words)[at];
  return std::to_string(std::get<std::vector<int64_t>>(keys)[at]);
}

MapValue::MapValue(MapKeys keys, MapColumn values) {
  AGLOW_CHECK(lengthOf(values) == sizeOf(keys), "a map with too few or too many values");
  const std::vector<int64_t> order = orderOf(keys);
  const bool ordered = isIdentity(order, sizeOf(keys));
  values_ = ordered ? std::move(values) : taken(values, order);
  keys_ = std::make_shared<const MapKeys>(ordered ? std::move(keys) : taken(keys, order));
}

std::vector<MapValue> MapValue::rows(const MapKeys& keys, const Tensor& numbers) {
  const Type& type = numbers.type();
  AGLOW_CHECK(type.rank() == 2 && type.dim(1) == sizeOf(keys), "a table with too few or too many columns");
  const std::vector<int64_t> order = orderOf(keys);
  const bool kept = isIdentity(order, sizeOf(keys)) && numbers.ownsBytes();
  const Tensor table = kept ? numbers : taken(numbers, order);
  const auto shared = std::make_shared<const MapKeys>(taken(keys, order));
  std::vector<MapValue> maps;
  for (int64_t row = 0; row < type.dim(0); ++row) maps.push_back(MapValue(shared, sliceOf(table, 0, row)));
  return maps;
}

std::string MapValue::text() const {
  return std::string("map(") + (areStrings(keys()) ? "string" : "i64") + ", " +
         (hasStrings() ? "string" : std::string(elemName(numbers().type().kind()))) + ")";
}

}  // namespace aglow
