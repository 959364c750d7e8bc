# SPDX-License-Identifier: Apache-2.0
# Matched messages: the same bodies with ranks as threads and as processes, over shared memory and over networks.
halocline_add_test(comm.messenger_test SOURCES messenger_test.cpp LINK halocline::comm LABELS threads)
halocline_add_test(comm.messenger_fuzz_test SOURCES messenger_fuzz_test.cpp LINK halocline::comm LABELS threads)
if(TARGET halocline-run)
  add_dependencies(comm_messenger_test halocline-run)
  add_dependencies(comm_messenger_fuzz_test halocline-run)
  foreach(ranks 1 2 3 12)
    add_test(NAME comm.messenger_test.r${ranks} COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:comm_messenger_test>
      --gtest_filter=Messenger.*)
    set_tests_properties(comm.messenger_test.r${ranks} PROPERTIES TIMEOUT 120 PROCESSORS ${ranks})
  endforeach()
endif()

# Without what only shared memory does, and 2 GiB in frames.
set(over_networks --gtest_filter=Messenger.*-*Slab*:*Pieces*:*2GiB*)
set(tests)
if(TARGET halocline-run AND LIBFABRIC_FOUND)
  foreach(ranks 2 4)
    add_test(NAME comm.messenger_test.ofi.r${ranks}
      COMMAND halocline-run -n ${ranks} -- $<TARGET_FILE:comm_messenger_test> ${over_networks})
    list(APPEND tests comm.messenger_test.ofi.r${ranks})
  endforeach()
  add_test(NAME comm.messenger_fuzz_test.ofi.r3 COMMAND halocline-run -n 3 -- $<TARGET_FILE:comm_messenger_fuzz_test>)
  list(APPEND tests comm.messenger_fuzz_test.ofi.r3)
  set_tests_properties(${tests} PROPERTIES TIMEOUT 120 PROCESSORS 3 LABELS ofi ENVIRONMENT HALOCLINE_TEST_TRANSPORT=ofi)
endif()
if(TARGET halocline-run AND LIBIBVERBS_FOUND) # where there is an RDMA device: see verbs.cmake
  add_test(NAME comm.messenger_test.verbs.r2 CONFIGURATIONS verbs
    COMMAND halocline-run -n 2 -- $<TARGET_FILE:comm_messenger_test>
            --gtest_filter=Messenger.*-*Slab*:*Pieces*:*2GiB*:*EverySize*:*Allocated*) # the last two take half a minute each there
  add_test(NAME comm.messenger_fuzz_test.verbs.r3 CONFIGURATIONS verbs
    COMMAND halocline-run -n 3 -- $<TARGET_FILE:comm_messenger_fuzz_test>)
  set_tests_properties(comm.messenger_test.verbs.r2 comm.messenger_fuzz_test.verbs.r3 PROPERTIES
    TIMEOUT 120 LABELS verbs ENVIRONMENT HALOCLINE_TEST_TRANSPORT=verbs)
endif()
include(HaloclineMpiTest)
halocline_add_mpi_test(comm.messenger_test.mpi TARGET comm_messenger_test RANKS 2 ARGS ${over_networks})
halocline_add_mpi_test(comm.messenger_fuzz_test.mpi TARGET comm_messenger_fuzz_test RANKS 3)
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "messenger.*_test.mpi")
set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT HALOCLINE_TEST_TRANSPORT=mpi)
