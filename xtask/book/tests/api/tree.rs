//! The modules of a crate, and what their names lead to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use quote::ToTokens as _;
use syn::{Attribute, Item, UseTree, Visibility};

use crate::Failure;

/// A module: its items, and the modules in it.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) items: Vec<Item>,
    pub(crate) modules: BTreeMap<String, Module>,
}

/// One name that a `use` brings in.
pub(crate) struct Import {
    /// The path, with the item's own name at its end; `*` for a glob.
    pub(crate) path: Vec<String>,
    /// The name that it has here.
    pub(crate) name: String,
}

impl Module {
    /// Reads a file, and the files of its modules under a folder.
    pub(crate) fn read(file: &Path, folder: &Path) -> Result<Self, Failure> {
        let parsed =
            syn::parse_file(&fs::read_to_string(file)?).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::of(parsed.items, folder)
    }

    fn of(items: Vec<Item>, folder: &Path) -> Result<Self, Failure> {
        let mut module = Self::default();
        for mut item in items {
            if let Item::Mod(inner) = &mut item {
                if is_for_tests(&inner.attrs) {
                    continue;
                }
                let (name, content) = (inner.ident.to_string(), inner.content.take());
                let folder = folder.join(&name);
                let read = if let Some((_, items)) = content {
                    Self::of(items, &folder)?
                } else {
                    let beside = folder.with_extension("rs");
                    Self::read(&if beside.exists() { beside } else { folder.join("mod.rs") }, &folder)?
                };
                module.modules.insert(name, read);
            }
            module.items.push(item);
        }
        Ok(module)
    }

    /// The module at a path from this one.
    pub(crate) fn at(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |module, name| module.modules.get(name))
    }

    /// The item with this name.
    pub(crate) fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| name_of(item).as_deref() == Some(name))
    }

    /// The names that its `use` items bring in, public ones alone or all.
    pub(crate) fn imports(&self, public_alone: bool) -> Vec<Import> {
        let mut imports = Vec::new();
        for item in &self.items {
            if let Item::Use(item) = item
                && (!public_alone || is_public(&item.vis))
                && !is_hidden(&item.attrs)
            {
                flatten(&item.tree, &mut Vec::new(), &mut imports);
            }
        }
        imports
    }

    /// All items of this module and those in it.
    pub(crate) fn all_items<'a>(&'a self, found: &mut Vec<&'a Item>) {
        found.extend(&self.items);
        for module in self.modules.values() {
            module.all_items(found);
        }
    }
}

/// The item that a path in the module at `from` names, through any number of `use` items; `None` if
/// it is of another crate.
pub(crate) fn resolve<'a>(root: &'a Module, from: &[String], path: &[String]) -> Option<(Vec<String>, &'a Item)> {
    let (mut place, rest) = match path[0].as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (from.to_vec(), &path[1..]),
        "super" => (from[..from.len().saturating_sub(1)].to_vec(), &path[1..]),
        first if root.at(from)?.modules.contains_key(first) => (from.to_vec(), path),
        _ => return None,
    };
    let (name, modules) = rest.split_last()?;
    place.extend(modules.iter().cloned());
    find(root, &place, name)
}

/// The item with this name in the module at a path, declared there or brought in.
fn find<'a>(root: &'a Module, place: &[String], name: &str) -> Option<(Vec<String>, &'a Item)> {
    let module = root.at(place)?;
    if let Some(item) = module.item(name) {
        return Some((place.to_vec(), item));
    }
    let import = module.imports(false).into_iter().find(|import| import.name == name)?;
    resolve(root, place, &import.path)
}

fn flatten(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Import>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            flatten(&inner.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, found)),
        _ => {
            let (last, name) = match tree {
                UseTree::Name(name) => (name.ident.to_string(), name.ident.to_string()),
                UseTree::Rename(rename) => (rename.ident.to_string(), rename.rename.to_string()),
                _ => ("*".to_owned(), "*".to_owned()),
            };
            let full: Vec<String> = path.iter().cloned().chain([last]).collect();
            found.push(Import { path: full, name });
        }
    }
}

/// The name that an item declares.
pub(crate) fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Struct(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Const(item) => item.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Mod(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// Who may use an item, and its attributes.
pub(crate) fn visibility(item: &Item) -> Option<(&Visibility, &[Attribute])> {
    Some(match item {
        Item::Struct(item) => (&item.vis, &item.attrs),
        Item::Enum(item) => (&item.vis, &item.attrs),
        Item::Trait(item) => (&item.vis, &item.attrs),
        Item::Fn(item) => (&item.vis, &item.attrs),
        Item::Const(item) => (&item.vis, &item.attrs),
        Item::Static(item) => (&item.vis, &item.attrs),
        Item::Type(item) => (&item.vis, &item.attrs),
        Item::Mod(item) => (&item.vis, &item.attrs),
        _ => return None,
    })
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Whether an item is not shown in the documentation.
pub(crate) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.to_token_stream().to_string().contains("doc (hidden)"))
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is = |attribute: &Attribute| {
        let text = attribute.to_token_stream().to_string();
        text.contains("cfg (test)") || text.contains("cfg (doctest)")
    };
    attributes.iter().any(is)
}
