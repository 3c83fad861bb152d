//! Finds out what the files of a crate import from each other.
//!
//! A file imports another file if it names something that the other file defines. If a module only re-exports a
//! name (`pub use`), an import of the name counts as an import of the file that defines it. So the module of a
//! folder may gather the names of the folder's files in one place. Tests are not examined.

use super::Finding;
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// The names of the modules from the crate's root down to a module, or to an item in a module.
pub type Names = Vec<String>;

/// For each file, the files that it imports, and for each of these the imported names. A file is given by its module.
pub type Imports<'c> = BTreeMap<&'c Names, BTreeMap<&'c Names, BTreeSet<&'c str>>>;

/// The names that the files of a crate define and use.
#[derive(Default)]
pub struct Crate {
    /// For each module, the path of its file.
    pub files: BTreeMap<Names, String>,
    /// The names that a module imports, with the items that they stand for.
    imported: BTreeMap<(Names, String), Names>,
    /// Pairs of a module and a name that this module uses.
    named: Vec<(Names, Names)>,
    /// The modules that are compiled only for tests.
    tests: BTreeSet<Names>,
    /// The number of names in the root that other crates can import.
    public_at_root: usize,
}

impl Crate {
    /// Reads the files in `src`, which ends with `/`, and in all folders below it. If a file cannot be parsed, the
    /// error names it.
    pub fn read(tree: &Tree, src: &str) -> Result<Self, Finding> {
        let mut crate_ = Self::default();
        for (path, text) in tree.texts(".rs").filter(|(path, _)| path.starts_with(src) && !path.contains("/tests")) {
            let names = module_of(&path[src.len()..]);
            let file = syn::parse_file(text)
                .map_err(|error| Finding::new(path, 1, format!("it cannot be parsed: {error}")))?;
            crate_.add(path, names, &file);
        }
        Ok(crate_)
    }

    fn add(&mut self, path: &str, module: Names, file: &syn::File) {
        self.files.insert(module.clone(), path.to_owned());
        Reader { crate_: self, module }.visit_file(file);
    }

    /// The number of names that other crates can import from the root. The root defines or re-exports these names.
    /// Public modules also count as names.
    pub fn public_at_root(&self) -> usize {
        self.public_at_root
    }

    /// Returns the module of the file that defines what `names` stands for.
    fn file_of(&self, mut names: Names) -> Option<&Names> {
        // One module may re-export a name from a second one, which re-exports it from a third one.
        for _ in 0..16 {
            let at = (0..=names.len()).rev().find(|&length| self.files.contains_key(&names[..length]))?;
            let further = names.get(at).and_then(|name| self.imported.get(&(names[..at].to_vec(), name.clone())));
            match further {
                Some(from) => names = from.iter().chain(&names[at + 1..]).cloned().collect(),
                None => return self.files.get_key_value(&names[..at]).map(|(module, _)| module),
            }
        }
        None
    }

    /// What the files import from each other.
    pub fn imports(&self) -> Imports<'_> {
        let mut imports = Imports::new();
        let is_for_tests = |module: &Names| (0..=module.len()).any(|length| self.tests.contains(&module[..length]));
        for (module, names) in self.named.iter().filter(|(module, _)| !is_for_tests(module)) {
            if let (Some(from), Some(to)) = (self.file_of(module.clone()), self.file_of(names.clone()))
                && from != to
            {
                let name = names.last().map_or("", |name| name.as_str());
                imports.entry(from).or_default().entry(to).or_default().insert(name);
            }
        }
        imports
    }
}

/// Reads the items of one module into the crate.
struct Reader<'c> {
    crate_: &'c mut Crate,
    module: Names,
}

