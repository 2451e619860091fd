# What `cmake --install` puts into a prefix: the program, the library, its public headers, and the CMake package with
# which find_package(aglow) gives aglow::aglow.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(PACKAGE_FOLDER ${CMAKE_INSTALL_LIBDIR}/cmake/aglow)
install(TARGETS aglow RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET aglow-serve)
  install(TARGETS aglow-serve RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET aglow_module)
  install(TARGETS aglow_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/aglow)
endif()
install(TARGETS aglow_library EXPORT aglowTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/aglow DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/aglow)
install(EXPORT aglowTargets NAMESPACE aglow:: DESTINATION ${PACKAGE_FOLDER})

file(WRITE ${CMAKE_BINARY_DIR}/aglowConfig.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(fmt)
include(${CMAKE_CURRENT_LIST_DIR}/aglowTargets.cmake)
]])
write_basic_package_version_file(${CMAKE_BINARY_DIR}/aglowConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/aglowConfig.cmake ${CMAKE_BINARY_DIR}/aglowConfigVersion.cmake
        DESTINATION ${PACKAGE_FOLDER})
