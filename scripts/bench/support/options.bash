# A question's own options: read before anything is built, wherever they stand among `options`. All others go to the
# bench, last: there the later of two options counts.

wrong() { echo "bench.sh $question: $*" >&2; exit 2; }
missing() { echo "bench.sh $question: $*" >&2; exit 77; } # what the question is about
say() { echo "bench.sh $question: $*" >&2; }

take() { # NAME VARIABLE: sets it to the value of that option, if it was given
  local -n into=$2
  local values=()
  take_each "$1" values
  [[ ${#values[@]} -eq 0 ]] || into=${values[-1]}
}
take_each() { # NAME ARRAY: appends the values of all options of that name
  local -n list=$2
  local others=() i value
  for ((i = 0; i < ${#options[@]}; ++i)); do
    case ${options[i]} in
      "$1") value=${options[++i]:-} ;;
      "$1="*) value=${options[i]#*=} ;;
      *) others+=("${options[i]}"); continue ;;
    esac
    [[ $value ]] || wrong "$1 needs a value"
    list+=("$value")
  done
  options=("${others[@]}")
}
take_flag() { # NAME VARIABLE: sets it to 1 if that option was given
  local -n into=$2
  local others=() option
  for option in "${options[@]}"; do
    if [[ $option == "$1" ]]; then into=1; else others+=("$option"); fi
  done
  options=("${others[@]}")
}
whole_number() { [[ $2 =~ ^[1-9][0-9]*$ ]] || wrong "$1 '$2': expected a whole number from 1 on"; } # NAME VALUE
take_whole_number() { # NAME VARIABLE
  take "$1" "$2"
  whole_number "$1" "${!2}"
}
