# The Python module: src/python as python/aglow/_core. In the build folder the package lies complete below python/, so
# that tests run it from there.
find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "The Python module needs Python 3.10 or newer and its headers: sudo apt-get install python3-dev")
endif()
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE NANOBIND_FAULT ERROR_QUIET)
if(NANOBIND_FAULT)
  message(FATAL_ERROR "AGLOW_PYTHON needs nanobind: ${Python_EXECUTABLE} -m pip install nanobind")
endif()
find_package(nanobind CONFIG REQUIRED)
list(APPEND LINKED_FILES ${NB_DIR}/include/nanobind/nanobind.h ${NB_DIR}/ext/robin_map/include/tsl/robin_map.h)

file(GLOB PYTHON_SOURCES CONFIGURE_DEPENDS src/python/*.cpp)
# From Python 3.12 on one module serves all later ones. CMake knows the part of Python for it from 3.26 on; nanobind makes
# a module for one version alone where it is missing, whatever the wheel is called.
if(SKBUILD AND Python_VERSION VERSION_GREATER_EQUAL 3.12 AND NOT TARGET Python::SABIModule)
  add_library(Python::SABIModule INTERFACE IMPORTED)
  target_link_libraries(Python::SABIModule INTERFACE Python::Module)
endif()
nanobind_add_module(_core STABLE_ABI NB_STATIC NOMINSIZE ${PYTHON_SOURCES})
target_compile_options(_core PRIVATE ${AGLOW_WARNINGS})
# Headers of Python and nanobind are not ours to keep free of warnings.
target_include_directories(_core SYSTEM PRIVATE ${Python_INCLUDE_DIRS} ${NB_DIR}/include)
target_link_libraries(_core PRIVATE aglow_library)
# Other modules of the same process may hold the same libraries.
target_link_options(_core PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)

# The parts of the wheel are installed when they are asked for: a prefix has no place for them.
if(TARGET aglow_module)
  load_llvm_when_needed(_core)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/aglow)
  file(CREATE_LINK ${CMAKE_BINARY_DIR}/aglow_llvm.so ${CMAKE_BINARY_DIR}/python/aglow/aglow_llvm.so SYMBOLIC)
  install(TARGETS aglow_module LIBRARY DESTINATION aglow COMPONENT python EXCLUDE_FROM_ALL)
endif()

set(PACKAGE ${CMAKE_BINARY_DIR}/python/aglow)
set_target_properties(_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PACKAGE})
file(MAKE_DIRECTORY ${PACKAGE})
file(GLOB PYTHON_FILES CONFIGURE_DEPENDS python/aglow/*.py python/aglow/*.pyi python/aglow/py.typed)
foreach(file ${PYTHON_FILES})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${PACKAGE}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/aglow/torch ${PACKAGE}/torch SYMBOLIC)
# What opgen prints belongs to the package too.
add_dependencies(_core generated)
file(CREATE_LINK ${GENERATED}/python/_builders.py ${PACKAGE}/_builders.py SYMBOLIC)
install(FILES ${GENERATED}/python/_builders.py DESTINATION aglow COMPONENT python EXCLUDE_FROM_ALL)
install(TARGETS _core LIBRARY DESTINATION aglow COMPONENT python EXCLUDE_FROM_ALL)
if(SKBUILD)
  install(TARGETS aglow RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES LICENSE ${LICENCES} DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python EXCLUDE_FROM_ALL)
endif()
