//! A copy of the store in one file, whole and consistent, while others read and write it. What stands under
//! the copy's name is either all of it or nothing; must never replace a file that is there.

use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::intake::Watch;
use super::{APPLICATION_ID, Store, beside, is_missing, private, remove_if_there};
use crate::error::{Error, Result};
use crate::failpoint;

/// Pages between two looks at whether someone wants to stop.
const STEP: std::ffi::c_int = 1024;

/// A copy that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Copied {
    /// Where it stands.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The version of the store in it.
    pub version: i64,
}

/// Copies a store of any version to a file that must not exist.
///
/// `unique` tells this copy's temporary file from that of any other; `watch` is told how many pages are done.
pub fn backup(state: &Path, target: &Path, unique: &str, watch: Watch<'_>) -> Result<Copied> {
    if is_missing(state)? {
        return Err(Error::NotFound("there is no store yet, so there is nothing to copy".to_owned()));
    }
    let open = || -> Result<Store> {
        let store = Store::connect_to_read(state)?;
        let found = store.version()?;
        let application: i64 = store.conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if application != APPLICATION_ID {
            return Err(Error::StoreVersion { path: state.to_owned(), found, known: super::known() });
        }
        Ok(store)
    };
    let store = open().map_err(|error| error.at(state))?;
    let bytes = copy(&store, target, unique, watch)?;
    Ok(Copied { file: target.to_owned(), bytes, version: store.version().map_err(|error| error.at(state))? })
}

/// Copies what an open store sees to a file that must not exist; gives its size.
pub(super) fn copy(store: &Store, target: &Path, unique: &str, watch: Watch<'_>) -> Result<u64> {
    if fs_err::symlink_metadata(target).is_ok() {
        return Err(Error::Taken { path: target.to_owned() });
    }
    let temporary = beside(target, &format!(".{unique}.tmp"));
    private(fs_err::OpenOptions::new().write(true).create_new(true)).open(&temporary)?;
    let made = fill(store, &temporary, watch).and_then(|bytes| {
        store.undisturbed()?;
        place(&temporary, target)?;
        Ok(bytes)
    });
    if made.is_err() {
        // What failed matters, not that its remains stay.
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let _ = remove_if_there(&beside(&temporary, suffix));
        }
    }
    made
}

/// Writes the copy, sees that SQLite finds nothing wrong with it, and syncs it.
fn fill(store: &Store, temporary: &Path, watch: Watch<'_>) -> Result<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut fill = || -> Result<()> {
        let mut conn = Connection::open_with_flags(temporary, flags)?;
        // Until it has its name it is worth nothing, and then it is synced as a whole.
        conn.pragma_update(None, "synchronous", "OFF")?;
        pages(store, &mut conn, watch)?;
        // One file that can be read anywhere, also where nothing can be written beside it.
        conn.pragma_update(None, "journal_mode", "DELETE")?;
        let said: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if said != "ok" {
            return Err(Error::Damaged { path: store.path.clone(), said });
        }
        conn.close().map_err(|(_, error)| error)?;
        Ok(())
    };
    fill().map_err(|error| error.at(temporary))?;
    failpoint::hit("backup.copied");
    let file = fs_err::File::open(temporary)?;
    file.sync_all()?;
    failpoint::hit("backup.synced");
    Ok(file.metadata()?.len())
}

/// Copies all pages of one snapshot: what is committed meanwhile is not in it, and does not begin it anew.
fn pages(store: &Store, into: &mut Connection, watch: Watch<'_>) -> Result<()> {
    let named = |error: rusqlite::Error| Error::from(error).at(&store.path);
    let snapshot = store.conn.unchecked_transaction().map_err(named)?;
    snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(named)?;
    let copying = Backup::new(&store.conn, into)?;
    loop {
        let step = copying.step(STEP)?;
        let progress = copying.progress();
        let count = |pages: std::ffi::c_int| u64::try_from(pages).unwrap_or_default();
        watch(count(progress.pagecount - progress.remaining), count(progress.pagecount))?;
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // No one else knows the copy, and a reader of the source waits for no one.
            _ => return Err(Error::Invalid("the copy is used by someone else".to_owned())),
        }
    }
}

/// Gives the copy its name, durably, unless a file has that name by now.
fn place(temporary: &Path, target: &Path) -> Result<()> {
    let folder = target.parent().unwrap_or(Path::new(""));
    match fs_err::hard_link(temporary, target) {
        Ok(()) => {
            failpoint::hit("backup.named");
            remove_if_there(temporary)?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Error::Taken { path: target.to_owned() });
        }
        // A file system without links; between this look and the renaming is the only gap.
        Err(_) if fs_err::symlink_metadata(target).is_err() => fs_err::rename(temporary, target)?,
        Err(error) => return Err(error.into()),
    }
    crate::export::sync_folder(folder)
}
