//! A store's first input: taken into a file of its own beside the store's place, without journal and syncs,
//! and put into its place once it is whole.
//!
//! Whoever holds the rounds' lock may do so while there is no store. One that somebody else makes meanwhile
//! stays, and the build is thrown away; a kill leaves a file that the next build replaces.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::bulk::Bulk;
use super::{BESIDE, MIGRATIONS, Store, beside, is_missing, private, private_folder, remove_if_there};
use crate::error::Result;
use crate::failpoint;

/// KiB of pages that are held: a build hardly ever looks back.
const CACHE: i64 = 8_192;
/// What follows the state file's name in that of a build.
const SUFFIX: &str = ".build";

/// What a store remembers while it stands under another name.
#[derive(Debug)]
pub(super) struct Build {
    file: PathBuf,
    now: i64,
    /// None once it took too much memory.
    bulk: Option<Bulk>,
    /// Something could not be written: without a journal nothing of the file is known any more.
    pub(super) broken: bool,
}

impl Store {
    /// Opens a state file for a round, or begins to build it where there is none.
    pub fn open_or_build(path: &Path, now: i64) -> Result<Self> {
        let file = beside(path, SUFFIX);
        remove_if_there(&file)?;
        if !is_missing(path)? {
            return Self::open(path, now);
        }
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        for suffix in BESIDE {
            remove_if_there(&beside(&file, suffix))?;
        }
        private(fs_err::OpenOptions::new().write(true).create_new(true)).open(&file)?;
        let begin = || -> Result<Self> {
            let mut store = Self::connect(&file)?;
            store.conn.pragma_update(None, "journal_mode", "OFF")?;
            store.conn.pragma_update(None, "synchronous", "OFF")?;
            store.conn.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            store.conn.pragma_update(None, "foreign_keys", false)?;
            store.migrate(now, MIGRATIONS)?;
            store.cache(CACHE)?;
            path.clone_into(&mut store.path);
            let bulk = Some(Bulk::new(take_indexes(&store.conn)?));
            store.build = Some(Build { file: file.clone(), now, bulk, broken: false });
            Ok(store)
        };
        begin().map_err(|error| error.at(path))
    }

    /// Whether somebody else made a store since this one was begun.
    pub fn is_overtaken(&self) -> Result<bool> {
        Ok(self.build.is_some() && !is_missing(&self.path)?)
    }

    /// What a store in the making holds so far, for who takes in what is new; none of one that is in its place.
    pub(super) fn lend(&mut self) -> Option<Bulk> {
        self.build.as_mut()?.bulk.take()
    }

    /// Takes it back.
    pub(super) fn give_back(&mut self, lent: Option<Bulk>) {
        if let Some(build) = &mut self.build {
            build.bulk = lent;
        }
    }

    /// Goes on without what was held in memory, and holds pages in its place: half of what may be taken.
    pub(super) fn outgrow(&mut self, bulk: Bulk, max_memory: u64) -> Result<()> {
        self.write(|transaction| bulk.end(transaction))?;
        self.cache(i64::try_from(max_memory / 2 / 1024).unwrap_or(i64::MAX).max(CACHE))
    }

    /// Writes what waits for the end of a build.
    fn finish(&mut self) -> Result<()> {
        let Some(Build { broken: false, bulk, .. }) = &mut self.build else { return Ok(()) };
        let bulk = bulk.take();
        self.write(|transaction| {
            if let Some(bulk) = bulk {
                bulk.end(transaction)?;
            }
            failpoint::hit("build.finished");
            Ok(())
        })
    }

    /// Puts a build into the store's place and opens it there. False: the store there is another one, because
    /// somebody else made it or the build could not be finished, which the ordinary way may tell better.
    pub fn publish(&mut self) -> Result<bool> {
        if self.build.is_none() {
            return Ok(true);
        }
        let finished = self.finish().is_ok();
        let Some(build) = self.build.take() else { return Ok(true) };
        let path = std::mem::take(&mut self.path);
        let published = finished && !build.broken && self.put(&build.file, &path).unwrap_or(false);
        match Self::open(&path, build.now) {
            Ok(store) => {
                *self = store;
                Ok(published)
            }
            Err(error) => {
                let mut build = build;
                build.broken = true;
                *self = Self { path, build: Some(build), ..Self::empty()? };
                Err(error)
            }
        }
    }

    fn put(&mut self, file: &Path, path: &Path) -> Result<bool> {
        let conn = std::mem::replace(&mut self.conn, Connection::open_in_memory()?);
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.close().map_err(|(_, error)| error)?;
        fs_err::File::open(file)?.sync_all()?;
        failpoint::hit("build.made");
        Maker::of(path)?.put(file, path)
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        // A build that was put into its place is not there any more.
        let _ = fs_err::remove_file(&self.file);
    }
}

/// Takes the indexes off whose entries come in no order; what makes them again.
fn take_indexes(conn: &Connection) -> Result<Vec<String>> {
    let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ('messages', 'events') AND sql IS NOT NULL";
    let mut query = conn.prepare(sql)?;
    let indexes = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let indexes = indexes.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    for (name, _) in &indexes {
        conn.execute_batch(&format!("DROP INDEX {name}"))?;
    }
    Ok(indexes.into_iter().map(|(_, sql)| sql).collect())
}

/// The one who puts a store into a folder; it goes with its process.
pub(super) struct Maker {
    folder: fs_err::File,
}

impl Maker {
    /// Waits until nobody else makes a store there, which takes milliseconds.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs_err::File::open(folder.unwrap_or(Path::new(".")))?;
        folder.file().lock()?;
        Ok(Self { folder })
    }

    /// Gives a finished file the store's name; false when there is a store by now.
    pub(super) fn put(&self, file: &Path, path: &Path) -> Result<bool> {
        if !is_missing(path)? {
            return Ok(false);
        }
        for suffix in BESIDE {
            // Of a store that someone took away; they would be played into the new one.
            remove_if_there(&beside(path, suffix))?;
        }
        fs_err::rename(file, path)?;
        failpoint::hit("build.renamed");
        self.folder.sync_all()?;
        Ok(true)
    }
}
