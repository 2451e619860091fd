// Names between Python and the compiler: they need not be UTF-8, and come back as they were.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

namespace aglow::python {

inline nanobind::str text(std::string_view bytes) {
  return nanobind::steal<nanobind::str>(
      PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
}

inline std::string bytesOf(nanobind::handle name) {
  const nanobind::object encoded = nanobind::steal(PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogateescape"));
  if (!encoded.is_valid()) throw nanobind::python_error();
  return {PyBytes_AsString(encoded.ptr()), static_cast<size_t>(PyBytes_Size(encoded.ptr()))};
}

}  // namespace aglow::python
