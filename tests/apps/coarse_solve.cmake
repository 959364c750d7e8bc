# SPDX-License-Identifier: Apache-2.0
function(halocline_add_program_test name source)
  string(REPLACE "." "_" target ${name})
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE
    halocline::lattice halocline_app_config nlohmann_json::nlohmann_json halocline_test_support halocline_warnings)
  target_compile_definitions(${target} PRIVATE
    HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" HALOCLINE_SOURCE="${PROJECT_SOURCE_DIR}")
  if(LIBFABRIC_FOUND)
    target_compile_definitions(${target} PRIVATE HALOCLINE_WITH_OFI)
  endif()
  if(LIBIBVERBS_FOUND)
    target_compile_definitions(${target} PRIVATE HALOCLINE_WITH_VERBS)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_dependencies(${target} coarse_solve generate_gauge halocline-run halocline-info)
endfunction()

halocline_add_program_test(apps.coarse_solve_test ${CMAKE_CURRENT_LIST_DIR}/coarse_solve_test.cpp)
# One entry per question, so that a failure names itself; serial, because they time and oversubscribe.
foreach(suite Demo Transports Bits BadInput Faults OddLattices Configs)
  add_test(NAME apps.coarse_solve_test.${suite} COMMAND apps_coarse_solve_test --gtest_filter=${suite}.*)
  set_tests_properties(apps.coarse_solve_test.${suite} PROPERTIES
    TIMEOUT 300 RUN_SERIAL ON SKIP_RETURN_CODE 77)
endforeach()
if(LIBIBVERBS_FOUND) # where there is an RDMA device: see tests/comm/verbs.cmake
  add_test(NAME apps.coarse_solve_test.OverVerbs CONFIGURATIONS verbs COMMAND apps_coarse_solve_test --gtest_filter=OverVerbs.*)
  set_tests_properties(apps.coarse_solve_test.OverVerbs PROPERTIES TIMEOUT 120 RUN_SERIAL ON LABELS verbs)
endif()
add_test(NAME apps.coarse_solve_test.Reference COMMAND apps_coarse_solve_test --gtest_filter=Reference.*)
set_tests_properties(apps.coarse_solve_test.Reference PROPERTIES
  TIMEOUT 300 RUN_SERIAL ON LABELS reference-data SKIP_RETURN_CODE 77)
