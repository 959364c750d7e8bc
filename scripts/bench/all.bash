# each question that has options for its quickest: all but targets and those over loopback; ten minutes
programs=()
packages=all # the most that one of them needs
mapfile -t asked < <(grep -l '^quickest=' "$questions"/*.bash)
for file in "${asked[@]}"; do
  mapfile -t -O "${#programs[@]}" programs < <(source "$file"; printf '%s\n' "${programs[@]}")
done

read_options() { [[ ${#options[@]} -eq 0 ]] || wrong "there is no option '${options[0]}'"; }
ask_quickly() ( # FILE
  source "$1"
  name=${1##*/} name=${name%.bash}
  echo "bench.sh $name${quickest[*]:+ ${quickest[*]}}" >&2
  ask "$name" "${quickest[@]}" </dev/null
)
run() {
  local file status
  for file in "${asked[@]}"; do
    status=0
    ask_quickly "$file" || status=$?
    [[ $status -eq 0 || $status -eq 77 ]] || exit "$status" # 77: verbs, for example, but no machine for it here
  done
}
