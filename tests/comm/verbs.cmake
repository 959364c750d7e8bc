# SPDX-License-Identifier: Apache-2.0
# Tests of transport `verbs`. Those that need an RDMA device have configuration `verbs`: on a machine that has one,
# `ctest -C verbs -L verbs` runs them; everywhere else comm.verbs_vm does, in an emulated machine with soft-RoCE.
if(NOT LIBIBVERBS_FOUND)
  return()
endif()
# Stands in for the device and counts the requests to it, so it needs none.
halocline_add_test(comm.verbs_work SOURCES verbs_work_test.cpp LINK halocline::comm SEES comm)
halocline_add_test_program(comm_verbs_channel_test SOURCES verbs_channel_test.cpp LINK halocline::comm SEES comm)
set(on_a_device LABELS verbs CONFIGURATIONS verbs)
halocline_add_test(comm.verbs_channel_test TARGET comm_verbs_channel_test RANKS 2 ${on_a_device})
halocline_add_test(comm.verbs_channel_test TARGET comm_verbs_channel_test RANKS 4 ${on_a_device}
                   ARGS --gtest_filter=*Closed*:*Sum*:*Passed*)
if(LIBFABRIC_FOUND)
  halocline_add_test(comm.verbs_mixed_test SOURCES verbs_mixed_test.cpp LINK halocline::comm RANKS 3 ${on_a_device})
endif()
target_compile_definitions(comm_kill_test PRIVATE HALOCLINE_WITH_VERBS)
halocline_add_test(comm.kill_test.verbs TARGET comm_kill_test ${on_a_device}
                   ARGS $<TARGET_FILE:halocline-run> --gtest_filter=OverVerbs/*)

# A cable with a device at each end, which is cut while a job runs.
halocline_add_test(comm.verbs_link_test SOURCES verbs_link_test.cpp LINK halocline::comm ${on_a_device}
                   ARGS $<TARGET_FILE:halocline-run>)
add_dependencies(comm_verbs_link_test halocline-run)
set_tests_properties(comm.verbs_link_test PROPERTIES RUN_SERIAL ON)

# All of these in one boot.
add_test(NAME comm.verbs_vm
         COMMAND ${PROJECT_SOURCE_DIR}/scripts/verbs-vm.sh "'${CMAKE_CURRENT_SOURCE_DIR}/verbs_tests.sh'"
         WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
set_tests_properties(comm.verbs_vm PROPERTIES LABELS verbs TIMEOUT 1500 SKIP_RETURN_CODE 77 RUN_SERIAL ON
                     ENVIRONMENT VERBS_VM_SECONDS=1450)
