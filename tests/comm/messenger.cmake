# SPDX-License-Identifier: Apache-2.0
# Matched messages: the same bodies with ranks as threads and as processes, over shared memory and over networks.
halocline_add_test(comm.messenger_test LINK halocline::comm LABELS threads SOURCES
                   messenger_test.cpp messenger_protocols_test.cpp messenger_push_test.cpp messenger_limits_test.cpp
                   messenger_misuse_test.cpp messenger_ending_test.cpp messenger_withdrawal_test.cpp
                   messenger_progress_test.cpp
                   ARGS --gtest_filter=-MessengerOverNetwork.*:MessengerBetweenProcesses.*:MessengerOfThreeProcesses.*:MessengerDeadline.*)
halocline_add_test(comm.messenger_fuzz_test SOURCES messenger_fuzz_test.cpp LINK halocline::comm LABELS threads)
halocline_add_test(comm.messenger_test TARGET comm_messenger_test RANKS 1 ARGS --gtest_filter=Messenger.*)
halocline_add_test(comm.messenger_fuzz_test.shm TARGET comm_messenger_fuzz_test RANKS 3)
halocline_add_test(comm.messenger_stress_test SOURCES messenger_stress_test.cpp LINK halocline::comm LABELS threads)
halocline_add_test(comm.messenger_stress_test.shm TARGET comm_messenger_stress_test RANKS 2 4)
# As on a machine whose cores are far apart.
halocline_add_test(comm.messenger_fuzz_test.streamed TARGET comm_messenger_fuzz_test RANKS 3)
set_property(TEST comm.messenger_fuzz_test.streamed.r3 APPEND PROPERTY ENVIRONMENT
  HALOCLINE_TEST_TRANSPORT=shm HALOCLINE_PATH=streamed)
# Ranks in separate pid namespaces, each with pid 1 there.
add_test(NAME comm.messenger_fuzz_test.containers COMMAND halocline-run -n 3 -- sh -c
  "unshare -rpf true 2> /dev/null || exit 77; exec unshare -rpf '$<TARGET_FILE:comm_messenger_fuzz_test>'")
set_tests_properties(comm.messenger_fuzz_test.containers PROPERTIES
  TIMEOUT 300 LABELS namespaces PROCESSORS 3 SKIP_RETURN_CODE 77 ENVIRONMENT HALOCLINE_TEST_TRANSPORT=shm)
set(between_ranks --gtest_filter=Messenger.*:MessengerBetweenRanks.*)
halocline_add_test(comm.messenger_test TARGET comm_messenger_test RANKS 2
                   ARGS ${between_ranks}:MessengerBetweenProcesses.*)
halocline_add_test(comm.messenger_test TARGET comm_messenger_test RANKS 3 12
                   ARGS ${between_ranks}:MessengerBetweenProcesses.*:MessengerOfThree*-*2GiB*)
halocline_add_test(comm.messenger_test.deadline TARGET comm_messenger_test RANKS 2
                   ARGS --gtest_filter=MessengerDeadline.*EachPiece*)
set_property(TEST comm.messenger_test.deadline.r2 APPEND PROPERTY ENVIRONMENT HALOCLINE_FAULTS_DEADLINE_MS=2500)

# Without the test of 2 GiB and those of shared memory.
set(over_networks ${between_ranks}:MessengerOverNetwork.*)
set(not_over_networks -*Slab*:*Pieces*:*2GiB*:*InARow*:*WithoutWaits*:*OnlyWhile*)
if(LIBFABRIC_FOUND)
  halocline_add_test(comm.messenger_test.ofi TARGET comm_messenger_test RANKS 2 LABELS ofi
                     ARGS ${over_networks}${not_over_networks})
  halocline_add_test(comm.messenger_test.ofi TARGET comm_messenger_test RANKS 4 LABELS ofi
                     ARGS ${over_networks}:MessengerOfThree*${not_over_networks})
  halocline_add_test(comm.messenger_test.ofi_deadline TARGET comm_messenger_test RANKS 2 LABELS ofi
                     ARGS --gtest_filter=MessengerDeadline.*OverANetwork)
  set_property(TEST comm.messenger_test.ofi_deadline.r2 APPEND PROPERTY ENVIRONMENT HALOCLINE_FAULTS_DEADLINE_MS=2500)
  halocline_add_test(comm.messenger_fuzz_test.ofi TARGET comm_messenger_fuzz_test RANKS 3 LABELS ofi)
  halocline_add_test(comm.messenger_stress_test.ofi TARGET comm_messenger_stress_test RANKS 3 LABELS ofi)
endif()
# The calls that published programs make, and what such programs do with them.
halocline_add_test(comm.two_sided_test SOURCES two_sided_test.cpp LINK halocline::comm LABELS threads)
halocline_add_test(comm.two_sided_test.shm TARGET comm_two_sided_test RANKS 2 3 4)
if(LIBFABRIC_FOUND)
  halocline_add_test(comm.two_sided_test.ofi TARGET comm_two_sided_test RANKS 2 3 LABELS ofi)
endif()
# Large messages, written straight into the receiver's memory; the argument names the transport.
halocline_add_test_program(comm_messenger_direct_test SOURCES messenger_direct_test.cpp LINK halocline::comm)
if(LIBFABRIC_FOUND)
  foreach(transport tcp shm tagged)
    halocline_add_test(comm.messenger_direct_test.ofi-${transport} TARGET comm_messenger_direct_test RANKS 2 4 LABELS ofi
                       ARGS ofi-${transport})
  endforeach()
endif()
if(LIBIBVERBS_FOUND) # where there is an RDMA device: see verbs.cmake; two tests take half a minute each there
  halocline_add_test(comm.messenger_test.verbs TARGET comm_messenger_test RANKS 2 LABELS verbs CONFIGURATIONS verbs
                     ARGS ${over_networks}${not_over_networks}:*EverySize*:*Allocated*)
  halocline_add_test(comm.messenger_direct_test.verbs TARGET comm_messenger_direct_test RANKS 2
                     LABELS verbs CONFIGURATIONS verbs ARGS verbs)
  halocline_add_test(comm.messenger_fuzz_test.verbs TARGET comm_messenger_fuzz_test RANKS 3
                     LABELS verbs CONFIGURATIONS verbs)
endif()
include(HaloclineMpiTest)
halocline_add_mpi_test(comm.messenger_test.mpi TARGET comm_messenger_test RANKS 2
                       ARGS ${over_networks}${not_over_networks})
halocline_add_mpi_test(comm.messenger_test.mpi TARGET comm_messenger_test RANKS 3 ARGS --gtest_filter=MessengerOfThree*)
halocline_add_mpi_test(comm.messenger_direct_test.mpi TARGET comm_messenger_direct_test RANKS 2 4 ARGS mpi)
halocline_add_mpi_test(comm.messenger_fuzz_test.mpi TARGET comm_messenger_fuzz_test RANKS 3)
get_property(all DIRECTORY PROPERTY TESTS)
foreach(transport shm ofi verbs mpi)
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "(messenger.*|two_sided)_test.${transport}")
  if(tests)
    set_property(TEST ${tests} APPEND PROPERTY ENVIRONMENT HALOCLINE_TEST_TRANSPORT=${transport})
  endif()
endforeach()
