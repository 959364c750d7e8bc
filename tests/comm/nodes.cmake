# SPDX-License-Identifier: Apache-2.0
# Jobs over several nodes, and the connections between them.
halocline_add_test(comm.tcp_link_test SOURCES tcp_link_test.cpp strangers_test.cpp LINK halocline::comm SEES comm)
halocline_add_test(comm.launch_test SOURCES launch_test.cpp LINK halocline::comm SEES comm) # wire.hpp
halocline_add_test(comm.layout_test SOURCES layout_test.cpp LINK halocline::comm SEES comm)
if(LIBFABRIC_FOUND)
  halocline_add_test(comm.nodes_test SOURCES nodes_test.cpp LINK halocline::comm SEES comm # job_core.hpp
                     LABELS ofi RANKS 3 4)
  halocline_add_test_program(comm_mixed_test SOURCES mixed_test.cpp LINK halocline::comm)
  include(HaloclineMpiTest)
  halocline_add_mpi_test(comm.mixed_test TARGET comm_mixed_test RANKS 5)
endif()
