# With AGLOW_STATIC everything is linked in but the libraries of C and of its compiler, so that what is built runs where nothing else is installed;
# ./dev wheel packs that. The licences of what is linked in go along (tools/licences.py).
set(LINKED_FILES protozero/pbf_reader.hpp CLI/CLI.hpp nlohmann/json.hpp fmt/format.h)  # headers; archives follow
if(NOT AGLOW_STATIC)
  find_package(fmt REQUIRED)
  return()
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
# (Not libgcc: exceptions pass through the C library, which loads the shared one for that.)
add_link_options(-static-libstdc++ -Wl,--as-needed)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a OUTPUT_VARIABLE LIBSTDCXX
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(APPEND LINKED_FILES ${LIBSTDCXX})

# fmt, of which Debian has no archive, from its headers.
add_library(aglow_fmt STATIC cmake/static/fmt.cpp)
target_compile_options(aglow_fmt PRIVATE -O2 -w)
target_compile_definitions(aglow_fmt INTERFACE FMT_SHARED)  # as with the shared one: ccache then knows the files
add_library(fmt::fmt ALIAS aglow_fmt)

# archive(VARIABLE): replaces the path of an archive by that of a copy that can be part of a shared library.
find_program(OBJCOPY NAMES objcopy llvm-objcopy-19 REQUIRED)
add_library(aglow_system STATIC cmake/static/system.c)
function(archive variable)
  set(LINKED_FILES ${LINKED_FILES} ${${variable}} PARENT_SCOPE)
  get_filename_component(name ${${variable}} NAME)
  set(copy ${CMAKE_BINARY_DIR}/archives/${name})
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/archives)
  execute_process(COMMAND ${OBJCOPY} --redefine-sym stderr=aglow_stderr --redefine-sym stdout=aglow_stdout
                          ${${variable}} ${copy} COMMAND_ERROR_IS_FATAL ANY)
  set(${variable} ${copy} PARENT_SCOPE)
endfunction()

# What libraries of image formats need themselves. JBIG-KIT is under the GNU General Public License and stays out.
add_library(aglow_without_jbig STATIC cmake/static/without_jbig.c)
set(INNER_LIBRARIES aglow_without_jbig aglow_system)
foreach(name Lerc zstd lzma deflate z)
  find_library(FOUND_${name} ${name} REQUIRED)
  set(${name}_ARCHIVE ${FOUND_${name}})
  archive(${name}_ARCHIVE)
  list(APPEND INNER_LIBRARIES ${${name}_ARCHIVE})
endforeach()

# LLVM: its archives of the targets that are tested.
# (Another LLVM's llvm-config may be on the path.)
find_program(LLVM_CONFIG NAMES llvm-config-19 llvm-config PATHS ${LLVM_ROOT}/bin /usr/lib/llvm-19/bin NO_DEFAULT_PATH REQUIRED)
execute_process(COMMAND ${LLVM_CONFIG} --link-static --libfiles x86 aarch64 riscv passes orcjit
                OUTPUT_VARIABLE LLVM_ARCHIVES OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(LLVM_ARCHIVES UNIX_COMMAND "${LLVM_ARCHIVES}")
# Their order is one in which each comes before what it needs; z and zstd compress sections.
list(APPEND LINKED_FILES ${LLVM_ARCHIVES})
set(LLVM_LIBRARIES ${LLVM_ARCHIVES} ${zstd_ARCHIVE} ${z_ARCHIVE})
