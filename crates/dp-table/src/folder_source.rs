//! A folder of images as a table: a row for each image, and a subfolder for each label. Images that are
//! in no subfolder have no label.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::TableError;
use crate::image_text::is_image;
use crate::reader::TableRow;

/// Its images by subfolder and name, in this order.
pub(crate) struct FolderSource {
    /// With a parent, to which the paths in rows are relative.
    path: Arc<Path>,
    columns: Vec<String>,
    /// Label and path of each image.
    images: Vec<[String; 2]>,
    next: usize,
    numbers: Arc<[bool]>,
}

impl FolderSource {
    /// # Errors
    /// [`TableError::Io`]; [`TableError::File`] for anything but images and subfolders of them. Hidden files
    /// are passed over.
    pub(crate) fn open(path: &Path) -> Result<Self, TableError> {
        let path = std::path::absolute(path).map_err(TableError::io("read", path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut images = Vec::new();
        for folder in entries(&path)? {
            let refuse = |reason: &str| TableError::File { path: folder.clone(), reason: reason.into() };
            let label = text(&folder)?;
            if is_image(&label) && !folder.is_dir() {
                images.push([String::new(), format!("{name}/{label}")]);
                continue;
            }
            if !folder.is_dir() {
                return Err(refuse(
                    "is neither an image by its ending, .png, .jpg or .jpeg, nor a folder of such images",
                ));
            }
            for image in entries(&folder)? {
                let file = text(&image)?;
                if !is_image(&file) || image.is_dir() {
                    let reason = "is no image by its ending, .png, .jpg or .jpeg, in a folder of images".into();
                    return Err(TableError::File { path: image, reason });
                }
                images.push([label.clone(), format!("{name}/{label}/{file}")]);
            }
        }
        if images.is_empty() {
            return Err(TableError::EmptyFile { path });
        }
        let columns = ["folder", "image"].map(str::to_owned).into();
        Ok(Self { path: path.into(), columns, images, next: 0, numbers: [false, false].into() })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    pub(crate) fn rows(&self) -> u64 {
        self.images.len() as u64
    }

    /// Passes over rows.
    pub(crate) fn skip(&mut self, n: usize) {
        self.next = (self.next + n).min(self.images.len());
    }

    pub(crate) fn read(&mut self, row: &mut TableRow) -> bool {
        let Some(image) = self.images.get(self.next) else { return false };
        if !Arc::ptr_eq(&row.file, &self.path) {
            row.file = Arc::clone(&self.path);
            row.numbers = Arc::clone(&self.numbers);
        }
        row.fields.clear();
        for text in image {
            row.fields.push_field(text);
        }
        self.next += 1;
        row.line = self.next;
        true
    }
}

/// What is in a folder and not hidden, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, TableError> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(TableError::io("read", folder))? {
        let entry = entry.map_err(TableError::io("read", folder))?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn text(path: &Path) -> Result<String, TableError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let reason = || TableError::File { path: path.into(), reason: "has a name that is not UTF-8 text".into() };
    name.map(str::to_owned).ok_or_else(reason)
}
