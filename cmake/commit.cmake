# Writes which commit the sources are, where they are a checkout: -DROOT=... -DOUT=... Run at every build; the file
# changes when the commit does.
find_program(GIT git)
set(commit "")
if(GIT AND EXISTS ${ROOT}/.git)
  execute_process(COMMAND ${GIT} -C ${ROOT} rev-parse --short=8 HEAD OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(WRITE ${OUT}.new "#define AGLOW_COMMIT \"${commit}\"\n")
file(COPY_FILE ${OUT}.new ${OUT} ONLY_IF_DIFFERENT)
