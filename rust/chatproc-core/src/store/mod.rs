//! The state file: opened here, by Rust alone, and every SQL statement lives in this folder.
//!
//! Readers open it read-only. Writers start with `BEGIN IMMEDIATE`, keep transactions short and never
//! hold one across a model call.

pub mod backup;
mod build;
mod bulk;
pub mod commit;
pub mod connections;
mod counts;
pub mod coverage;
pub mod explain;
mod grams;
pub mod intake;
pub mod ledger;
pub mod messages;
pub mod near;
mod order;
pub mod outbox;
pub mod pages;
mod proof;
pub mod quarantine;
mod reading;
mod resegment;
pub mod rounds;
mod rows;
pub mod search;
mod slices;
mod slim;
mod sources;
pub mod status;
mod stretch;
pub mod tasks;
pub mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{Error, Result};

/// `chat` in ASCII: tells a state file from any other database.
const APPLICATION_ID: i64 = 0x6368_6174;

/// A step from one version of the store to the next.
#[derive(Clone, Copy)]
struct Migration {
    statements: &'static str,
    /// What SQL cannot say.
    then: fn(&Connection) -> Result<()>,
}

impl Migration {
    const fn of(statements: &'static str) -> Self {
        Self { statements, then: |_| Ok(()) }
    }

    fn make(&self, conn: &Connection) -> Result<()> {
        conn.execute_batch(self.statements)?;
        (self.then)(conn)
    }
}

/// All of them, in order; append only.
const MIGRATIONS: &[Migration] = &[
    Migration::of(include_str!("schema.sql")),
    Migration::of(include_str!("migrations/0002-connections.sql")),
    Migration::of(include_str!("migrations/0003-proofs.sql")),
    Migration::of(include_str!("migrations/0004-lines.sql")),
    Migration::of(include_str!("migrations/0005-deliveries.sql")),
    Migration::of(include_str!("migrations/0006-changes.sql")),
    Migration { statements: include_str!("migrations/0007-counts.sql"), then: grams::index_all },
];

/// Statements that a connection keeps prepared: all there are.
const STATEMENTS: usize = 128;

/// KiB of pages that are held while much is read and written.
const CACHE: i64 = 32_768;
/// KiB while groups are committed and exported: SQLite looks at every page it holds after each transaction that splits one.
const SMALL_CACHE: i64 = 8_192;

/// Pages that the log takes before it is copied into the file: a round with few new messages copies nothing.
const LOG_PAGES: i64 = 4_000;
/// What SQLite calls its files beside a database.
const BESIDE: [&str; 3] = ["-journal", "-wal", "-shm"];

/// How long a writer waits for another one's short transaction.
const BUSY: Duration = Duration::from_secs(30);

/// What there is of a store before it is opened for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// No store.
    Missing,
    /// One that an older version wrote.
    Older,
    /// One that can be opened as it is, or is refused for what it is.
    Current,
}

/// An open state file.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: PathBuf,
    stand: Option<reading::Stand>,
    /// What a store that stands under another name has to remember.
    build: Option<build::Build>,
}

impl Store {
    /// Opens a state file for writing; makes it and its folder when missing, migrates an older one.
    ///
    /// `now` in milliseconds names the backup that a migration leaves beside it.
    pub fn open(path: &Path, now: i64) -> Result<Self> {
        Self::open_with(path, now, MIGRATIONS)
    }

    fn open_with(path: &Path, now: i64, migrations: &[Migration]) -> Result<Self> {
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        if is_missing(path)? {
            Self::create(path, now, migrations)?;
        }
        let open = || -> Result<Self> {
            let mut store = Self::connect(path)?;
            store.migrate(now, migrations)?;
            store.conn.pragma_update(None, "journal_mode", "WAL")?;
            let synchronous = if crate::failpoint::without("synchronous-full") { "NORMAL" } else { "FULL" };
            store.conn.pragma_update(None, "synchronous", synchronous)?;
            store.conn.pragma_update(None, "foreign_keys", true)?;
            store.conn.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
            // What a savepoint keeps of a page goes no further than memory.
            store.conn.pragma_update(None, "temp_store", "MEMORY")?;
            store.cache(CACHE)?;
            Ok(store)
        };
        open().map_err(|error| error.at(path))
    }

