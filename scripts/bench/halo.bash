# exchanges compared with the one-copy limit and each installed MPI, as installed and tuned, the important
# points first, then whether all points meet the targets: 10 minutes, at most one point more; --quick: one
# minute; --json F.json, --svg F.svg: F-2ranks.json, F-4ranks.json, F-self.json, … and F-targets.md;
# --peer 'NAME=COMMAND': a program of 2 ranks, or with {np} in it of 2 and of 4, takes turns; its ranks are bound to cores
# as ours if it is one of Open MPI's mpirun (else it must say so, such as mpirun.mpich -bind-to core)
programs=(bench_halo bench_targets)
packages=bench
quickest=(--quick --json "$build/bench-halo-quick.json" --svg "$build/bench-halo-quick.svg") # a full run's files stay
seconds=(420 120 40) # with 2 ranks, 4 ranks, one rank
sizes=(--L 4,8,12,16,24.12.12.12 --bytes 96,192)
coarse=(--vectors 20,28)
own_peers=()

read_options() {
  local quick=0
  take_flag --quick quick
  [[ $quick == 0 ]] || seconds=(30 16 8) sizes=(--L 4,8 --bytes 96) coarse=()
  take_each --peer own_peers
  json=$build/bench-halo.json svg=$build/bench-halo.svg
  take_files
}
# One and more threads, as far as processors suffice. The bench pins threads itself, unless ranks share processors.
exchanges() { # RANKS SECONDS PART [options]
  local threads=1 t bind=(--no-bind) files=()
  for t in 2 4 8; do [[ $(nproc) -lt $((t * $1)) ]] || threads+=,$t; done
  [[ $(nproc) -ge $1 ]] || bind=()
  add_files files "$3"
  "$bin/halocline-run" "${bind[@]}" -n "$1" -- "$bin/bench_halo" --table --seconds "$2" --threads "$threads" \
    "${files[@]}" "${@:4}" "${options[@]}"
}
add_own_peers() { # ARRAY RANKS: a program of two ranks can't take part among four
  local -n array=$1
  local peer
  [[ ${#own_peers[@]} -eq 0 ]] || bind_own_peers "$2"
  for peer in "${own_peers[@]}"; do
    [[ $peer == *"{np}"* || $2 -eq 2 ]] || continue
    array+=(--peer "${peer//\{np\}/$2}")
  done
}
run() { # with 2 ranks, with 4, with one that is its own neighbour
  local with_two=() with_four=() part results=() judgement=$build/bench-halo-targets.md
  add_halo_peers with_two 2
  add_own_peers with_two 2
  exchanges 2 "${seconds[0]}" 2ranks "${sizes[@]}" "${coarse[@]}" "${with_two[@]}"
  add_halo_peers with_four 4
  add_own_peers with_four 4
  exchanges 4 "${seconds[1]}" 4ranks "${sizes[@]}" --cut t,xt "${with_four[@]}"
  exchanges 1 "${seconds[2]}" self "${sizes[@]}" --cut xyzt
  finish_files
  for part in 2ranks 4ranks self; do results+=("$(file_of json "$part")"); done
  is_stream "$json" || judgement=${json%.json}-targets.md
  "$bin/bench_targets" "${results[@]}" | tee "$judgement"
  say "lines of JSON and charts are ${written[*]}; the judgement of all points is $judgement"
}
