//! One writer of rounds at a time: a lock file beside the store that says who holds it.
//!
//! The lock is the kernel's, on the open file, so it goes with its process; the text in the file is only
//! for people. Status updates and readers do not take it.

use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The lock, held until dropped.
#[derive(Debug)]
pub struct RoundLock {
    _file: fs_err::File,
}

impl RoundLock {
    /// Takes the lock of a state file, or says who holds it.
    ///
    /// `holder` is what others are told: process, host and since when.
    pub fn take(state: &Path, holder: &str) -> Result<Self> {
        let path = lock_path(state);
        let mut file = crate::store::private(fs_err::OpenOptions::new().read(true).write(true).create(true))
            .open(&path)?;
        match file.file().try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(Error::Locked { holder: held_by(&mut file)?, path });
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
        }
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(holder.as_bytes())?;
        Ok(Self { _file: file })
    }
}

/// Who holds the lock, as it wrote down just after it took it.
fn held_by(file: &mut fs_err::File) -> Result<String> {
    let mut text = String::new();
    for _ in 0..100 {
        file.rewind()?;
        file.read_to_string(&mut text)?;
        if !text.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok(text.trim().to_owned())
}

/// The lock file of a state file.
#[must_use]
pub fn lock_path(state: &Path) -> PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
