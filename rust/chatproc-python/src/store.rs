//! What is read from the store, and what users say of its tasks.

use std::path::{Path, PathBuf};

use chatproc_core::error::{Error, Result};
use chatproc_core::round;
use chatproc_core::store::backup as copying;
use chatproc_core::store::coverage as covering;
use chatproc_core::store::near as nearing;
use chatproc_core::store::outbox::TaskEvent;
use chatproc_core::store::search::Query;
use chatproc_core::store::tasks::Request;
use chatproc_core::store::verify as verifying;
use chatproc_core::store::{Store, explain as explaining, quarantine as held, search as searching, tasks};
use chatproc_core::zone::Zone;
use pyo3::prelude::*;
use serde::Deserialize;

use crate::errors::{extract, give, raised};
use crate::round::told;

/// Counts of what the store holds.
#[pyfunction]
pub fn status(py: Python<'_>, state: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let status = py.detach(|| round::status(&state));
    give(py, &raised(py, status)?)
}

/// Looks at the store and the exported files for what is not as it was written.
#[pyfunction]
#[pyo3(signature = (state, output, watch=None))]
pub fn verify(
    py: Python<'_>,
    state: PathBuf,
    output: PathBuf,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyAny>> {
    let mut failure = None;
    let verdict = py.detach(|| {
        let mut watch = told(watch.as_ref(), &mut failure);
        verifying::verify(&state, &output, &mut watch).map_err(|error| error.at(&state))
    });
    match failure {
        Some(failure) => Err(failure),
        None => give(py, &raised(py, verdict)?),
    }
}

/// Copies the store to a file that must not exist.
#[pyfunction]
#[pyo3(signature = (state, target, unique, watch=None))]
pub fn backup<'py>(
    py: Python<'py>,
    state: PathBuf,
    target: PathBuf,
    unique: &str,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut failure = None;
    let copied = py.detach(|| {
        let mut watch = told(watch.as_ref(), &mut failure);
        copying::backup(&state, &target, unique, &mut watch)
    });
    match failure {
        Some(failure) => Err(failure),
        None => give(py, &raised(py, copied)?),
    }
}

/// A message's way through the store; `None` where no message has that key.
#[pyfunction]
pub fn explain<'py>(
    py: Python<'py>,
    state: PathBuf,
    key: &str,
    timezone: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let way = py.detach(|| {
        let zone = Zone::named(timezone)?;
        read(&state, |store| explaining::explain(store, key, &zone))
    });
    raised(py, way)?.map(|way| give(py, &way)).transpose()
}

/// What became of the messages of a conversation; `None` where there is no such conversation.
#[pyfunction]
pub fn coverage<'py>(
    py: Python<'py>,
    state: PathBuf,
    query: &Bound<'py, PyAny>,
    timezone: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let query: covering::Query = extract(query)?;
    let coverage = py.detach(|| {
        let zone = Zone::named(timezone)?;
        read(&state, |store| covering::coverage(store.conn(), &query, &zone))
    });
    raised(py, coverage)?.map(|coverage| give(py, &coverage)).transpose()
}

/// A page of conversations.
#[pyfunction]
pub fn conversations<'py>(
    py: Python<'py>,
    state: PathBuf,
    query: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let query: covering::ConversationsQuery = extract(query)?;
    let page = py.detach(|| read(&state, |store| covering::conversations(store.conn(), &query)));
    give(py, &raised(py, page)?)
}

/// A page of tasks.
#[pyfunction]
pub fn search<'py>(
    py: Python<'py>,
    state: PathBuf,
    query: &Bound<'py, PyAny>,
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let query: Query = extract(query)?;
    let page = py.detach(|| {
        let zone = Zone::named(timezone)?;
        read(&state, |store| searching::search(store.conn(), &query, &zone))
    });
    give(py, &raised(py, page)?)
}

/// Open tasks that a new one may be.
#[pyfunction]
pub fn near<'py>(
    py: Python<'py>,
    state: PathBuf,
    new: &Bound<'py, PyAny>,
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let new: nearing::NewTask = extract(new)?;
    let found = py.detach(|| {
        let zone = Zone::named(timezone)?;
        read(&state, |store| nearing::near(store.conn(), &new, &zone))
    });
    give(py, &raised(py, found)?)
}

