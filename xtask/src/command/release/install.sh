#!/bin/sh
# Installs the program fairdp @VERSION@ for this system, after its checksum was compared.
#
#   FAIRDP_FOLDER    where the program goes [default: ~/.local/bin]
#   FAIRDP_DOWNLOAD  where the archives are [default: this release's address]
set -eu
folder=${FAIRDP_FOLDER:-$HOME/.local/bin}
download=${FAIRDP_DOWNLOAD:-@REPOSITORY@/releases/download/v@VERSION@}

case $(uname -m) in
  x86_64 | amd64) processor=x86_64 ;;
  aarch64 | arm64) processor=aarch64 ;;
  *) processor=$(uname -m) ;;
esac
case $(uname -s) in
  # A program without a C library of the system's runs on every Linux; GNU's is faster where it is there.
  Linux) if ldd --version 2>&1 | grep -qiE 'glibc|gnu'; then system=unknown-linux-gnu; else system=unknown-linux-musl; fi ;;
  Darwin) system=apple-darwin ;;
  *) system=$(uname -s) ;;
esac
target=$processor-$system

checksums='
@CHECKSUMS@
'
expected=$(printf '%s' "$checksums" | sed -n "s/^$target //p")
if [ -z "$expected" ]; then
  echo "error: there is no program of version @VERSION@ for $target; expected one of:" >&2
  printf '%s' "$checksums" | sed -n 's/ .*//p' >&2
  exit 1
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
archive=fairdp-@VERSION@-$target
curl --fail --silent --show-error --location "$download/$archive.tar.gz" --output "$place/archive.tar.gz"
if command -v sha256sum >/dev/null; then
  found=$(sha256sum "$place/archive.tar.gz")
else
  found=$(shasum -a 256 "$place/archive.tar.gz")
fi
if [ "${found%% *}" != "$expected" ]; then
  echo "error: $download/$archive.tar.gz: sha256 ${found%% *}; expected $expected" >&2
  exit 1
fi
tar -xzf "$place/archive.tar.gz" -C "$place"
mkdir -p "$folder"
# A running program keeps its old file.
mv -f "$place/$archive/fairdp" "$folder/fairdp"
echo "fairdp @VERSION@ for $target is in $folder"
case :$PATH: in
  *:"$folder":*) ;;
  *) echo "add it to the search path: export PATH=\"$folder:\$PATH\"" ;;
esac
