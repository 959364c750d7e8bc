# SPDX-License-Identifier: Apache-2.0
# halocline_add_test(<folder>.<name> SOURCES ... LINK ... [RANKS 1 2 4] [LABELS ...] [TIMEOUT s])
#
# One ctest entry per rank count: `halo.plan_test.r4`. Without RANKS the program is run once, as it is; with RANKS it is
# started by halocline-run (ranks as processes). Tests that make their own ranks (threads, forks) need no RANKS.
# Labels: `threads` ranks are threads (what the thread sanitizer can judge), `reference-data` may be skipped for want of
# data, `mpi` needs an MPI.
find_package(GTest REQUIRED)

function(halocline_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LINK;RANKS;LABELS;ARGS")
  string(REPLACE "." "_" target ${name})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} halocline_test_support GTest::gtest halocline_warnings)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
    math(EXPR arg_TIMEOUT "5 * ${arg_TIMEOUT}") # what a sanitizer costs
  endif()
  if(arg_RANKS)
    foreach(ranks IN LISTS arg_RANKS)
      add_test(NAME ${name}.r${ranks} COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:${target}> ${arg_ARGS})
      set_tests_properties(${name}.r${ranks} PROPERTIES
        TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" PROCESSORS ${ranks} SKIP_RETURN_CODE 77)
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${target} ${arg_ARGS})
    set_tests_properties(${name} PROPERTIES
      TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}" SKIP_RETURN_CODE 77)
  endif()
endfunction()
