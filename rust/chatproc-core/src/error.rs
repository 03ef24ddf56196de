//! The one error of the crate: what failed, where, and what a caller can tell it by.
//! The binding maps each variant to one Python exception; nothing here formats for a terminal.

use std::path::PathBuf;

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

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Invalid(error.to_string())
    }
}
