#!/usr/bin/env bash
# Packages the crates as they would be published, and builds and runs these programs against the packages: what a user of
# the crates gets, outside of this workspace.
set -euo pipefail
cd "$(dirname "$0")/../.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
# All that are published; names have no blanks.
crates=($(grep -L '^publish = false' crates/*/Cargo.toml | cut -d/ -f2))

rm -rf "$CARGO_TARGET_DIR/package"
log=$(mktemp)
trap 'rm "$log"' EXIT
# Offline, since Cargo would ask the registry anew for each of them. Its warnings are about pages that are not published yet.
cargo fetch --locked
cargo package --no-verify --allow-dirty --locked --offline "${crates[@]/#/--package=}" >"$log" 2>&1 || { cat "$log"; exit 1; }
place=$CARGO_TARGET_DIR/examples
rm -rf "$place"
mkdir -p "$place"
cp -r docs/examples/Cargo.toml docs/examples/src docs/examples/own-rule "$place"
# The features and the profile that the workspace is built with, so that what others wrote is not built once more.
{
  sed -n '/^# Not used/,/^$/{/^[a-z]/p;}' Cargo.toml
  echo 'once_cell = "1"'
  echo 'quote = "1"'
} >"$place/features.toml"
sed -i.own -e "/^\[dependencies\]/r $place/features.toml" -e '/^# A first build/,$d' "$place/Cargo.toml"
sed -n '/^\[profile.release\]/,/^\[profile.bench\]/{/^\[profile.bench/!p;}' Cargo.toml >>"$place/Cargo.toml"
# The versions that the workspace is tested with.
cp Cargo.lock "$place"
{
  echo '[patch.crates-io]'
  for crate in "${crates[@]}"; do
    # Cargo compares times, and packages have one time for all of theirs.
    tar --extract --touch --gzip --file "$(echo "$CARGO_TARGET_DIR/package/$crate"-[0-9]*.crate)" --directory "$place"
    echo "$crate.path = \"$(basename "$(echo "$place/$crate"-[0-9]*)")\""
  done
} >"$place/patch.toml"
cat "$place/patch.toml" >>"$place/Cargo.toml"

cd "$place"
cargo build --release --bins --workspace
for program in src/bin/*.rs; do
  name=$(basename "$program" .rs)
  [ "$(wc -l <"$program")" -le 60 ] || { echo "$name: is longer than 60 lines"; exit 1; }
  "$CARGO_TARGET_DIR/release/$name" >"$name.txt"
  echo "examples: $name: $(tail -n 1 "$name.txt")"
done
[ "$(wc -l <own-rule/src/lib.rs)" -le 60 ] || { echo "own-rule: the rule is longer than 60 lines"; exit 1; }
cargo test --release --workspace --lib
"$CARGO_TARGET_DIR/release/try_rule" >try_rule.txt
echo "examples: own-rule: $(tail -n 1 try_rule.txt)"
"$CARGO_TARGET_DIR/release/fairdp_with_rule" methods | grep dp-psac
