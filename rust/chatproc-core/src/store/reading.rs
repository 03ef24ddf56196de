//! Opening for reading, also from a disk on which nothing can be written. SQLite wants to write its index of
//! the log beside a store even to read it; where there is no log and the disk is read-only, the file is all
//! there is and is read as it stands. Whoever reads so must see afterwards that nobody wrote meanwhile.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{BUSY, beside, private, steady};
use crate::error::{Error, Result};

/// What a file was when it began to be read as it stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stand {
    length: u64,
    modified: SystemTime,
    log: bool,
}

impl Stand {
    pub(super) fn of(path: &Path) -> Result<Self> {
        // The log lies beside the file, not beside a link to it.
        let file = fs_err::canonicalize(path)?;
        let metadata = fs_err::metadata(&file)?;
        Ok(Self { length: metadata.len(), modified: metadata.modified()?, log: has_log(&file) })
    }
}

/// Connects to a file that is there; how it stands, where it is read without any lock.
pub(super) fn connect(path: &Path) -> Result<(Connection, Option<Stand>)> {
    let conn = open(path.to_owned(), OpenFlags::empty())?;
    match conn.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            let stand = Stand::of(path)?;
            if stand.log || !is_on_read_only_disk(path)? {
                return Err(error.into());
            }
            Ok((open(as_it_stands(path), OpenFlags::SQLITE_OPEN_URI)?, Some(stand)))
        }
        // What else is wrong is found by whoever reads next, who can tell it better.
        _ => Ok((conn, None)),
    }
}

fn open(name: PathBuf, more: OpenFlags) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let conn = Connection::open_with_flags(name, flags)?;
    conn.busy_timeout(BUSY)?;
    steady(&conn)?;
    Ok(conn)
}

fn has_log(file: &Path) -> bool {
    let there = |suffix| fs_err::metadata(beside(file, suffix)).is_ok_and(|it| it.len() > 0);
    there("-wal") || there("-journal")
}

/// Whether the system refuses to make a log because of the disk, and not for want of leave.
fn is_on_read_only_disk(path: &Path) -> Result<bool> {
    let log = beside(&fs_err::canonicalize(path)?, "-wal");
    let made = private(fs_err::OpenOptions::new().write(true).create_new(true)).open(log);
    Ok(made.is_err_and(|error| error.kind() == ErrorKind::ReadOnlyFilesystem))
}

/// The file's name as SQLite takes it to read a file that nobody changes.
fn as_it_stands(path: &Path) -> PathBuf {
    let mut name = OsString::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                name.push(char::from(*byte).to_string());
            }
            _ => name.push(format!("%{byte:02X}")),
        }
    }
    name.push("?immutable=1");
    PathBuf::from(name)
}

/// What to tell a reader whose store was written while it was read without any lock.
pub(super) fn disturbed() -> Error {
    Error::Invalid(
        "the store was written elsewhere while it was read from a read-only disk; try again".into(),
    )
}
