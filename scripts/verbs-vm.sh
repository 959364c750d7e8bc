#!/usr/bin/env bash
# Runs one shell command in a throw-away machine with two connected soft-RoCE devices, rxe0 and rxe1: real verbs devices
# although the host's kernel has none. The machine is emulated (QEMU without KVM, ~15 s to boot); its root file system
# is the host's own.
# usage: scripts/verbs-vm.sh 'COMMAND'     in the current folder, as root, with TMPDIR=/run (sockets work there)
# exit status: the command's; 77: no such machine is possible here (prints why); 124: too slow; 125: it never ran
#   VERBS_VM_SECONDS (300)   for boot and command         VERBS_VM_CPUS (2), VERBS_VM_MEMORY (3072, MiB)
#   VERBS_VM_CACHE           where the kernel is kept     (~/.cache/halocline/verbs-vm)
set -euo pipefail
export LC_ALL=C # what apt-cache prints is read
[[ ${1:-} != --help && ${1:-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
command=${1:?usage: scripts/verbs-vm.sh \'COMMAND\'}
seconds=${VERBS_VM_SECONDS:-300}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || { echo "verbs-vm: VERBS_VM_SECONDS '$seconds': expected whole seconds" >&2; exit 2; }
cache=${VERBS_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/halocline/verbs-vm}
cache=$(realpath -m -- "$cache") # the machine looks for its files from its own root
modules=(virtio_pci 9pnet_virtio 9p crc32_generic crc32_pclmul ib_uverbs rdma_ucm rdma_rxe veth bridge sch_netem)
PATH=$PATH:/usr/sbin:/sbin

skip() { echo "verbs-vm: skipped: $*" >&2; exit 77; }
for tool in qemu-system-x86_64:qemu-system-x86 busybox:busybox-static depmod:kmod modprobe:kmod cpio:cpio rdma:iproute2; do
  command -v "${tool%:*}" >/dev/null || skip "no ${tool%:*} (package ${tool#*:}; scripts/install-dependencies.sh)"
done
mkdir -p "$cache" 2>/dev/null && [[ -w $cache ]] || skip "can't write to $cache (set VERBS_VM_CACHE)"

# Debian's generic kernel, taken from its package without installing it. The modules are cached with it.
kernel_of() { apt-cache depends "$1" 2>/dev/null | awk '/Depends:/ && !n++ {print $2}' || true; } # nothing: unknown
make_boot_files() {
  local package=linux-image-amd64 depends work
  depends=$(kernel_of "$package")
  if [[ ! $depends && $(id -u) -eq 0 ]]; then
    apt-get update -qq || true
    depends=$(kernel_of "$package")
  fi
  [[ $depends ]] || skip "apt knows no $package (apt-get update)"
  work=$(mktemp -d "$cache/kernel.XXXXXX")
  trap 'rm -rf "$cache"/kernel.*' EXIT
  (cd "$work" && apt-get download -qq "$depends" 2>download.log) ||
    skip "apt-get download $depends: $(tail -1 "$work/download.log")"
  dpkg-deb --fsys-tarfile "$work"/*.deb | tar -x -C "$work" ./boot ./lib/modules
  local version=("$work"/lib/modules/*) initrd=$work/initrd
  version=${version[0]##*/}
  depmod -b "$work" "$version"
  mkdir -p "$initrd"/{bin,modules,proc,sys,dev,root}
  cp "$(command -v busybox)" "$initrd/bin/busybox"
  for module in "${modules[@]}"; do
    modprobe -d "$work" -S "$version" --show-depends "$module"
  done | awk '$1 == "insmod" && !seen[$2]++ {print $2}' | while read -r file; do
    cp "$file" "$initrd/modules/"
    basename "$file" >>"$initrd/modules/in-order"
  done
  guest_init >"$initrd/init"
  chmod +x "$initrd/init"
  (cd "$initrd" && find . | cpio -o -H newc --quiet | gzip -1) >"$work/initrd.gz"
  mv "$work/initrd.gz" "$cache/initrd.gz"
  mv "$work/boot/vmlinuz-$version" "$cache/vmlinuz"
  rm -rf "$work"
}

# The guest's first process: loads modules, mounts the host's files, runs the command, powers off.
guest_init() {
  cat <<'INIT'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc none /proc
$b mount -t sysfs none /sys
$b mount -t devtmpfs none /dev
for module in $($b cat /modules/in-order); do $b insmod "/modules/$module"; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose host /root || echo "verbs-vm: no host files"
$b mount -t proc none /root/proc
$b mount -t sysfs none /root/sys
$b mount -t devtmpfs none /root/dev
$b mkdir -p /root/dev/shm /root/dev/pts
$b mount -t tmpfs none /root/dev/shm
$b mount -t tmpfs none /root/run
$b chroot /root /bin/bash "$($b sed 's/.*guest=\([^ ]*\).*/\1/; s/%20/ /g; s/%25/%/g' /proc/cmdline)/guest.sh"
$b poweroff -f
INIT
}

# One process at a time makes the files; if this script has changed, they are made again.
exec 9>"$cache/lock"
flock 9
stamp=$(cksum <"${BASH_SOURCE[0]}")
if [[ ! -e $cache/vmlinuz || $(cat "$cache/stamp" 2>/dev/null) != "$stamp" ]]; then
  make_boot_files
  echo "$stamp" >"$cache/stamp"
fi
flock -u 9

run=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
trap 'exit 130' INT # after the machine, which Ctrl-C ends
printf '%s\n' "$command" >"$run/command.sh"
here=$(printf %q "$PWD") files=$(printf %q "$run")
cat >"$run/guest.sh" <<GUEST
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TMPDIR=/run
hostname verbs-vm
ip link set lo up
# Two devices joined by a cable: a bridge between cable0 and cable1. While these are down, veth0 and veth1 are up but
# have no carrier. This kernel's soft-RoCE supports only one network namespace, so packets between the devices must be
# kept from being delivered locally: local addresses are looked up last, except on arrival.
ip link add cable type bridge
ip link set cable up
for n in 0 1; do
  ip link add veth\$n type veth peer name cable\$n
  ip link set cable\$n master cable
  ip link set cable\$n up
  ip addr add 10.9.0.\$((n + 1))/24 dev veth\$n
  echo 1 >/proc/sys/net/ipv4/conf/veth\$n/accept_local
  ip link set veth\$n up
done
ip rule add pref 10 iif veth0 lookup local
ip rule add pref 11 iif veth1 lookup local
for n in 0 1; do
  ip neigh replace 10.9.0.\$((2 - n)) lladdr "\$(cat /sys/class/net/veth\$((1 - n))/address)" dev veth\$n nud permanent
  ip route add 10.9.0.\$((2 - n)) dev veth\$n table \$((100 + n))
  ip rule add pref \$((20 + n)) from 10.9.0.\$((n + 1)) to 10.9.0.\$((2 - n)) lookup \$((100 + n))
  rdma link add rxe\$n type rxe netdev veth\$n
done
ip rule add pref 100 lookup local
ip rule del pref 0
ulimit -l unlimited
cd $here
timeout --kill-after=5 $((seconds > 60 ? seconds - 30 : seconds)) bash $files/command.sh >$files/output 2>&1
echo \$? >$files/status
sync
GUEST
# The machine ends with this script, even if the script is killed; in the foreground, Ctrl-C reaches it. Words of a
# kernel's command line end at a space.
guest=${run//%/%25}
setpriv --pdeathsig TERM timeout --foreground --kill-after=5 "$seconds" \
  qemu-system-x86_64 -M q35 -accel tcg,thread=multi -cpu max -smp "${VERBS_VM_CPUS:-2}" \
  -m "${VERBS_VM_MEMORY:-3072}" -kernel "$cache/vmlinuz" -initrd "$cache/initrd.gz" \
  -append "console=ttyS0 quiet panic=-1 guest=${guest// /%20}" -nographic -no-reboot -nic none \
  -virtfs local,path=/,mount_tag=host,security_model=none,multidevs=remap </dev/null >"$run/console" 2>&1 || true
[[ -e $run/output ]] && cat "$run/output"
[[ -s $run/status ]] && exit "$(cat "$run/status")"
cat "$run/console" >&2
[[ -e $run/output ]] && { echo "verbs-vm: stopped after $seconds s" >&2; exit 124; }
echo "verbs-vm: the command never ran" >&2
exit 125