    /// Makes a store under another name and puts it into its place: it is there whole or not at all, and no
    /// reader ever meets a journal that only a writer may roll back. Of several that make it one is first.
    fn create(path: &Path, now: i64, migrations: &[Migration]) -> Result<()> {
        let unfinished = beside(path, ".new");
        let maker = build::Maker::of(path)?;
        if !is_missing(path)? {
            return Ok(());
        }
        remove_if_there(&unfinished)?;
        for suffix in BESIDE {
            remove_if_there(&beside(&unfinished, suffix))?;
        }
        private(fs_err::OpenOptions::new().write(true).create_new(true)).open(&unfinished)?;
        let fill = || -> Result<()> {
            let mut store = Self::connect(&unfinished)?;
            store.migrate(now, migrations)?;
            // Set here, so that opening the store changes nothing of its file.
            store.conn.pragma_update(None, "journal_mode", "WAL")?;
            store.conn.close().map_err(|(_, error)| error)?;
            Ok(())
        };
        fill().map_err(|error| error.at(path))?;
        fs_err::File::open(&unfinished)?.sync_all()?;
        crate::failpoint::hit("migrate.made");
        maker.put(&unfinished, path)?;
        Ok(())
    }

    /// Connects to a file that is there. The file is never opened but by SQLite: closing any other descriptor
    /// of it would take away the POSIX locks that this process holds on it.
    fn connect(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(path, flags)?;
        conn.busy_timeout(BUSY)?;
        steady(&conn)?;
        Ok(Self { conn, path: path.to_owned(), stand: None, build: None })
    }

    /// Tells what opening for writing will have to do.
    pub fn look(path: &Path) -> Result<Found> {
        if is_missing(path)? {
            return Ok(Found::Missing);
        }
        let version = || Self::connect_to_read(path)?.version();
        let found = version().map_err(|error| error.at(path))?;
        Ok(if found < known() { Found::Older } else { Found::Current })
    }

    /// Opens a state file for reading; none when there is no store yet.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        if is_missing(path)? {
            return Ok(None);
        }
        let open = || -> Result<Option<Self>> {
            let store = Self::connect_to_read(path)?;
            let found = store.version()?;
            let known = known();
            if found == 0 {
                // Made, but not yet filled by the writer that is at work.
                return Ok(None);
            }
            if found != known {
                return Err(Error::StoreVersion { path: path.to_owned(), found, known });
            }
            // One snapshot for all that this reader will see.
            store.conn.execute_batch("BEGIN")?;
            Ok(Some(store))
        };
        open().map_err(|error| error.at(path))
    }

    fn connect_to_read(path: &Path) -> Result<Self> {
        let (conn, stand) = reading::connect(path)?;
        Ok(Self { conn, path: path.to_owned(), stand, build: None })
    }

    /// Sees that what was read was one state of the store; to be asked by readers when they have read.
    pub fn undisturbed(&self) -> Result<()> {
        match &self.stand {
            Some(stand) if *stand != reading::Stand::of(&self.path)? => Err(reading::disturbed()),
            _ => Ok(()),
        }
    }

    /// A store that holds nothing, in memory: what a reader sees where there is none yet.
    pub fn empty() -> Result<Self> {
        let conn = Connection::open_in_memory()?;
        make_tables(&conn)?;
        Ok(Self { conn, path: PathBuf::new(), stand: None, build: None })
    }

    /// Holds many pages from now on: much is read and written. A build holds few: it hardly looks back.
    pub fn expect_much(&self) -> Result<()> {
        if self.build.is_some() { Ok(()) } else { self.cache(CACHE) }
    }

    /// Holds few pages from now on: many small transactions follow, or each page is read once.
    pub fn expect_little(&self) -> Result<()> {
        self.cache(SMALL_CACHE)
    }

    fn cache(&self, kibibytes: i64) -> Result<()> {
        Ok(self.conn.pragma_update(None, "cache_size", -kibibytes)?)
    }

    /// The connection, for the modules of this folder.
    #[must_use]
    pub fn conn(&self) -> &Connection {
        &self.conn
    }

    /// The connection, for modules that open their own transactions.
    pub fn conn_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// The state file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in one write transaction: all of it is stored, or nothing.
    pub fn write<T>(&mut self, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
        let path = &self.path;
        let conn = &mut self.conn;
        let run = || -> Result<T> {
            let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        let written = run().map_err(|error| error.at(path));
        if let Some(build) = &mut self.build {
            build.broken |= written.is_err();
        }
        written
    }

    fn version(&self) -> Result<i64> {
        Ok(self.conn.pragma_query_value(None, "user_version", |row| row.get(0))?)
    }

    fn migrate(&mut self, now: i64, migrations: &[Migration]) -> Result<()> {
        let known = version_of(migrations);
        let found = self.version()?;
        if found == known {
            return Ok(());
        }
        let application: i64 = self.conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 = self.conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if found > known || (found == 0 && tables > 0) || (found > 0 && application != APPLICATION_ID) {
            return Err(Error::StoreVersion { path: self.path.clone(), found, known });
        }
        if found > 0 {
            let target = self.path.with_extension(format!("v{found}-{now}.bak"));
            backup::copy(self, &target, &now.to_string(), &mut |_, _| Ok(()))?;
        }
        let done = usize::try_from(found).unwrap_or_default();
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have migrated while this one waited for the lock.
        let found_now: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if found_now == found {
            for migration in migrations.iter().skip(done) {
                migration.make(&transaction)?;
                crate::failpoint::hit("migrate.step");
            }
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", known)?;
            crate::failpoint::hit("migrate.commit");
            transaction.commit()?;
        }
        Ok(())
    }
}