/// A task as it is now.
#[pyfunction]
pub fn task<'py>(py: Python<'py>, state: PathBuf, id: &str, timezone: &str) -> PyResult<Bound<'py, PyAny>> {
    let task = py.detach(|| {
        let zone = Zone::named(timezone)?;
        read(&state, |store| tasks::task(store.conn(), id, &zone))
    });
    give(py, &raised(py, task)?)
}

/// Every revision of a task.
#[pyfunction]
pub fn history<'py>(py: Python<'py>, state: PathBuf, id: &str) -> PyResult<Bound<'py, PyAny>> {
    let history = py.detach(|| read(&state, |store| tasks::history(store.conn(), id)));
    give(py, &raised(py, history)?)
}

/// A refused line and its bytes.
type Line<'py> = (Bound<'py, PyAny>, Option<Vec<u8>>);

/// Lines that were refused, each with its bytes.
#[pyfunction]
pub fn quarantine(py: Python<'_>, state: PathBuf) -> PyResult<Vec<Line<'_>>> {
    let lines = py.detach(|| read(&state, |store| held::list(store.conn())));
    raised(py, lines)?.into_iter().map(|line| Ok((give(py, &line)?, line.raw))).collect()
}

/// One refused line with its bytes.
#[pyfunction]
pub fn quarantined(py: Python<'_>, state: PathBuf, id: i64) -> PyResult<Line<'_>> {
    let line = py.detach(|| read(&state, |store| held::show(store.conn(), id)));
    let line = raised(py, line)?;
    Ok((give(py, &line)?, line.raw))
}

/// A user's wish, as Python gives it.
#[derive(Deserialize)]
struct Wish {
    task_id: String,
    value: String,
    request_id: String,
    actor: String,
    expected_revision: Option<i64>,
    note: Option<String>,
}

impl Wish {
    fn request(&self) -> Request<'_> {
        Request {
            task_id: &self.task_id,
            value: &self.value,
            request_id: &self.request_id,
            actor: &self.actor,
            expected_revision: self.expected_revision,
            note: self.note.as_deref(),
        }
    }
}

/// Sets a task's status for a user.
#[pyfunction]
pub fn update_status<'py>(
    py: Python<'py>,
    state: PathBuf,
    wish: &Bound<'py, PyAny>,
    now: i64,
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    fulfil(py, &state, wish, now, |store, request| {
        tasks::update_status(store.conn_mut(), request, now, &Zone::named(timezone)?)
    })
}

/// Sets a task's priority for a user.
#[pyfunction]
pub fn update_priority<'py>(
    py: Python<'py>,
    state: PathBuf,
    wish: &Bound<'py, PyAny>,
    now: i64,
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    fulfil(py, &state, wish, now, |store, request| {
        tasks::update_priority(store.conn_mut(), request, now, &Zone::named(timezone)?)
    })
}

fn fulfil<'py>(
    py: Python<'py>,
    state: &Path,
    wish: &Bound<'py, PyAny>,
    now: i64,
    update: impl FnOnce(&mut Store, &Request<'_>) -> Result<TaskEvent> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let wish: Wish = extract(wish)?;
    let event = py.detach(|| {
        let mut store = write(state, &wish.task_id, now)?;
        update(&mut store, &wish.request()).map_err(|error| error.at(state))
    });
    give(py, &raised(py, event)?)
}

/// What is read from the store, or from an empty one where there is none.
fn read<T>(state: &Path, look: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
    let store = Store::read(state)?.map_or_else(Store::empty, Ok)?;
    let found = look(&store).map_err(|error| error.at(state))?;
    store.undisturbed()?;
    Ok(found)
}

/// Opens a store that is there; a wish makes none.
fn write(state: &Path, task_id: &str, now: i64) -> Result<Store> {
    match Store::read(state)? {
        Some(_) => Store::open(state, now),
        None => Err(Error::NotFound(format!("no task has the id {task_id}"))),
    }
}
