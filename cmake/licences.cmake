# The licences of what is linked in, once all of it is known; whoever packs the program has them.
list(REMOVE_DUPLICATES LINKED_FILES)
add_custom_command(OUTPUT ${LICENCES} DEPENDS tools/licences.py VERBATIM
                   COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/licences.py ${LICENCES} ${LINKED_FILES})
add_custom_target(licences DEPENDS ${LICENCES})
add_dependencies(aglow licences)
