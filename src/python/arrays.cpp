// Arrays of Python as tensors and back.
#include "python/arrays.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <vector>

namespace aglow::python {

namespace nb = nanobind;

namespace {

using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

[[noreturn]] void misfit(const std::string& message) { throw nb::type_error(message.c_str()); }

Tensor tensorOf(nb::handle object, ElemKind kind) {
  InputArray array;
  if (!nb::try_cast(object, array)) misfit("not an array in memory, row by row");
  if (static_cast<int>(array.itemsize()) != elemBytes(kind))
    misfit(fmt::format("elements of {} bytes for {}", array.itemsize(), elemName(kind)));
  std::vector<int64_t> dims;
  for (size_t i = 0; i < array.ndim(); ++i) dims.push_back(static_cast<int64_t>(array.shape(i)));
  auto shape = Shape::create(std::move(dims));
  if (!shape.ok()) misfit(shape.error().message);
  Type type(kind, *std::move(shape));
  // An array without elements need not have an address.
  if (type.elements() == 0) return Tensor(std::move(type));
  return {std::move(type), static_cast<const std::byte*>(array.data()), keep(nb::borrow(object))};
}

StringTensor stringsOf(nb::handle object) {
  const nb::tuple parts = nb::cast<nb::tuple>(object);
  std::vector<int64_t> dims;
  for (const nb::handle dim : parts[0]) dims.push_back(nb::cast<int64_t>(dim));
  std::vector<std::string> strings;
  for (const nb::handle item : parts[1]) {
    const nb::bytes text = nb::cast<nb::bytes>(item);
    strings.emplace_back(text.c_str(), text.size());
  }
  return {Shape(std::move(dims)), std::move(strings)};
}

void addPair(nb::handle object, ModelValue& value);

MapValue mapOf(const nb::tuple& pairs) {
  ModelValue columns[2];
  for (size_t i = 0; i < 2; ++i) addPair(pairs[i], columns[i]);
  const auto& [keys, values] = columns;
  return {keys.isStrings() ? MapKeys(keys.strings.front().strings()) : MapKeys(keys.tensor().toInts()),
          values.isStrings() ? MapColumn(values.strings.front()) : MapColumn(copyOf(values.tensor()))};
}

// An array is ("f32", array), strings are ("string", (shape, words)), a map is ("map", (keys, values)) with two of
// these.
void addPair(nb::handle object, ModelValue& value) {
  const nb::tuple pair = nb::cast<nb::tuple>(object);
  const std::string name = nb::cast<std::string>(pair[0]);
  const std::optional<ElemKind> kind = elemKindByName(name);
  if (kind)
    value.tensors.push_back(tensorOf(pair[1], *kind));
  else if (name == "map")
    value.maps.push_back(mapOf(nb::cast<nb::tuple>(pair[1])));
  else
    value.strings.push_back(stringsOf(pair[1]));
}

nb::dlpack::dtype dtypeOf(const ElemInfo& info) {
  const char letter = info.npy[1];
  const auto code = letter == 'f'   ? nb::dlpack::dtype_code::Float
                    : letter == 'u' ? nb::dlpack::dtype_code::UInt
                    : letter == 'i' ? nb::dlpack::dtype_code::Int
                                    : nb::dlpack::dtype_code::Bool;
  return {.code = static_cast<uint8_t>(code), .bits = static_cast<uint8_t>(info.bytes * 8), .lanes = 1};
}

struct NarrowCode {
  nb::dlpack::dtype_code code;
  ElemKind kind;
};
// DLPack's name of kinds that numpy lacks.
constexpr NarrowCode kNarrowCodes[] = {{nb::dlpack::dtype_code::Bfloat, ElemKind::BFloat16},
                                       {nb::dlpack::dtype_code::Float8_E4M3FN, ElemKind::Float8E4M3FN},
                                       {nb::dlpack::dtype_code::Float8_E4M3FNUZ, ElemKind::Float8E4M3FNUZ},
                                       {nb::dlpack::dtype_code::Float8_E5M2, ElemKind::Float8E5M2},
                                       {nb::dlpack::dtype_code::Float8_E5M2FNUZ, ElemKind::Float8E5M2FNUZ},
                                       {nb::dlpack::dtype_code::Float8_E8M0FNU, ElemKind::Float8E8M0}};

nb::dlpack::dtype dtypeOf(nb::dlpack::dtype_code code, ElemKind kind) {
  return {.code = static_cast<uint8_t>(code), .bits = static_cast<uint8_t>(elemBytes(kind) * 8), .lanes = 1};
}

// Another look at the memory of an array, which stays alive with it.
template <class Framework>
nb::object viewOf(nb::ndarray<> array, nb::dlpack::dtype dtype) {
  auto kept = std::make_unique<nb::ndarray<>>(std::move(array));
  std::vector<size_t> dims;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < kept->ndim(); ++i) {
    dims.push_back(kept->shape(i));
    strides.push_back(kept->stride(i));
  }
  void* data = kept->data();
  const nb::capsule owner(kept.release(), [](void* p) noexcept { delete static_cast<nb::ndarray<>*>(p); });
  return nb::ndarray<Framework>(data, dims.size(), dims.data(), owner, strides.data(), dtype).cast();
}

// The tensor alone with its bytes, which arrays may change. Constants of a model and inputs it passes on are not.
Tensor owned(Tensor tensor) {
  try {
    tensor.mutableData();
    return tensor;
  } catch (const InternalError&) {
    return copyOf(tensor);
  }
}

nb::object arrayOf(Tensor tensor) {
  auto owner = std::make_unique<Tensor>(owned(std::move(tensor)));
  const Type& type = owner->type();
  const ElemInfo& info = elemInfo(type.kind());
  const std::vector<size_t> dims(type.shape().dims().begin(), type.shape().dims().end());
  std::byte* data = owner->mutableData();
  const nb::capsule kept(owner.release(), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  nb::ndarray<nb::numpy> array(data, dims.size(), dims.data(), kept, nullptr, dtypeOf(info));
  return nb::make_tuple(nb::str(info.name.data(), info.name.size()), array.cast());
}

nb::object pairOf(const StringTensor& tensor) {
  nb::list dims, items;
  for (const int64_t dim : tensor.shape().dims()) dims.append(dim);
  for (const std::string& text : tensor.strings()) items.append(nb::bytes(text.data(), text.size()));
  return nb::make_tuple("string", nb::make_tuple(nb::tuple(dims), items));
}

nb::object textOf(const std::string& bytes) {
  return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

std::vector<nb::object> keysOf(const MapKeys& keys) {
  std::vector<nb::object> objects;
  if (const auto* words = std::get_if<std::vector<std::string>>(&keys))
    for (const std::string& word : *words) objects.push_back(textOf(word));
  else
    for (const int64_t number : std::get<std::vector<int64_t>>(keys)) objects.push_back(nb::int_(number));
  return objects;
}

nb::dict dictOf(const std::vector<nb::object>& keys, const MapColumn& values) {
  nb::dict entries;
  const auto add = [&](size_t i, const nb::object& value) { entries[keys[i]] = value; };
  if (const auto* strings = std::get_if<StringTensor>(&values)) {
    for (size_t i = 0; i < keys.size(); ++i) add(i, textOf(strings->strings()[i]));
    return entries;
  }
  const auto& numbers = std::get<Tensor>(values);
  const bool real = isFloat(numbers.type().kind());
  const std::vector<double> reals = real ? numbers.doubles() : std::vector<double>{};
  const std::vector<int64_t> ints = real ? std::vector<int64_t>{} : numbers.toInts();
  for (size_t i = 0; i < keys.size(); ++i)
    add(i, real ? nb::object(nb::float_(reals[i])) : nb::object(nb::int_(ints[i])));
  return entries;
}

}  // namespace

std::shared_ptr<const void> keep(nb::object object) {
  return {object.release().ptr(), [](const void* held) {
            // A process that ends has no interpreter to give it back to.
            if (Py_IsInitialized() == 0) return;
            const nb::gil_scoped_acquire acquire;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(held)));
          }};
}

