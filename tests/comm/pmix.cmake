# SPDX-License-Identifier: Apache-2.0
# Bootstrap `pmix`: Open MPI's launcher, no MPI in the program.
if(PMIX_FOUND AND HALOCLINE_MPIRUN_OPENMPI)
  halocline_add_mpi_program(comm_pmix_test SOURCES pmix_test.cpp LINK halocline::comm)
  foreach(ranks 1 2 4)
    set(filter --gtest_filter=-PmixMissing.*:PmixMixed.*:PmixAlone.*)
    if(ranks EQUAL 1)
      set(filter --gtest_filter=-*OtherOptions*:*OfOneRank*:PmixMissing.*:PmixMixed.*:PmixAlone.*) # one rank agrees with itself
    endif()
    add_test(NAME comm.pmix_test.r${ranks}
             COMMAND ${HALOCLINE_MPIRUN_OPENMPI} -n ${ranks} $<TARGET_FILE:comm_pmix_test> ${filter})
    set_tests_properties(comm.pmix_test.r${ranks} PROPERTIES LABELS mpi TIMEOUT 300 PROCESSORS ${ranks}
      ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
  endforeach()

  add_test(NAME comm.pmix_missing COMMAND ${HALOCLINE_MPIRUN_OPENMPI} -n 3 $<TARGET_FILE:comm_pmix_test>
           --gtest_color=no --gtest_filter=PmixMissing.*)
  set_tests_properties(comm.pmix_missing PROPERTIES LABELS mpi TIMEOUT 100 PROCESSORS 3
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")

  # A launcher with a PMIx server that is no MPI's.
  add_test(NAME comm.pmix_alone COMMAND ${HALOCLINE_MPIRUN_OPENMPI} -n 3
           env -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_RANK $<TARGET_FILE:comm_pmix_test> --gtest_filter=PmixAlone.*)
  set_tests_properties(comm.pmix_alone PROPERTIES LABELS mpi TIMEOUT 100 PROCESSORS 3
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")

  add_test(NAME comm.pmix_mixed COMMAND ${HALOCLINE_MPIRUN_OPENMPI} -n 3 $<TARGET_FILE:comm_pmix_test>
           --gtest_color=no --gtest_filter=PmixMixed.*)
  set_tests_properties(comm.pmix_mixed PROPERTIES LABELS mpi TIMEOUT 100 PROCESSORS 3
    PASS_REGULAR_EXPRESSION "refused: ranks disagree on how they join the job: rank 0 does through [^;]*and rank 1 does not"
    FAIL_REGULAR_EXPRESSION "${HALOCLINE_TEST_FAULTS}"
    ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")

  halocline_add_test(comm.pmix_launcher_test SOURCES pmix_launcher_test.cpp LINK halocline::comm SEES comm
                     LABELS mpi ARGS ${HALOCLINE_MPIRUN_OPENMPI} -n 2)
  set_property(TEST comm.pmix_launcher_test PROPERTY ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT}")
endif()
