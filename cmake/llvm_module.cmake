# The code generator as a module that the program and the Python module load when they first need it. Their own copy of
# its functions (module/loader.cpp) comes before those of the library, which then need not be linked, and neither does
# LLVM. Under the sanitizers, which compare types by their addresses, it stays linked.
set(MODULE_FOLDER ../${CMAKE_INSTALL_LIBDIR}/aglow)
add_library(aglow_module MODULE src/backends/cpu/module/table.cpp)
target_compile_options(aglow_module PRIVATE ${AGLOW_WARNINGS})
target_link_libraries(aglow_module PRIVATE aglow_library)
target_link_options(aglow_module PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
set_target_properties(aglow_module PROPERTIES PREFIX "" OUTPUT_NAME aglow_llvm LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

function(load_llvm_when_needed target)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/backends/cpu/module/loader.cpp)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/backends/cpu/module/loader.cpp PROPERTIES
                              COMPILE_DEFINITIONS "AGLOW_MODULE_FOLDER=\"${MODULE_FOLDER}\"")
  target_link_options(${target} PRIVATE -Wl,--as-needed)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES INSTALL_RPATH_USE_LINK_PATH OFF)
  add_dependencies(${target} aglow_module)
endfunction()