impl Reader<'_> {
    /// Turns a path in the source into a path from the crate's root. Returns `None` if the path leads out of the
    /// crate.
    fn rooted(&self, path: &[String]) -> Option<Names> {
        let (first, rest) = path.split_first()?;
        let mut names = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => {
                let outer = Reader { crate_: &mut Crate::default(), module: self.module.split_last()?.1.to_vec() };
                // Each further `super` in a path goes up one more module.
                let rest: Names = std::iter::once("self".to_owned()).chain(rest.iter().cloned()).collect();
                return match rest.get(1).map(String::as_str) {
                    Some("super") => outer.rooted(&rest[1..]),
                    _ => outer.rooted(&rest),
                };
            }
            // In all other cases, the first name is a module that is declared in this module, or a name that this
            // module imports.
            _ => self.module.iter().chain([first]).cloned().collect(),
        };
        names.extend(rest.iter().cloned());
        Some(names)
    }

    /// Notes the names of a `use`. `before` is the path in front of `tree`.
    fn take_use(&mut self, tree: &syn::UseTree, before: &mut Names, is_public: bool) {
        if is_public && self.module.is_empty() && matches!(tree, syn::UseTree::Name(_) | syn::UseTree::Rename(_)) {
            self.crate_.public_at_root += 1;
        }
        let (name, bound) = match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.take_use(&path.tree, before, is_public);
                before.pop();
                return;
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.take_use(item, before, is_public));
                return;
            }
            syn::UseTree::Glob(_) => (None, None),
            syn::UseTree::Name(name) => (Some(name.ident.to_string()), Some(name.ident.to_string())),
            syn::UseTree::Rename(rename) => (Some(rename.ident.to_string()), Some(rename.rename.to_string())),
        };
        let mut path = before.clone();
        let is_module_itself = name.as_deref() == Some("self");
        path.extend(name.filter(|_| !is_module_itself));
        let Some(names) = self.rooted(&path) else { return };
        let bound = if is_module_itself { before.last().cloned() } else { bound };
        match bound {
            Some(bound) if self.rooted(std::slice::from_ref(&bound)).as_ref() != Some(&names) => {
                self.crate_.imported.insert((self.module.clone(), bound.clone()), names.clone());
                // Two kinds of `use` do not count as a use of the name in this module: a re-export, and the import
                // of a module.
                if !is_public && !self.crate_.files.contains_key(&names) && bound.starts_with(char::is_uppercase) {
                    self.crate_.named.push((self.module.clone(), names));
                }
            }
            Some(_) => {}
            None => self.crate_.named.push((self.module.clone(), names)),
        }
    }
}

/// Whether other crates can see this item. A `use` is not counted here.
fn is_public_item(item: &syn::Item) -> bool {
    let visibility = match item {
        syn::Item::Mod(item) => &item.vis,
        syn::Item::Fn(item) => &item.vis,
        syn::Item::Struct(item) => &item.vis,
        syn::Item::Enum(item) => &item.vis,
        syn::Item::Trait(item) => &item.vis,
        syn::Item::Type(item) => &item.vis,
        syn::Item::Const(item) => &item.vis,
        _ => return false,
    };
    matches!(visibility, syn::Visibility::Public(_))
}

/// Whether an item is compiled only for tests or documentation.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        ["test", "doc", "all (test"].iter().any(|start| condition.starts_with(start))
    })
}

impl<'f> Visit<'f> for Reader<'_> {
    fn visit_item(&mut self, item: &'f syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_for_tests(attributes) {
            if let syn::Item::Mod(item) = item {
                let names = self.module.iter().cloned().chain([item.ident.to_string()]).collect();
                self.crate_.tests.insert(names);
            }
            return;
        }
        if self.module.is_empty() && is_public_item(item) {
            self.crate_.public_at_root += 1;
        }
        match item {
            syn::Item::Use(item) => {
                let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                self.take_use(&item.tree, &mut Vec::new(), is_public);
            }
            syn::Item::Mod(item) => {
                self.module.push(item.ident.to_string());
                visit::visit_item_mod(self, item);
                self.module.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'f syn::Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(names) = self.rooted(&names) {
            self.crate_.named.push((self.module.clone(), names));
        }
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, _: &'f syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'f syn::Visibility) {}
}

/// For example, `view/point.rs` is the module `view::point`, and `lib.rs` is the root.
fn module_of(path: &str) -> Names {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" || path == "main" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}
