# SPDX-License-Identifier: Apache-2.0
# Windows and one-sided communication: between threads as ranks, and one binary each over every transport.
include(${CMAKE_CURRENT_LIST_DIR}/over_transports.cmake)
foreach(kind window one_sided)
  halocline_add_test(comm.${kind}_threads_test SOURCES ${kind}_threads_test.cpp LINK halocline::comm LABELS threads)
endforeach()
comm_test_over_transports(window_test)
get_property(tests DIRECTORY PROPERTY TESTS)
list(FILTER tests INCLUDE REGEX "window_test.mpi.mpich")
if(tests) # what UCX, below MPICH, says of messages that MPI_Finalize finds
  set_tests_properties(${tests} PROPERTIES FAIL_REGULAR_EXPRESSION "was not matched;send length")
endif()
comm_test_over_transports(one_sided_test MORE mixed.4 ofi-tagged.2 ofi-tagged.4)
halocline_add_test(comm.window_channel_test SOURCES window_channel_test.cpp LINK halocline::comm SEES comm)
# Over networks that write memory, and over one that does not.
halocline_add_test_program(comm_straight_window_test SOURCES straight_window_test.cpp LINK halocline::comm)
if(LIBFABRIC_FOUND)
  foreach(provider tcp shm tagged)
    halocline_add_test(comm.straight_window_test.ofi-${provider} TARGET comm_straight_window_test RANKS 2
                       ARGS ofi-${provider} LABELS ofi)
  endforeach()
  halocline_add_test(comm.straight_window_test.ofi-tcp TARGET comm_straight_window_test RANKS 4 ARGS ofi-tcp LABELS ofi)
endif()
if(LIBFABRIC_HAS_NET)
  halocline_add_test(comm.straight_window_test.ofi-net TARGET comm_straight_window_test RANKS 2 ARGS ofi-net LABELS ofi)
endif()
if(LIBIBVERBS_FOUND)
  halocline_add_test(comm.straight_window_test.verbs TARGET comm_straight_window_test RANKS 2 ARGS verbs
                     LABELS verbs CONFIGURATIONS verbs)
endif()
if(LIBIBVERBS_FOUND) # where there is an RDMA device: see verbs.cmake
  halocline_add_test(comm.window_test.verbs TARGET comm_window_test RANKS 4 ARGS verbs --gtest_filter=*AnyOrder*
                     LABELS verbs CONFIGURATIONS verbs)
endif()
halocline_add_mpi_test(comm.one_sided_test.mpi_one_sided TARGET comm_one_sided_test RANKS 2 ARGS mpi-one-sided MPIS openmpi)
