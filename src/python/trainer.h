// Trainers as Python sees them: arrays in, reports out; what users see is python/aglow/_trainer.py.
#pragma once

#include <nanobind/nanobind.h>

namespace aglow::python {

// Adds the class Trainer and what goes with it.
void addTrainer(nanobind::module_& m);

}  // namespace aglow::python
