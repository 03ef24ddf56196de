//! The exported files against the rows that they are made of, and the folder against the list of files.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::Path;

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::{Findings, Place};
use crate::error::Result;
use crate::store::{Store, outbox};

/// An exported file as the store knows it.
struct Listed {
    first: i64,
    last: i64,
    file: String,
    sha256: Vec<u8>,
    done: bool,
}

fn listed(conn: &Connection) -> Result<Vec<Listed>> {
    let sql = "SELECT first_row, last_row, file, sha256, done FROM exports ORDER BY first_row";
    let mut query = conn.prepare(sql)?;
    let rows = query.query_map([], |row| {
        Ok(Listed {
            first: row.get(0)?,
            last: row.get(1)?,
            file: row.get(2)?,
            sha256: row.get(3)?,
            done: row.get::<_, i64>(4)? != 0,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Every file that is done stands in the folder with the bytes of its rows, and no other stands there.
pub(super) fn exports(conn: &Connection, place: &Place<'_>, findings: &mut Findings<'_>) -> Result<()> {
    let Place { state, output } = *place;
    let listed = listed(conn)?;
    for file in &listed {
        findings.checked.files += 1;
        let path = output.join(&file.file);
        match digest_of(&path) {
            Ok(Some(digest)) if digest == file.sha256.as_slice() => {}
            Ok(Some(_)) => findings.broken("export", path.display(), differs(conn, file, &path)?),
            Ok(None) if !file.done => {}
            Ok(None) => findings.broken("export", path.display(), "is not there, although it was published"),
            Err(error) => findings.broken("export", path.display(), error.to_string()),
        }
    }
    let known: HashSet<String> = listed.into_iter().map(|file| file.file).collect();
    for name in strangers(output, &known)? {
        if !published_since(state, &name)? {
            let explanation = "holds events that are not this store's";
            findings.broken("export", output.join(&name).display(), explanation);
        }
    }
    Ok(())
}

/// SHA-256 of a file's bytes, or nothing where there is no file.
fn digest_of(path: &Path) -> std::io::Result<Option<[u8; 32]>> {
    let mut file = match fs_err::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Some(digest.finalize().into())),
            length => digest.update(&buffer[..length]),
        }
    }
}

/// Where a file stops being what its rows make.
fn differs(conn: &Connection, file: &Listed, path: &Path) -> Result<String> {
    let bytes = fs_err::read(path)?;
    let (mut rest, mut found) = (bytes.as_slice(), None);
    outbox::for_each_line(conn, file.first, file.last, |row, line| {
        match rest.strip_prefix(line) {
            Some(after) => rest = after,
            None => found = Some(row),
        }
        Ok(found.is_none())
    })?;
    Ok(match found {
        Some(row) => format!("line {} is not what row {row} says", row - file.first + 1),
        None => format!("holds {} bytes more than its rows", rest.len()),
    })
}

/// Names in the folder that an export would give and the store does not know.
fn strangers(output: &Path, known: &HashSet<String>) -> Result<Vec<String>> {
    let entries = match fs_err::read_dir(output) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let is_export =
            name.starts_with("todos-") && Path::new(&name).extension().is_some_and(|it| it == "jsonl");
        if is_export && !known.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Whether a round that is at work published the file after the store was looked at.
fn published_since(state: &Path, name: &str) -> Result<bool> {
    let Some(store) = Store::read(state)? else { return Ok(false) };
    Ok(listed(store.conn())?.iter().any(|file| file.file == name))
}