nb::object bitsOf(nb::handle foreign) {
  nb::ndarray<> array;
  if (!nb::try_cast(foreign, array, false) || array.device_type() != nb::device::cpu::value)
    misfit("not an array in memory");
  for (const NarrowCode& row : kNarrowCodes)
    if (array.dtype() == dtypeOf(row.code, row.kind)) {
      const std::string_view name = elemName(row.kind);
      return nb::make_tuple(nb::str(name.data(), name.size()),
                            viewOf<nb::numpy>(std::move(array), dtypeOf(nb::dlpack::dtype_code::UInt, row.kind)));
    }
  misfit("an array of a kind that is not known");
}

nb::object exported(const std::string& kind, nb::handle bits) {
  nb::ndarray<> array;
  if (!nb::try_cast(bits, array, false)) misfit("not an array in memory");
  for (const NarrowCode& row : kNarrowCodes)
    if (elemName(row.kind) == kind) return viewOf<nb::array_api>(std::move(array), dtypeOf(row.code, row.kind));
  misfit(fmt::format("DLPack has no name for {}", kind));
}

Tensor copyOf(const Tensor& tensor) {
  Tensor copy(tensor.type());
  std::memcpy(copy.mutableData(), tensor.data(), static_cast<size_t>(tensor.bytes()));
  return copy;
}

ModelValue valueOf(nb::handle object) {
  ModelValue value;
  value.none = object.is_none();
  value.isSequence = nb::isinstance<nb::list>(object);
  if (value.isSequence)
    for (const nb::handle item : nb::borrow<nb::list>(object)) addPair(item, value);
  else if (!value.none)
    addPair(object, value);
  return value;
}

nb::object objectOf(ModelValue value) {
  if (value.none) return nb::none();
  if (value.isStrings()) return pairOf(value.strings.front());
  if (value.isMap()) return dictOf(keysOf(value.maps.front().keys()), value.maps.front().values());
  if (!value.isSequence) return arrayOf(std::move(value.tensors.front()));
  nb::list items;
  // The maps of a sequence mostly have the same keys.
  const MapKeys* listed = nullptr;
  std::vector<nb::object> keys;
  for (const MapValue& map : value.maps) {
    if (&map.keys() != listed) keys = keysOf(map.keys());
    listed = &map.keys();
    items.append(dictOf(keys, map.values()));
  }
  for (Tensor& tensor : value.tensors) items.append(arrayOf(std::move(tensor)));
  for (const StringTensor& tensor : value.strings) items.append(pairOf(tensor));
  return items;
}

}  // namespace aglow::python
