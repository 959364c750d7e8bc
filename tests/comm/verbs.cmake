# SPDX-License-Identifier: Apache-2.0
# Tests of transport `verbs`. Those that need an RDMA device are of configuration `verbs`: on a machine that has one,
# `ctest -C verbs -L verbs` runs them; everywhere else comm.verbs_vm does, in an emulated machine with soft-RoCE.
if(NOT LIBIBVERBS_FOUND OR NOT TARGET halocline-run)
  return()
endif()
# The first counts what is asked of a device, in its place, and needs none.
foreach(test verbs_work verbs_channel)
  add_executable(comm_${test}_test ${test}_test.cpp)
  target_include_directories(comm_${test}_test PRIVATE ${PROJECT_SOURCE_DIR}/comm/src) # verbs_world is private
  target_link_libraries(comm_${test}_test PRIVATE halocline::comm halocline_test_support GTest::gtest halocline_warnings)
  set_target_properties(comm_${test}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
endforeach()
target_link_libraries(comm_verbs_work_test PRIVATE GTest::gtest_main)
add_test(NAME comm.verbs_work COMMAND comm_verbs_work_test)
add_dependencies(comm_verbs_channel_test halocline-run)
add_test(NAME comm.verbs_channel_test.r2 CONFIGURATIONS verbs
         COMMAND halocline-run -n 2 -- $<TARGET_FILE:comm_verbs_channel_test>)
add_test(NAME comm.verbs_channel_test.r4 CONFIGURATIONS verbs
         COMMAND halocline-run -n 4 -- $<TARGET_FILE:comm_verbs_channel_test> --gtest_filter=*Closed*:*Sum*:*Passed*)
add_test(NAME comm.contract.verbs.r2 CONFIGURATIONS verbs
         COMMAND halocline-run -n 2 -- $<TARGET_FILE:comm_contract_test> verbs)
add_test(NAME comm.window_test.verbs.r4 CONFIGURATIONS verbs
         COMMAND halocline-run -n 4 -- $<TARGET_FILE:comm_window_test> verbs --gtest_filter=*AnyOrder*)
target_compile_definitions(comm_kill_test PRIVATE HALOCLINE_WITH_VERBS)
add_test(NAME comm.kill_test.verbs CONFIGURATIONS verbs
         COMMAND comm_kill_test $<TARGET_FILE:halocline-run> --gtest_filter=OverVerbs/*)
set_tests_properties(comm.contract.verbs.r2 comm.verbs_channel_test.r2 comm.verbs_channel_test.r4 comm.kill_test.verbs
  comm.window_test.verbs.r4 PROPERTIES LABELS verbs TIMEOUT 300)

# All of these in one boot; with a Testing folder of its own, because ctest runs outside and inside.
add_test(NAME comm.verbs_vm
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/verbs-vm.sh
                 "mkdir -p Testing && mount -t tmpfs none Testing && ctest -C verbs -L verbs -E verbs_vm --output-on-failure"
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
set_tests_properties(comm.verbs_vm PROPERTIES LABELS verbs TIMEOUT 600 SKIP_RETURN_CODE 77 RUN_SERIAL ON
                     ENVIRONMENT VERBS_VM_SECONDS=560)
