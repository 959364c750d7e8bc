# SPDX-License-Identifier: Apache-2.0
# Matched messages: the same bodies with ranks as threads and as processes.
halocline_add_test(comm.messenger_test SOURCES messenger_test.cpp LINK halocline::comm LABELS threads)
halocline_add_test(comm.messenger_fuzz_test SOURCES messenger_fuzz_test.cpp LINK halocline::comm LABELS threads)
if(TARGET halocline-run)
  add_dependencies(comm_messenger_test halocline-run)
  foreach(ranks 1 2 3 12)
    add_test(NAME comm.messenger_test.r${ranks} COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:comm_messenger_test>
      --gtest_filter=Messenger.*)
    set_tests_properties(comm.messenger_test.r${ranks} PROPERTIES TIMEOUT 120 PROCESSORS ${ranks})
  endforeach()
endif()