/// Makes the tables of a new store in a database that has none.
pub fn make_tables(conn: &Connection) -> Result<()> {
    MIGRATIONS.iter().try_for_each(|migration| migration.make(conn))
}

/// Keeps statements prepared, whatever values are bound to them.
fn steady(conn: &Connection) -> Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it SQLite prepares a statement anew at each look-up, to plan it for that value.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Whether there is no store yet: no file, or one in which nothing was ever written.
fn is_missing(path: &Path) -> Result<bool> {
    match fs_err::metadata(path) {
        Ok(metadata) => Ok(metadata.len() == 0),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The version of the store that this program writes.
fn known() -> i64 {
    version_of(MIGRATIONS)
}

fn version_of(migrations: &[Migration]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

/// Options that make a file only its owner can read.
pub fn private(options: &mut fs_err::OpenOptions) -> &mut fs_err::OpenOptions {
    options.mode(0o600)
}

/// Makes a folder, and those above it that are missing, that only its owner can read.
pub fn private_folder(folder: &Path) -> Result<()> {
    crate::export::create_folder(folder)
}

/// A value of `meta`; none when it was never set.
pub(crate) fn meta<T: rusqlite::types::FromSql>(conn: &Connection, key: &str) -> Result<Option<T>> {
    use rusqlite::OptionalExtension as _;
    let mut query = conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    Ok(query.query_row([key], |row| row.get(0)).optional()?)
}

/// Sets a value of `meta`.
pub(crate) fn set_meta(conn: &Connection, key: &str, value: impl rusqlite::ToSql) -> Result<()> {
    conn.prepare_cached("INSERT OR REPLACE INTO meta VALUES(?1, ?2)")?
        .execute(rusqlite::params![key, value])?;
    Ok(())
}

/// Adds to a counter of `meta`.
pub(crate) fn count(conn: &Connection, key: &str, more: u64) -> Result<()> {
    let sql = "INSERT INTO meta VALUES(?1, ?2) ON CONFLICT DO UPDATE SET value = value + excluded.value";
    conn.prepare_cached(sql)?.execute(rusqlite::params![key, i64::try_from(more).unwrap_or(i64::MAX)])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As older and newer versions of the program know the store.
    const OLDER: &[Migration] = &[MIGRATIONS[0]];
    const NEWER: &[Migration] = &[
        MIGRATIONS[0],
        MIGRATIONS[1],
        MIGRATIONS[2],
        MIGRATIONS[3],
        MIGRATIONS[4],
        MIGRATIONS[5],
        MIGRATIONS[6],
        Migration::of("CREATE TABLE more(x INTEGER) STRICT;"),
    ];

    fn tables(store: &Store, name: &str) -> i64 {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
        store.conn.query_row(sql, [name], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_older_store_is_migrated_with_a_backup_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let old = Store::open_with(&path, 1, OLDER).unwrap();
        old.conn.execute("INSERT INTO rounds(started) VALUES(17)", []).unwrap();
        drop(old);
        assert_eq!(Store::look(&path).unwrap(), Found::Older);
        let store = Store::open(&path, 7).unwrap();
        assert_eq!(store.version().unwrap(), version_of(MIGRATIONS));
        assert_eq!(Store::look(&path).unwrap(), Found::Current);
        assert_eq!(tables(&store, "sync_runs"), 1);
        let backup = Store::connect_to_read(&folder.path().join("state.v1-7.bak")).unwrap();
        assert_eq!((backup.version().unwrap(), tables(&backup, "sync_runs")), (1, 0));
        for store in [&store, &backup] {
            let started: i64 =
                store.conn.query_row("SELECT started FROM rounds", [], |row| row.get(0)).unwrap();
            assert_eq!(started, 17);
        }
        let error = Store::open_with(&path, 9, OLDER).unwrap_err();
        assert!(
            matches!(error, Error::StoreVersion { found, known: 1, .. } if found == version_of(MIGRATIONS))
        );
    }

    #[test]
    fn tasks_of_an_older_store_are_counted_and_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let old = Store::open_with(&path, 1, &MIGRATIONS[..5]).unwrap();
        let record = serde_json::json!({
            "title": "交报告 2026", "event": "", "priority": "P1", "priority_reason": "", "status": "open",
            "status_by": "model", "priority_by": "model",
            "time": {"start": null, "due": "2026-07-03", "timezone": "UTC", "original": null, "check": null},
            "people": [], "location": null, "action_steps": [], "notes": "", "needs_review": false,
            "review_reasons": [], "source_message_keys": [], "sources": [], "attachment_evidence": [],
            "owner": {"platform": "qq", "account_id": "1", "conversation": {"id": "a", "name": null, "type": "group"}},
            "context": {"group_id": "", "subject": [], "history": [], "continuity": []},
            "processing": {"rules_file": "", "rules_sha256": "", "model": "", "settings_fp": "", "content_fp": [],
                           "time": "", "times_version": 1, "usage": {}},
        });
        old.conn.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
        old.conn
            .execute(
                "INSERT INTO tasks VALUES (1, 't_1', 1, 'open', 'model', 'P1', 1783123199999, 0, 0, 1, 1, ?1)",
                [record.to_string()],
            )
            .unwrap();
        drop(old);
        let store = Store::open(&path, 7).unwrap();
        for query in [None, Some("报告"), Some("2026"), Some("告 20"), Some("6")] {
            let query = search::Query { query: query.map(str::to_owned), ..search::Query::default() };
            let zone = crate::zone::Zone::named("UTC").unwrap();
            let page = search::search(&store.conn, &query, &zone).unwrap();
            assert_eq!((page.total, page.tasks.len()), (1, 1), "{query:?}");
        }
        assert_eq!(tasks::counts(&store.conn).unwrap(), [("open".to_owned(), 1)]);
    }

    #[test]
    fn a_migrated_store_is_made_as_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (migrated, new) = (folder.path().join("migrated.db"), folder.path().join("new.db"));
        drop(Store::open_with(&migrated, 1, OLDER).unwrap());
        let schema = |path: &Path| -> Vec<(String, Option<String>)> {
            let store = Store::open(path, 2).unwrap();
            let mut query = store.conn.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
            let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            rows.collect::<rusqlite::Result<_>>().unwrap()
        };
        assert_eq!(schema(&migrated), schema(&new));
    }

    #[test]
    fn a_migration_that_fails_leaves_the_store_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        drop(Store::open_with(&path, 1, OLDER).unwrap());
        let bad = &[MIGRATIONS[0], Migration::of("CREATE TABLE more(x INTEGER) STRICT; SELECT nonsense;")];
        assert!(Store::open_with(&path, 7, bad).is_err());
        let store = Store::open_with(&path, 8, OLDER).unwrap();
        assert_eq!((store.version().unwrap(), tables(&store, "more")), (1, 0));
    }

    #[test]
    fn a_newer_store_is_refused_untouched_by_writer_and_reader() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        drop(Store::open_with(&path, 1, NEWER).unwrap());
        let before = fs_err::read(&path).unwrap();
        for error in [Store::open(&path, 2).unwrap_err(), Store::read(&path).unwrap_err()] {
            let (newer, this) = (version_of(NEWER), version_of(MIGRATIONS));
            assert!(
                matches!(error, Error::StoreVersion { found, known, .. } if (found, known) == (newer, this)),
                "{error}"
            );
        }
        assert_eq!(fs_err::read(&path).unwrap(), before);
    }

    #[test]
    fn another_programs_database_is_refused_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs(x)").unwrap();
        assert!(matches!(Store::open(&path, 1).unwrap_err(), Error::StoreVersion { .. }));
    }
}
