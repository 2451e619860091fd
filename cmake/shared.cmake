# The library for programs of others: the C interface and nothing else is seen of it. It loads the code generator when it
# first needs it, as the program does, so that neither LLVM nor any other library is linked by who uses it. Within this
# build aglow::aglow is the archive.
add_library(aglow::aglow ALIAS aglow_library)
if(AGLOW_SANITIZE)
  return()
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/aglow/aglow.h)
file(STRINGS include/aglow/aglow.h lines REGEX "aglow_[a-z0-9_]+\\(")
string(REGEX MATCHALL "aglow_[a-z0-9_]+\\(" names "${lines}")
list(REMOVE_DUPLICATES names)
list(SORT names)
list(TRANSFORM names REPLACE "\\($" "$<SEMICOLON>\n")
list(JOIN names "" names)
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/aglow.map CONTENT "{ global:\n${names}local: *;\n};\n")

add_library(aglow_shared SHARED $<TARGET_OBJECTS:aglow_api>)
target_include_directories(aglow_shared INTERFACE $<INSTALL_INTERFACE:include>)
target_link_libraries(aglow_shared PRIVATE aglow_library)
target_link_options(aglow_shared PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/aglow.map -Wl,--gc-sections)
# Before 1.0 a minor version may change the interface.
set_target_properties(aglow_shared PROPERTIES OUTPUT_NAME aglow EXPORT_NAME aglow VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS ${CMAKE_BINARY_DIR}/aglow.map)
if(TARGET aglow_module)
  load_llvm_when_needed(aglow_shared)
endif()
