// Faults as Python exceptions.
#include "python/errors.h"

#include <new>

namespace aglow::python {

namespace nb = nanobind;

Error caught(const std::exception& fault) {
  if (dynamic_cast<const std::bad_alloc*>(&fault) != nullptr)
    return {.code = Code::OutOfMemory, .message = "an allocation failed"};
  return {.code = Code::Internal, .message = fault.what()};
}

bool signalCame() {
  const nb::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

void raise(const Diagnostics& diagnostics) {
  nb::list errors;
  for (const Error& error : diagnostics.errors()) {
    const CodeInfo& info = codeInfo(error.code);
    // Names in a model need not be UTF-8.
    const auto text = [](std::string_view bytes) {
      return nb::steal(PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "backslashreplace"));
    };
    errors.append(nb::make_tuple(text(info.id), static_cast<int>(info.exit), text(error.message), text(error.where),
                                 text(error.hint)));
  }
  const nb::object make = nb::module_::import_("aglow._errors").attr("exception_of");
  const nb::object exception = make(errors, static_cast<int>(diagnostics.exitCode()));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace aglow::python
