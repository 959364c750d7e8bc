# SPDX-License-Identifier: Apache-2.0
# cmake -DRUN="PROGRAM;ARGUMENT;…" -P one_error.cmake: bad input is told once, however many ranks there are, with exit code 2.
execute_process(COMMAND ${RUN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
string(REGEX MATCHALL "error: " errors "${out}")
list(LENGTH errors told)
if(NOT code EQUAL 2 OR NOT told EQUAL 1)
  message(FATAL_ERROR "exit code ${code}, ${told} errors:\n${out}")
endif()
