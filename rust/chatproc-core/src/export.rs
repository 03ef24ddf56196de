//! The outbox → files for other programs: each event in one file, with the same bytes for ever.
//!
//! A file's name and digest are stored before its first byte is written, so whatever a crash leaves, the
//! next run makes the same file. Must never rename a file whose bytes are not those of its rows.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rusqlite::Connection;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::failpoint;
use crate::store::outbox::{self, Assigned};

/// What an export has published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Files.
    pub files: i64,
    /// Events in them.
    pub events: i64,
}

/// Publishes every event that waits, the files that an earlier run left first.
///
/// `progress` is told what is done after each file. An I/O error leaves the rest waiting.
pub fn export(conn: &mut Connection, folder: &Path, mut progress: impl FnMut(Exported)) -> Result<Exported> {
    let mut done = Exported::default();
    let mut bytes = Vec::new();
    let mut written = None;
    let mut beside: Option<Vec<Published>> = None;
    while let Some(file) = outbox::next_file(conn, written.as_ref(), &mut bytes)? {
        failpoint::hit("export.assigned");
        let others = match beside.take() {
            Some(others) => others,
            None => published(folder)?,
        };
        publish(conn, folder, &file, beside.insert(others), &mut bytes)?;
        done = Exported { files: done.files + 1, events: done.events + file.events() };
        progress(done);
        written = Some(file);
    }
    Ok(done)
}

/// Makes the file stand under its name with its bytes, durably.
fn publish(
    conn: &Connection,
    folder: &Path,
    file: &Assigned,
    beside: &[Published],
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let path = folder.join(&file.file);
    let there = digest_of(&path)?;
    if there.is_some_and(|digest| digest != file.sha256) {
        return Err(strange(&path));
    }
    if there.is_none() {
        if let Some(other) = beside.iter().find(|other| other.overlaps(file)) {
            return Err(strange(&other.path));
        }
        let temporary = folder.join(format!("{}.tmp", file.file));
        file.read(conn, bytes)?;
        write(&temporary, bytes)?;
        fs::rename(&temporary, &path)?;
        failpoint::hit("export.renamed");
    }
    sync_folder(folder)?;
    failpoint::hit("export.folder-synced");
    Ok(())
}

/// No crash leaves such a file, a restored store does: what was published is never published anew.
fn strange(path: &Path) -> Error {
    let what = "holds other events than this store: was the store restored from a copy? move the file away";
    Error::Io(std::io::Error::other(format!("{}: {what}", path.display())))
}

/// A file that was in the folder before this export, named as one of ours.
struct Published {
    path: PathBuf,
    first: i64,
    last: i64,
}

impl Published {
    /// Whether it has some of the rows of a file that does not stand there.
    fn overlaps(&self, file: &Assigned) -> bool {
        self.first <= file.last && self.last >= file.first
    }
}

/// Those in the folder, which is made where it is missing.
fn published(folder: &Path) -> Result<Vec<Published>> {
    create_folder(folder)?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let Some((first, last)) = entry.file_name().to_str().and_then(outbox::rows_of) {
            found.push(Published { path: entry.path(), first, last });
        }
    }
    Ok(found)
}

/// Writes the bytes into a new file and syncs it. What a crash left under that name is removed, not
/// reused: bytes of a file whose sync once failed cannot be trusted to a second sync.
fn write(temporary: &Path, bytes: &[u8]) -> Result<()> {
    remove_if_there(temporary)?;
    let mut file = create_private(temporary)?;
    file.write_all(bytes)?;
    failpoint::hit("export.written");
    if !failpoint::without("file-sync") {
        file.sync_all()?;
    }
    failpoint::hit("export.synced");
    Ok(())
}

/// SHA-256 of the file's bytes, or nothing where there is no file.
fn digest_of(path: &Path) -> Result<Option<[u8; 32]>> {
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Some(digest.finalize().into())),
            Ok(length) => digest.update(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Creates a file that did not exist and that only its owner can read; a link under its name is no file.
fn create_private(path: &Path) -> Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    fs::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(options.open(path)?)
}

/// Creates the folder where it is missing, readable by its owner alone, and its parents likewise; each is
/// synced into its parent, else a power cut could take the files with it.
pub(crate) fn create_folder(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().map_or_else(PathBuf::new, Path::to_owned);
    create_folder(&parent)?;
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(folder)
        .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
    sync_folder(&parent)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    #[cfg(unix)]
    if !failpoint::without("folder-sync") {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}
