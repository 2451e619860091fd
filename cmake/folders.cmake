# The folders of src/ as libraries of their own, in the order of the pipeline. aglow_library holds the objects of all of
# them; the linker also joins each folder with those before it that it may see, so that nothing calls what comes later,
# and nothing in between what belongs to model files.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/check_layers.py)
execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_layers.py --folders
                OUTPUT_VARIABLE FOLDER_ROWS OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" FOLDER_ROWS "${FOLDER_ROWS}")
set(PROGRAM_FOLDERS python cli)  # no part of the library

# What every folder is compiled with once opgen has run.
add_library(aglow_settings INTERFACE)
target_include_directories(aglow_settings INTERFACE ${CMAKE_SOURCE_DIR}/src ${GENERATED} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(aglow_settings INTERFACE AGLOW_VERSION="${PROJECT_VERSION}"
                           $<$<BOOL:${AGLOW_LLVM}>:AGLOW_LLVM>)
target_compile_options(aglow_settings INTERFACE ${AGLOW_WARNINGS})
target_link_libraries(aglow_settings INTERFACE fmt::fmt Threads::Threads)

# What nearly every file includes is read once, in a form that the compiler keeps. None of it is the project's own, so
# that editing a header rebuilds what uses it and no more.
set(COMMON_HEADERS <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <numeric>
                   <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>
                   <fmt/format.h> <fmt/ranges.h>)
set(COMMON_FROM "")  # the library that has read them
# Equal headers give equal files, which ccache needs to know them again.
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")

set(BEFORE "")  # the libraries of all rows so far
foreach(row ${FOLDER_ROWS})
  string(REPLACE " " ";" row "${row}")
  set(own "")
  foreach(entry ${row})
    string(REGEX MATCH "^[^:]+" folder ${entry})
    if(folder IN_LIST PROGRAM_FOLDERS)
      continue()
    endif()
    set(library aglow_${folder})
    if(entry MATCHES ":(.*)$")
      string(REPLACE "," ";" viewers_${library} "${CMAKE_MATCH_1}")
    endif()
    if(NOT TARGET ${library})  # the records have theirs already
      file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/${folder}/*.cpp)
      list(FILTER sources EXCLUDE REGEX "[.]kernel[.]cpp$")
      if(NOT AGLOW_LLVM)
        list(FILTER sources EXCLUDE REGEX "/src/backends/cpu/(llvm/|[^/]+$)")
      endif()
      add_library(${library} OBJECT ${sources})
      target_link_libraries(${library} PRIVATE aglow_settings)
      add_dependencies(${library} generated)
      if(COMMON_FROM)
        target_precompile_headers(${library} REUSE_FROM ${COMMON_FROM})
      else()
        target_precompile_headers(${library} PRIVATE ${COMMON_HEADERS})
        set(COMMON_FROM ${library})
      endif()
    endif()
    list(APPEND own ${library})
    if(folder STREQUAL "ops")  # the enumeration of the operators is what opgen prints
      add_library(aglow_op_index OBJECT src/ops/op.cpp)
      target_link_libraries(aglow_op_index PRIVATE aglow_settings)
      add_dependencies(aglow_op_index generated)
      list(APPEND own aglow_op_index)
    endif()
    # Not under the sanitizers, where linking takes long and would find the same.
    if(AGLOW_TESTS AND NOT AGLOW_SANITIZE)
      add_executable(links_${folder} cmake/nothing.cpp)
      set(peers ${own})
      list(FILTER peers INCLUDE REGEX "^(${library}|aglow_op_index)$")
      foreach(part ${BEFORE} ${peers})
        if(part IN_LIST BEFORE AND DEFINED viewers_${part} AND NOT folder IN_LIST viewers_${part})
          continue()
        endif()
        target_sources(links_${folder} PRIVATE $<TARGET_OBJECTS:${part}>)
      endforeach()
      target_link_libraries(links_${folder} PRIVATE fmt::fmt Threads::Threads)
      target_link_options(links_${folder} PRIVATE -Wl,--strip-all)
      list(APPEND LINK_CHECKS links_${folder})
    endif()
  endforeach()
  list(APPEND BEFORE ${own})
endforeach()
set(FOLDER_LIBRARIES ${BEFORE})
set_target_properties(${LINK_CHECKS} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/links)
