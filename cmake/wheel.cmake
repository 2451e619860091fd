# Before `pip install .` configures anything: chooses the compiler that ./dev uses, and says at once all that is missing.
set(LLVM_PLACES ${LLVM_ROOT} $ENV{LLVM_ROOT} /usr/lib/llvm-19)
find_program(FOUND_clang-19 clang++-19)
find_program(FOUND_llvm-19 llvm-link-19 HINTS ${LLVM_PLACES} PATH_SUFFIXES bin)
find_program(FOUND_lld-19 ld.lld-19 ld.lld HINTS ${LLVM_PLACES} PATH_SUFFIXES bin)
find_path(FOUND_llvm-19-dev llvm/IR/Module.h HINTS ${LLVM_PLACES} PATH_SUFFIXES include)
find_path(FOUND_libfmt-dev fmt/format.h PATHS /usr /usr/local PATH_SUFFIXES include)
find_path(FOUND_libprotozero-dev protozero/pbf_reader.hpp PATHS /usr /usr/local PATH_SUFFIXES include)
set(MISSING "")
foreach(package clang-19 llvm-19 lld-19 llvm-19-dev libfmt-dev libprotozero-dev)
  if(NOT FOUND_${package})
    string(APPEND MISSING " ${package}")
  endif()
endforeach()
if(MISSING)
  message(FATAL_ERROR "\nAglow cannot be built yet: this machine lacks some packages. On Debian 12 and Ubuntu 24.04:\n"
                      "    sudo apt-get install${MISSING}\n"
                      "(./dev build installs all that the whole project needs.)\n")
endif()

# The environment names the compiler that Python was built with.
if(NOT DEFINED CMAKE_CXX_COMPILER)
  set(CMAKE_CXX_COMPILER ${FOUND_clang-19})
endif()
find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT DEFINED ENV{CMAKE_CXX_COMPILER_LAUNCHER})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
