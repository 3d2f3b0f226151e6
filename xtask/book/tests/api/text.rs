//! The text of an item as its users see it.

use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem};

use crate::tree::{is_hidden, is_public};

/// An item: attributes that users depend on, the declaration without bodies and private fields,
/// then methods and traits.
pub(crate) fn describe(item: &Item, impls: &[&ItemImpl]) -> Vec<String> {
    match item {
        Item::Struct(item) => {
            let mut lines = attributes(&item.attrs);
            let generics = tokens(&item.generics);
            lines.push(format!("struct {}{generics}{}", item.ident, tuple(&item.fields)));
            lines.extend(fields(&item.fields, true));
            lines.extend(of_type(&item.ident.to_string(), impls));
            lines
        }
        Item::Enum(item) => {
            let mut lines = attributes(&item.attrs);
            lines.push(format!("enum {}{}", item.ident, tokens(&item.generics)));
            for variant in &item.variants {
                lines.push(format!("  {}{}", variant.ident, tuple(&variant.fields)));
                lines.extend(fields(&variant.fields, false).into_iter().map(|line| format!("  {line}")));
            }
            lines.extend(of_type(&item.ident.to_string(), impls));
            lines
        }
        Item::Trait(item) => {
            let mut lines = attributes(&item.attrs);
            let above = tokens(&item.supertraits);
            let above = if above.is_empty() { above } else { format!(": {above}") };
            lines.push(format!("trait {}{}{above}", item.ident, tokens(&item.generics)));
            for part in &item.items {
                match part {
                    TraitItem::Fn(part) if !is_hidden(&part.attrs) => {
                        let default = if part.default.is_some() { " { .. }" } else { "" };
                        lines.push(format!("  {}{default}", tokens(&part.sig)));
                    }
                    TraitItem::Type(part) => lines.push(format!("  type {}", part.ident)),
                    TraitItem::Const(part) => lines.push(format!("  const {}: {}", part.ident, tokens(&part.ty))),
                    _ => {}
                }
            }
            lines
        }
        Item::Fn(item) => [attributes(&item.attrs), vec![tokens(&item.sig)]].concat(),
        Item::Const(item) => vec![format!("const {}: {}", item.ident, tokens(&item.ty))],
        Item::Static(item) => vec![format!("static {}: {}", item.ident, tokens(&item.ty))],
        Item::Type(item) => vec![format!("type {}{} = {}", item.ident, tokens(&item.generics), tokens(&item.ty))],
        _ => Vec::new(),
    }
}

/// Features, `non_exhaustive`, and derived traits.
fn attributes(attributes: &[Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let text = tokens(attribute);
        if text.starts_with("#[derive") {
            let list = text.trim_start_matches("#[derive(").trim_end_matches(")]");
            let mut names: Vec<&str> = list.split(", ").collect();
            names.sort_unstable();
            lines.push(format!("#[derive({})]", names.join(", ")));
        } else if ["#[non_exhaustive", "#[must_use", "#[cfg(feature", "#[deprecated"]
            .iter()
            .any(|one| text.starts_with(one))
        {
            lines.push(text);
        }
    }
    lines
}

fn tuple(fields: &Fields) -> String {
    let Fields::Unnamed(fields) = fields else { return String::new() };
    let of = |field: &syn::Field| if is_public(&field.vis) { format!("pub {}", tokens(&field.ty)) } else { "_".into() };
    let is_variant = fields.unnamed.iter().all(|field| matches!(field.vis, syn::Visibility::Inherited));
    let types = fields.unnamed.iter().map(|field| if is_variant { tokens(&field.ty) } else { of(field) });
    format!("({})", types.collect::<Vec<_>>().join(", "))
}

fn fields(fields: &Fields, public_alone: bool) -> Vec<String> {
    let Fields::Named(fields) = fields else { return Vec::new() };
    let is_shown = |field: &&syn::Field| !public_alone || is_public(&field.vis);
    let line = |field: &syn::Field| field.ident.as_ref().map(|name| format!("  {name}: {}", tokens(&field.ty)));
    fields.named.iter().filter(is_shown).filter_map(line).collect()
}

/// Public methods, and traits with an `impl`.
fn of_type(name: &str, impls: &[&ItemImpl]) -> Vec<String> {
    let (mut methods, mut traits) = (Vec::new(), Vec::new());
    for item in impls.iter().filter(|item| is_of(&item.self_ty, name)) {
        if let Some(path) = trait_of(item) {
            traits.push(format!("  impl {path}"));
            continue;
        }
        for part in &item.items {
            match part {
                ImplItem::Fn(part) if is_public(&part.vis) && !is_hidden(&part.attrs) => {
                    methods.push(format!("  {}", tokens(&part.sig)));
                }
                ImplItem::Const(part) if is_public(&part.vis) => {
                    methods.push(format!("  const {}: {}", part.ident, tokens(&part.ty)));
                }
                _ => {}
            }
        }
    }
    methods.sort();
    traits.sort();
    [methods, traits].concat()
}

fn trait_of(item: &ItemImpl) -> Option<String> {
    let mut item = (*item).clone();
    item.attrs.clear();
    item.items.clear();
    let text = tokens(&item);
    let header = text.split(" {").next()?;
    header.contains(" for ").then(|| {
        let (before, _) = header.split_once(" for ").unwrap_or((header, ""));
        before.trim_start_matches("impl").trim().to_owned()
    })
}

fn is_of(ty: &syn::Type, name: &str) -> bool {
    matches!(ty, syn::Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

/// The tokens of something, with spaces where people write them.
fn tokens(of: &impl ToTokens) -> String {
    let spaced = of.to_token_stream().to_string();
    let mut text = String::new();
    for token in spaced.split_whitespace() {
        let opens = |c: char| matches!(c, '(' | '[' | '<' | '&' | '#' | '!');
        let glued_before = token.starts_with([',', ';', ')', ']', '?', ':', '.'])
            || (token.starts_with('>') && !token.starts_with(">="))
            || token.starts_with('<')
            || (token.starts_with('(')
                && text.ends_with(|c: char| c.is_alphanumeric() || c == '>' || c == '_')
                && !text.ends_with("->"))
            || (token.starts_with('[') && text.ends_with('#'));
        let glued_after =
            (text.ends_with(opens) && !text.ends_with("->")) || text.ends_with("::") || text.ends_with('\'');
        let is_path = token.starts_with("::") || text.ends_with("::");
        if !(text.is_empty() || glued_after || is_path || (glued_before && !(token == ">" && text.ends_with("->")))) {
            text.push(' ');
        }
        text.push_str(token);
    }
    text.replace(",)", ")")
}
