# SPDX-License-Identifier: Apache-2.0
# A few kills; scripts/kill-campaign.sh does many, over every transport.
halocline_add_test_program(comm_kill_campaign SOURCES kill_campaign.cpp LINK halocline::comm)

function(halocline_add_kills name among rounds)
  halocline_add_test(comm.kills.${name} TARGET comm_kill_campaign ARGS ${among} ${rounds} ${ARGN})
  set_tests_properties(comm.kills.${name} PROPERTIES PROCESSORS 3)
endfunction()

halocline_add_kills(shm shm 4 $<TARGET_FILE:halocline-run>)
halocline_add_kills(shm-setup shm+setup 4 $<TARGET_FILE:halocline-run>)
if(LIBFABRIC_FOUND)
  halocline_add_kills(ofi-tcp ofi-tcp 4 $<TARGET_FILE:halocline-run>)
  halocline_add_kills(ofi-tcp-puts ofi-tcp+puts 4 $<TARGET_FILE:halocline-run>)
  halocline_add_kills(ofi-tagged-large ofi-tagged+large 8 $<TARGET_FILE:halocline-run>)
endif()
if(LIBFABRIC_HAS_NET)
  halocline_add_kills(ofi-net ofi-net 4 $<TARGET_FILE:halocline-run>)
  halocline_add_kills(ofi-net-messages ofi-net+messages 4 $<TARGET_FILE:halocline-run>)
endif()
# Large messages through each MPI, whose launcher must leave the survivors alone. MPICH's may not: one survivor that
# names the dead rank is enough. Its UCX aborts a survivor that reads from the dead process (process_vm_readv), so it
# copies through shared memory here.
set(launcher_openmpi 4 ${HALOCLINE_MPIRUN_OPENMPI} --enable-recovery)
set(launcher_mpich 4/1 ${HALOCLINE_MPIRUN_MPICH} -disable-auto-cleanup)
foreach(mpi openmpi mpich)
  string(TOUPPER ${mpi} upper)
  if(TARGET halocline-mpi-${mpi} AND HALOCLINE_MPIRUN_${upper})
    foreach(among mpi+messages mpi+puts mpi-one-sided) # the last: messages of a plan
      string(REPLACE "+" "-" name ${among}.${mpi})
      halocline_add_kills(${name} ${among} ${launcher_${mpi}})
      set_tests_properties(comm.kills.${name} PROPERTIES
        LABELS mpi ENVIRONMENT "${HALOCLINE_OPENMPI_ENVIRONMENT};UCX_TLS=posix,self")
    endforeach()
  endif()
endforeach()
