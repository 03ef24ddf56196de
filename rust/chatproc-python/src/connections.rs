//! The writer for connections, and where they stand for readers.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chatproc_core::connections;
use chatproc_core::error::{Error, Result};
use chatproc_core::store::connections::{Claim, Name, Outcome, Run};
use chatproc_core::store::pages::Page;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Map, Value};

use crate::errors::{extract, give, raised};
use crate::round::{InputArguments, told};

/// A writer for connections; it holds no lock between calls.
#[pyclass(frozen)]
pub struct Connections {
    inner: Mutex<Option<connections::Connections>>,
}

impl Connections {
    fn held(&self) -> MutexGuard<'_, Option<connections::Connections>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut connections::Connections) -> Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| match self.held().as_mut() {
            Some(connections) => work(connections),
            None => Err(Error::Invalid("the store is closed".to_owned())),
        });
        raised(py, result)
    }
}

#[pymethods]
#[allow(clippy::too_many_arguments)] // Python passes them by name
impl Connections {
    #[new]
    fn new(py: Python<'_>, state: PathBuf, now: i64) -> PyResult<Self> {
        let opened = py.detach(|| connections::Connections::open(&state, now));
        Ok(Self { inner: Mutex::new(Some(raised(py, opened)?)) })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.held().take()));
    }

    fn states<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let states = self.with(py, |connections| connections.states())?;
        give(py, &states)
    }

    #[pyo3(signature = (toolkit, id, holder, trigger, now, until, gone=None, seen=None))]
    fn lease<'py>(
        &self,
        py: Python<'py>,
        toolkit: &str,
        id: &str,
        holder: &str,
        trigger: &str,
        now: i64,
        until: i64,
        gone: Option<&str>,
        seen: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = Name::new(toolkit, id);
        let claim = Claim { holder, trigger, now, until, gone, seen };
        let leased = self.with(py, |connections| connections.lease(&name, &claim))?;
        give(py, &leased)
    }

    fn lease_of<'py>(&self, py: Python<'py>, toolkit: &str, id: &str) -> PyResult<Bound<'py, PyAny>> {
        let name = Name::new(toolkit, id);
        let lease = self.with(py, |connections| connections.lease_of(&name))?;
        give(py, &lease)
    }

    fn renew(
        &self,
        py: Python<'_>,
        toolkit: &str,
        id: &str,
        run: i64,
        holder: &str,
        until: i64,
    ) -> PyResult<bool> {
        let name = Name::new(toolkit, id);
        let run = Run { name: &name, number: run, holder };
        self.with(py, |connections| connections.renew(&run, until))
    }

    fn reserve(
        &self,
        py: Python<'_>,
        toolkit: &str,
        id: &str,
        run: i64,
        holder: &str,
        day: &str,
        daily_requests: u64,
    ) -> PyResult<bool> {
        let name = Name::new(toolkit, id);
        let run = Run { name: &name, number: run, holder };
        self.with(py, |connections| connections.reserve(&run, day, daily_requests))
    }

    fn page<'py>(
        &self,
        py: Python<'py>,
        toolkit: &str,
        id: &str,
        run: i64,
        holder: &str,
        lines: Vec<Bound<'py, PyBytes>>,
        cursor: &Bound<'py, PyAny>,
        more: bool,
        day: &str,
        max_line_bytes: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = Name::new(toolkit, id);
        let run = Run { name: &name, number: run, holder };
        let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
        let cursor: Map<String, Value> = extract(cursor)?;
        let page = Page { lines: &lines, cursor: &cursor, more, day, max_line_bytes };
        let taken = self.with(py, |connections| connections.page(&run, &page))?;
        give(py, &taken)
    }

    fn record(
        &self,
        py: Python<'_>,
        toolkit: &str,
        id: &str,
        run: i64,
        holder: &str,
        outcome: &Bound<'_, PyAny>,
        now: i64,
    ) -> PyResult<bool> {
        let name = Name::new(toolkit, id);
        let run = Run { name: &name, number: run, holder };
        let outcome: Outcome = extract(outcome)?;
        self.with(py, |connections| connections.record(&run, &outcome, now))
    }

    #[pyo3(signature = (toolkit, id, run, holder, input, watch=None))]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        toolkit: &str,
        id: &str,
        run: i64,
        holder: &str,
        input: &Bound<'py, PyAny>,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = Name::new(toolkit, id);
        let run = Run { name: &name, number: run, holder };
        let input = extract::<InputArguments>(input)?.into();
        let mut own = self.with(py, |connections| connections.again())?;
        let mut failure = None;
        let report = py.detach(|| own.ingest(&run, &input, &mut told(watch.as_ref(), &mut failure)));
        match failure {
            Some(failure) => Err(failure),
            None => give(py, &raised(py, report)?),
        }
    }
}

/// Where all connections stand that ever ran.
#[pyfunction(name = "connections")]
pub fn states(py: Python<'_>, state: PathBuf) -> PyResult<Bound<'_, PyAny>> {
    let states = py.detach(|| connections::states(&state));
    give(py, &raised(py, states)?)
}
