# SPDX-License-Identifier: Apache-2.0
# The table at the start of docs/running.md names the flags that the --help of each program shows, and no others. Every
# program has --help and --version.
#   cmake -DSOURCE=... -DBIN=... [-DFORGET=--flag: as if the page did not name it] -P flags.cmake
cmake_minimum_required(VERSION 3.25)
file(READ ${SOURCE}/docs/running.md page)
set(wrong)
foreach(program halocline-run coarse_solve generate_gauge heat4d halocline-info)
  if(NOT page MATCHES "\n[|] `${program}[ `][^|\n]*[|][^|\n]*[|]([^|\n]*)[|]\n")
    string(APPEND wrong "\n  ${program}: no row with three cells")
    continue()
  endif()
  string(REGEX MATCHALL "--[a-z0-9-]+" told "${CMAKE_MATCH_1}")
  list(REMOVE_ITEM told "${FORGET}")

  execute_process(COMMAND ${BIN}/${program} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "\n  (-[a-z],)?--[a-z0-9,-]+" shown "${help}") # a description begins further to the right
  string(REGEX MATCHALL "--[a-z0-9-]+" shown "${shown}")
  list(REMOVE_ITEM shown --help --version)

  foreach(flag IN LISTS shown)
    if(NOT flag IN_LIST told)
      string(APPEND wrong "\n  ${program}: ${flag} is missing")
    endif()
  endforeach()
  foreach(flag IN LISTS told)
    if(NOT flag IN_LIST shown)
      string(APPEND wrong "\n  ${program} has no ${flag}")
    endif()
  endforeach()
endforeach()
if(wrong)
  message(FATAL_ERROR "docs/running.md, the table of programs:${wrong}")
endif()
