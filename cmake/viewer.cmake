# The viewer of pages (src/page/viewer) as bytes inside the program: its scripts one after the other, and its style.
set(VIEWER ${CMAKE_SOURCE_DIR}/src/page/viewer)
set(VIEWER_SCRIPTS ${VIEWER}/kit.js ${VIEWER}/layout.js ${VIEWER}/graph.js ${VIEWER}/stages.js ${VIEWER}/memory.js
                   ${VIEWER}/profile.js ${VIEWER}/start.js)
set(VIEWER_SCRIPT ${GENERATED}/page/viewer.js)
file(MAKE_DIRECTORY ${GENERATED}/page)
add_custom_command(OUTPUT ${VIEWER_SCRIPT} COMMAND ${CMAKE_COMMAND} -E cat ${VIEWER_SCRIPTS} > ${VIEWER_SCRIPT}
                   DEPENDS ${VIEWER_SCRIPTS} COMMENT "viewer of pages" VERBATIM)

set(VIEWER_EMBED ${GENERATED}/page/viewer.cpp)
set(text "")
foreach(part "style|${VIEWER}/page.css" "script|${VIEWER_SCRIPT}")
  string(REGEX MATCH "^([a-z]+)[|](.*)$" _ ${part})
  string(APPEND text "__asm__(\".section .rodata\\n.globl aglow_viewer_${CMAKE_MATCH_1}\\n"
         ".globl aglow_viewer_${CMAKE_MATCH_1}_end\\naglow_viewer_${CMAKE_MATCH_1}:\\n"
         ".incbin \\\"${CMAKE_MATCH_2}\\\"\\naglow_viewer_${CMAKE_MATCH_1}_end:\\n.byte 0\\n.text\\n\");\n")
endforeach()
file(WRITE ${VIEWER_EMBED}.new "${text}")
file(COPY_FILE ${VIEWER_EMBED}.new ${VIEWER_EMBED} ONLY_IF_DIFFERENT)
set_source_files_properties(${VIEWER_EMBED} PROPERTIES OBJECT_DEPENDS "${VIEWER_SCRIPT};${VIEWER}/page.css" GENERATED TRUE)
target_sources(aglow_page PRIVATE ${VIEWER_EMBED})
