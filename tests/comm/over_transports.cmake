# SPDX-License-Identifier: Apache-2.0
# Runs a program, whose argument names a transport, over each of them: comm.window_test.ofi-tcp.r2, .mpi.openmpi.r4, ...
#   comm_test_over_transports(window_test [MORE mixed.4 ofi-tagged.2])      MORE: transport.ranks
include(HaloclineMpiTest)
function(comm_test_over_transports name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "MORE")
  halocline_add_test_program(comm_${name} SOURCES ${name}.cpp LINK halocline::comm)
  halocline_add_mpi_test(comm.${name}.mpi TARGET comm_${name} RANKS 2 4 ARGS mpi)
  set(runs shm.1 shm.2 shm.4 ofi-tcp.1 ofi-tcp.2 ofi-tcp.4 ofi-shm.1 ofi-shm.2 ofi-shm.4 ${arg_MORE})
  if(NOT LIBFABRIC_FOUND)
    list(FILTER runs EXCLUDE REGEX "ofi|mixed")
  endif()
  if(LIBFABRIC_HAS_NET)
    list(APPEND runs ofi-net.2 ofi-net.4)
  endif()
  foreach(run IN LISTS runs)
    string(REPLACE "." ";" run ${run})
    list(POP_FRONT run transport ranks)
    halocline_add_test(comm.${name}.${transport} TARGET comm_${name} RANKS ${ranks} ARGS ${transport})
  endforeach()
  if(LIBIBVERBS_FOUND) # where there is an RDMA device: see verbs.cmake
    halocline_add_test(comm.${name}.verbs TARGET comm_${name} RANKS 2 ARGS verbs LABELS verbs CONFIGURATIONS verbs)
  endif()
endfunction()
