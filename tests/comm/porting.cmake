# SPDX-License-Identifier: Apache-2.0
# An MPI program that uses windows of comm: linked with one MPI, run under its mpirun.
set(left_in_ucx "was not matched" "send length") # what UCX, below MPICH, says of messages that MPI_Finalize finds
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} upper)
  if(NOT TARGET halocline_use_${mpi} OR NOT HALOCLINE_MPIRUN_${upper})
    continue()
  endif()
  set(program comm_porting_test_${mpi})
  add_executable(${program} porting/porting_test.cpp porting/with_mpi.cpp porting/with_windows.cpp)
  target_link_libraries(${program} PRIVATE halocline::halo halocline_use_${mpi} GTest::gtest halocline_warnings)
  target_compile_definitions(${program} PRIVATE HALOCLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests CXX_EXTENSIONS OFF)
  set(misusing comm_mpi_program_test_${mpi})
  add_executable(${misusing} porting/mpi_program_test.cpp)
  target_link_libraries(${misusing} PRIVATE halocline::comm halocline_use_${mpi} halocline_test_support
                        halocline_warnings)
  set_target_properties(${misusing} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests CXX_EXTENSIONS OFF)
  add_test(NAME comm.mpi_program_test.${mpi}.r2 COMMAND ${HALOCLINE_MPIRUN_${upper}} -n 2 $<TARGET_FILE:${misusing}>)
  set_tests_properties(comm.mpi_program_test.${mpi}.r2 PROPERTIES TIMEOUT 300 LABELS mpi PROCESSORS 2
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}" FAIL_REGULAR_EXPRESSION "${left_in_ucx}")
  foreach(ranks 1 2 4)
    set(test comm.porting_test.${mpi}.r${ranks})
    add_test(NAME ${test} COMMAND ${HALOCLINE_MPIRUN_${upper}} -n ${ranks} $<TARGET_FILE:${program}>)
    set_tests_properties(${test} PROPERTIES TIMEOUT 300 LABELS mpi PROCESSORS ${ranks}
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
  endforeach()
endforeach()
