# SPDX-License-Identifier: Apache-2.0
# An MPI program that uses windows of comm: linked with one MPI, run under its mpirun.
set(left_in_ucx "was not matched" "send length") # what UCX, below MPICH, says of messages that MPI_Finalize finds
foreach(mpi openmpi mpich)
  halocline_add_linked_mpi_test(comm.porting_test MPI ${mpi} RANKS 1 2 4
    SOURCES porting/porting_test.cpp porting/with_mpi.cpp porting/with_windows.cpp)
  halocline_add_linked_mpi_test(comm.mpi_program_test MPI ${mpi} RANKS 2 SOURCES porting/mpi_program_test.cpp)
  if(TEST comm.mpi_program_test.${mpi}.r2)
    set_tests_properties(comm.mpi_program_test.${mpi}.r2 PROPERTIES FAIL_REGULAR_EXPRESSION "${left_in_ucx}")
  endif()
endforeach()
