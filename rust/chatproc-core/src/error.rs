//! The one error of the crate: what failed, where, and what a caller can tell it by.
//! The binding maps each variant to one Python exception; nothing here formats for a terminal.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// The result of every fallible function of the crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong in the core.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written; the message names its path.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The state file could not be read or written.
    #[error("{source}")]
    Sqlite {
        /// The state file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// SQLite failed where the path is not at hand; [`Error::at`] adds it.
    #[error("{0}")]
    Database(#[from] rusqlite::Error),
    /// Another writer holds the store.
    #[error("held by {holder}")]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Process, host and since when, as the holder wrote it.
        holder: String,
    },
    /// The store was written by another version than this one can use, or read without bringing it up to date.
    #[error("the store has version {found}, this program knows {known}")]
    StoreVersion {
        /// The state file.
        path: PathBuf,
        /// The version found there.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// A file that must not be replaced.
    #[error("a file with this name is there already")]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// The state file is not what SQLite wrote.
    #[error("the store is damaged: {said}")]
    Damaged {
        /// The state file.
        path: PathBuf,
        /// What SQLite found.
        said: String,
    },
    /// A task was changed by someone else, or its state forbids the change.
    #[error("{0}")]
    TaskConflict(String),
    /// A run of a connection is no longer the one that may write.
    #[error("{0}")]
    LeaseLost(String),
    /// A submission rests on something that is not there.
    #[error("{0}")]
    Evidence(String),
    /// A setting is out of its bounds.
    #[error("{0}")]
    Config(String),
    /// Nothing has that name.
    #[error("{0}")]
    NotFound(String),
    /// Whoever watches wanted to stop; what was committed before stays.
    #[error("interrupted")]
    Interrupted,
    /// A stored record or an argument cannot be read as what it should be.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Names the state file in an error that came from SQLite.
    #[must_use]
    pub fn at(self, path: &std::path::Path) -> Self {
        match self {
            Self::Database(source) => Self::Sqlite { path: path.to_owned(), source },
            other => other,
        }
    }
}

/// What a person can do about what SQLite says.
#[must_use]
pub fn remedy(source: &rusqlite::Error) -> &'static str {
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "make room on the disk, then try again; what was committed is safe",
        Some(ErrorCode::ReadOnly) => {
            "the file or its disk cannot be written: see who owns it, and how it is mounted"
        }
        Some(ErrorCode::CannotOpen) => {
            "see that the file and its folder are there and yours; from a read-only disk, copy the state file \
             with its -wal to a folder that can be written"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds the file for long: close it, then try again"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "the disk refuses: see whether it is full or failing, then try again; what was committed is safe"
        }
        Some(ErrorCode::DatabaseCorrupt) => {
            "try again first: it may have been read wrongly once; then run `chatproc verify`, and keep the file"
        }
        Some(ErrorCode::NotADatabase) => "no store of chatproc: is storage.state the right file?",
        _ => "see whether the disk is full or the file damaged, then try again",
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Invalid(error.to_string())
    }
}
