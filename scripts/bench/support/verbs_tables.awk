# Reads the lines of JSON that verbs_on_device.sh prints and prints tables of medians.   awk -v machine=real|emulated
function value(key,    text) { # of the line
  if (!match($0, "\"" key "\":\"?[^,}\"]*")) return ""
  text = substr($0, RSTART, RLENGTH)
  sub(/^"[^"]*":"?/, "", text)
  return text
}
function middle(list,    i, k, n, v, t) {
  n = split(list, v, " ")
  for (i = 2; i <= n; ++i) for (k = i; k > 1 && v[k] + 0 < v[k - 1] + 0; --k) { t = v[k]; v[k] = v[k - 1]; v[k - 1] = t }
  return v[int((n + 1) / 2)]
}
function cell(width, number) {
  if (number == "") printf " %*s", width, "-"
  else printf " %*.*f", width, 2, number
}
function ratio(width, above, below) {
  if (above == "" || below == "") cell(width, "")
  else cell(width, above / below)
}
function better(a, b) { return a == "" ? b : b == "" ? a : a + 0 < b + 0 ? a : b }

# Has every contender of this pattern a figure for this size while the machine had this speed?
function complete(pattern, b, speed,    c) {
  for (c = 1; c <= columns; ++c)
    if (((pattern, column[c]) in takes_part) && !((pattern, column[c], b, speed) in us)) return 0
  return 1
}
function row(pattern, b, speed,    c, ours, theirs) {
  ours = us[pattern, "ours messages", b, speed]
  printf "%8d %6s", b, speed
  for (c = 1; c <= columns; ++c) cell(10, us[pattern, column[c], b, speed])
  ratio(12, better(us[pattern, "openmpi two-sided", b, speed], us[pattern, "mpich two-sided", b, speed]), ours)
  if (pattern == "one-way") { theirs = middle(stream[b]); cell(12, theirs); ratio(12, ours, theirs) }
  print (pattern, b, speed) in noisy ? "  noisy" : ""
}
# Figures are compared while the machine has one speed: where not all contenders have a figure, there is no row.
function rows(pattern,    b, s, printed) {
  printf "\n%8s %6s %10s %10s %10s %10s %12s", "bytes", "speed", "messages", "windows", "openmpi", "mpich", "MPI / ours"
  print pattern == "one-way" ? "  ib_write_bw    ours / bw" : ""
  for (b = 8; b <= 1048576; b *= b == 4096 ? 16 : b == 65536 ? 16 : 8) {
    if (!((pattern, b) in measured)) continue
    printed = 0
    for (s = 1; s <= 2; ++s) if (complete(pattern, b, speeds[s])) { row(pattern, b, speeds[s]); ++printed }
    if (!printed) printf "%8d      -  at no speed of the machine all contenders have a figure\n", b
  }
}

BEGIN {
  columns = split("ours messages,ours window,openmpi two-sided,mpich two-sided", column, ",")
  split("fast,slow", speeds, ",")
}
{ who = value("who"); bytes = value("bytes") }
who == "halocline" { ours[bytes] = ours[bytes] " " value("us_median"); last = value("us_median") }
who == "ib_write_lat" {
  theirs[bytes] = theirs[bytes] " " value("us_median")
  ratios[bytes] = ratios[bytes] " " last / value("us_median")
}
who == "ib_write_bw" { stream[bytes] = stream[bytes] " " value("us_per_message") }
value("bench") == "p2p" {
  pattern = value("pattern"); speed = value("speed")
  measured[pattern, bytes]
  takes_part[pattern, who " " value("mode")]
  us[pattern, who " " value("mode"), bytes, speed] = value("bare_us_median")
  if (value("noisy") == "true") noisy[pattern, bytes, speed]
}
END {
  print "\nmedians on a machine that is " machine ", one way, µs"
  printf "%8s %16s %22s %8s\n", "bytes", "our channel", "ib_write_lat", "ratio"
  for (b = 8; b <= 4096; b *= 8) if (b in ours) {
    printf "%8d %16.2f %22.2f %8.2f   (%s )\n", b, middle(ours[b]), middle(theirs[b]), middle(ratios[b]), ratios[b]
  }
  if (!(("latency", 8) in measured)) exit
  print "\nmatched messages, half a round trip, µs"
  rows("latency")
  print "\nin a stream, µs each"
  rows("one-way")
}
