//! The public interface of every published crate, item by item with the path that leads to it. A
//! change of an interface shows as a change of a file in `snapshots`.
//!
//! A small reader of sources, not a compiler: it follows modules, `pub use` and `impl` blocks, and
//! reads no macros. Interfaces that macros make are shown as far as they stand in the sources.

mod text;
mod tree;

use std::fs;
use std::path::Path;

use syn::{Item, ItemImpl};
use tree::{Module, is_hidden, is_public, name_of, resolve, visibility};

type Failure = Box<dyn std::error::Error>;

/// The lines of a crate's interface.
struct Interface<'a> {
    root: &'a Module,
    impls: Vec<&'a ItemImpl>,
    entries: Vec<String>,
}

impl Interface<'_> {
    /// Lists the public items of the module at a path, which users reach by `shown`.
    fn list(&mut self, place: &[String], shown: &str) {
        let Some(module) = self.root.at(place) else { return };
        for item in &module.items {
            let is_shown = visibility(item).is_some_and(|(who, attributes)| is_public(who) && !is_hidden(attributes));
            if is_shown && let Some(name) = name_of(item) {
                self.enter(place, item, &format!("{shown}::{name}"));
            }
        }
        for import in module.imports(true) {
            let path = format!("{shown}::{}", import.name);
            if import.name == "*" {
                self.entries.push(format!("{shown}: pub use {}", import.path.join("::")));
            } else if let Some((place, item)) = resolve(self.root, place, &import.path) {
                self.enter(&place, item, &path);
            } else {
                self.entries.push(format!("{path}: pub use {}", import.path.join("::")));
            }
        }
    }

    /// An item that users reach by `path`; a module with all that is in it.
    fn enter(&mut self, place: &[String], item: &Item, path: &str) {
        if let (Item::Mod(_), Some(name)) = (item, name_of(item)) {
            let inner: Vec<String> = place.iter().cloned().chain([name]).collect();
            self.list(&inner, path);
            return;
        }
        let lines = text::describe(item, &self.impls).into_iter().map(|line| format!("  {line}"));
        self.entries.push(std::iter::once(path.to_owned()).chain(lines).collect::<Vec<_>>().join("\n"));
    }
}

/// The interface of the crate in a folder.
fn interface(folder: &Path) -> Result<String, Failure> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('-', "_");
    let source = folder.join("src");
    let root = Module::read(&source.join("lib.rs"), &source)?;
    let mut items = Vec::new();
    root.all_items(&mut items);
    let impls =
        items.into_iter().filter_map(|item| if let Item::Impl(item) = item { Some(item) } else { None }).collect();
    let mut interface = Interface { root: &root, impls, entries: Vec::new() };
    interface.list(&[], &name);
    interface.entries.sort();
    Ok(interface.entries.join("\n"))
}

#[test]
fn public_interfaces_change_on_purpose_alone() -> Result<(), Failure> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_description(
        "The public interface changed. If that was the purpose: INSTA_UPDATE=always cargo test --release -p book --test api",
    );
    let _guard = settings.bind_to_scope();
    let mut n_listed = 0;
    for entry in fs::read_dir(crates)? {
        let folder = entry?.path();
        if fs::read_to_string(folder.join("Cargo.toml"))?.contains("publish = false") {
            continue;
        }
        let listed = interface(&folder)?;
        n_listed += listed.lines().filter(|line| !line.starts_with(' ')).count();
        insta::assert_snapshot!(folder.file_name().unwrap_or_default().to_string_lossy().into_owned(), listed);
    }
    assert!(n_listed > 300, "only {n_listed} public items were found");
    Ok(())
}
