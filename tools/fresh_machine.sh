#!/usr/bin/env bash
# Proves that a bare machine is enough: makes a minimal Debian 12 in a folder, puts a fresh clone into it, and runs
# ./dev there, by default the demo and the quick tests.
#
#   sudo tools/fresh_machine.sh [--keep] [FOLDER] [-- DEV ARGUMENTS]...
#
# FOLDER (default: a new folder below /var/tmp) is removed at the end unless --keep is given. The package sources and
# pip settings of this machine are used inside, so that local mirrors work; nothing else of it is visible there.
set -euo pipefail

say() { printf '==> %s\n' "$*"; }
die() { printf 'fresh_machine: %s\n' "$*" >&2; exit 1; }

keep=no folder=
runs=()
while (( $# > 0 )); do
  case $1 in
    --keep) keep=yes ;;
    --) shift; runs+=("$*"); break ;;
    -*) die "unknown option $1" ;;
    *) folder=$1 ;;
  esac
  shift
done
(( ${#runs[@]} > 0 )) || runs=("demo" "test --quick")
(( EUID == 0 )) || die "needs root, for chroot and mounts"
command -v debootstrap >/dev/null || die "needs debootstrap: apt-get install debootstrap"

project=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
root=${folder:-$(mktemp -d /var/tmp/fresh-machine.XXXXXX)}
mkdir -p "$root"
root=$(realpath "$root")
# Only a folder that this script has made is ever removed.
if [[ ! -e $root/.fresh-machine && -n $(ls -A "$root") ]]; then die "$root is not empty"; fi
touch "$root/.fresh-machine"

# Nothing below the folder may be removed while something is still mounted there.
clean_up() {
  local mount
  while read -r mount; do umount --lazy "$mount" || true; done \
    < <(awk -v root="$root/" 'index($2, root) == 1 { print $2 }' /proc/mounts | sort -r)
  if grep -q " $root/" /proc/mounts; then die "still mounted: $root; nothing was removed"; fi
  if [[ $keep == no ]]; then rm -rf --one-file-system "$root"; else say "kept: $root"; fi
}
trap clean_up EXIT

# The first plain archive that this machine's own apt uses for Debian 12.
mirror() {
  {
    sed -n 's/^URIs:[[:space:]]*//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | tr ' ' '\n'
    awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ "^https?:") print $i }' \
      /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null
  } | grep '/debian/*$' | head -n 1 || true
}

if [[ ! -x $root/usr/bin/apt-get ]]; then
  say "making a minimal Debian 12 in $root"
  # Without a mirror of its own, debootstrap takes Debian's.
  source_url=$(mirror)
  debootstrap --variant=minbase bookworm "$root" ${source_url:+"$source_url"} >"$root.log" 2>&1 ||
    { tail -n 20 "$root.log" >&2; die "debootstrap failed"; }
  rm -f "$root.log"
fi

say "copying this machine's package sources and pip settings"
rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d
mkdir -p "$root/etc/apt/sources.list.d" "$root/etc/apt/apt.conf.d"
shopt -s nullglob
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
  [[ -f $file ]] && cp "$file" "$root$file"
done
# Settings about where packages come from; not those that call programs of this machine.
for file in /etc/apt/apt.conf.d/*; do
  if grep -q 'Acquire::' "$file" && ! grep -qE 'Invoke|Hook' "$file"; then cp "$file" "$root$file"; fi
done
cp -r /usr/share/keyrings/. "$root/usr/share/keyrings/" 2>/dev/null || true
for file in /etc/pip.conf "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf"; do
  if [[ -f $file ]]; then cp "$file" "$root/etc/pip.conf"; fi
done
cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/hosts "$root/etc/hosts"

settings=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CI=true)
while IFS= read -r line; do settings+=("$line"); done \
  < <(env | grep -iE '^(https?_proxy|no_proxy|pip_[a-z_]+|ssl_cert_file)=' || true)
# Files that the settings name are needed inside as well, at a place that no package overwrites.
for i in "${!settings[@]}"; do
  name=${settings[i]%%=*} value=${settings[i]#*=}
  if [[ $name =~ ^(PIP_CERT|SSL_CERT_FILE|PIP_FIND_LINKS)$ && -e $value ]]; then
    mkdir -p "$root/opt/settings"
    cp -rL "$value" "$root/opt/settings/$name"
    settings[i]=$name=/opt/settings/$name
  fi
done

for name in proc sys dev; do
  mkdir -p "$root/$name"
  mount --rbind "/$name" "$root/$name"
  mount --make-rslave "$root/$name"
done

say "cloning the project"
rm -rf "$root/root/aglow"
git clone -q --no-local "$project" "$root/root/aglow"

for run in "${runs[@]}"; do
  say "./dev $run"
  start=$SECONDS
  chroot "$root" env -i "${settings[@]}" bash -c 'cd /root/aglow && ./dev '"$run" </dev/null || die "./dev $run failed"
  say "./dev $run: $(( SECONDS - start )) s on a bare machine"
done
