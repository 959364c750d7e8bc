# SPDX-License-Identifier: Apache-2.0
include(HaloclineMpiTest) # finds the launchers
halocline_add_test(apps.heat4d_test SOURCES ${CMAKE_CURRENT_LIST_DIR}/heat4d_test.cpp
                   LINK halocline::lattice nlohmann_json::nlohmann_json)
target_compile_definitions(apps_heat4d_test PRIVATE HALOCLINE_BIN="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(apps_heat4d_test heat4d halocline-run)
foreach(mpi openmpi mpich)
  if(TARGET heat4d_mpi_${mpi})
    add_dependencies(apps_heat4d_test heat4d_mpi_${mpi})
  endif()
endforeach()
set_tests_properties(apps.heat4d_test PROPERTIES ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}" PROCESSORS 2)

# A launched rank never calls MPI_Init: the others name it, and end at the deadline.
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} upper)
  if(TARGET halocline-mpi-${mpi} AND HALOCLINE_MPIRUN_${upper})
    set(test apps.heat4d.alone.${mpi})
    add_test(NAME ${test} COMMAND ${CMAKE_COMMAND} -E env HALOCLINE_STALL_MS=1500 HALOCLINE_FAULTS_DEADLINE_MS=5000 HALOCLINE_MPI=${mpi}
      timeout 50 ${HALOCLINE_MPIRUN_${upper}} -n 1 $<TARGET_FILE:heat4d> : -n 1 sleep 60)
    set_tests_properties(${test} PROPERTIES TIMEOUT 60 LABELS mpi PROCESSORS 2
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}"
      PASS_REGULAR_EXPRESSION "has waited in MPI_Init for 1500 ms .*: rank 1 .pid [0-9]+ on [^ ]+, 'sleep', asleep. has not called it;"
      FAIL_REGULAR_EXPRESSION "${HALOCLINE_TEST_FAULTS}")
    add_test(NAME ${test}.deadline COMMAND ${CMAKE_COMMAND} -E env HALOCLINE_FAULTS_DEADLINE_MS=2500 HALOCLINE_MPI=${mpi}
      timeout 50 ${HALOCLINE_MPIRUN_${upper}} -n 1 $<TARGET_FILE:heat4d> : -n 1 sleep 60)
    set_tests_properties(${test}.deadline PROPERTIES TIMEOUT 60 LABELS mpi PROCESSORS 2
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}"
      PASS_REGULAR_EXPRESSION "has waited in MPI_Init for 2500 ms .*'sleep', asleep. has not called it; that is the deadline"
      FAIL_REGULAR_EXPRESSION "${HALOCLINE_TEST_FAULTS}")
    add_test(NAME ${test}.ended COMMAND ${CMAKE_COMMAND} -E env HALOCLINE_FAULTS_DEADLINE_MS=3000 HALOCLINE_MPI=${mpi}
      timeout 50 ${HALOCLINE_MPIRUN_${upper}} -n 2 $<TARGET_FILE:heat4d> : -n 1 true)
    set_tests_properties(${test}.ended PROPERTIES TIMEOUT 60 LABELS mpi PROCESSORS 2
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}"
      PASS_REGULAR_EXPRESSION "has waited in MPI_Init for 3000 ms .*: rank 2 has ended without it; that is the deadline"
      FAIL_REGULAR_EXPRESSION "${HALOCLINE_TEST_FAULTS}")
  endif()
endforeach()
