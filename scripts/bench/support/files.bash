# Files of a question that runs a bench once for each part: F-PART.json for --json F.json, F-PART.svg for --svg F.svg.
# What is no regular file (/dev/stdout, a FIFO) gets all parts at the end: it may be opened only once, and what was
# written there can't be read back.
json='' svg='' # what --json and --svg say
scratch=''     # the folder of parts until then
written=()     # the names of all files

take_files() {
  take --json json
  take --svg svg
  if is_stream "$json" || is_stream "$svg"; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
  fi
}
is_stream() { # FILE; not what the bench refuses: "-", folders, what may not be written
  [[ $1 =~ ^/dev/(stdout|stderr|fd/) || (-e $1 && ! -f $1 && ! -d $1 && -w $1) ]]
}
file_of() { # json|svg PART: prints the name of the file that the bench writes
  local file=${!1} folder='' name
  name=${file##*/}
  [[ $file != */* ]] || folder=${file%/*}/
  if is_stream "$file"; then
    echo "$scratch/$2.$1"
  elif [[ $file == - ]]; then
    echo -
  elif [[ $name == ?*.* ]]; then
    echo "$folder${name%.*}-$2.${name##*.}"
  else
    echo "$folder$name-$2"
  fi
}
add_files() { # ARRAY PART: appends the options for that part
  local -n array=$1
  local kind file
  for kind in json svg; do
    [[ ${!kind} ]] || continue
    file=$(file_of "$kind" "$2")
    array+=("--$kind" "$file")
    if is_stream "${!kind}"; then file=${!kind}; fi
    [[ " ${written[*]} " == *" $file "* ]] || written+=("$file")
  done
}
finish_files() { # after the last part
  local kind
  for kind in json svg; do
    is_stream "${!kind}" || continue
    case ${!kind} in
      /dev/stdout | /dev/fd/1) cat "$scratch"/*."$kind" ;; # opened anew, a file would lose what stands there
      /dev/stderr | /dev/fd/2) cat "$scratch"/*."$kind" >&2 ;;
      *) cat "$scratch"/*."$kind" >"${!kind}" ;;
    esac
  done
}
