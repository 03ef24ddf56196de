//! The writer of rounds, and the preview that writes nothing.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chatproc_core::error::{Error, Result};
use chatproc_core::round;
use chatproc_core::store::intake::Input;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::errors::{extract, give, raised};

/// What to read, as Python gives it.
#[derive(Deserialize)]
pub struct InputArguments {
    paths: Vec<String>,
    max_line_bytes: u64,
    settle_ms: i64,
    max_memory_mb: u64,
    now: i64,
    state: PathBuf,
    output: PathBuf,
}

impl From<InputArguments> for Input {
    fn from(input: InputArguments) -> Self {
        let InputArguments { paths, max_line_bytes, settle_ms, max_memory_mb, now, state, output } = input;
        let max_memory = max_memory_mb.saturating_mul(1 << 20);
        Self { paths, max_line_bytes, max_memory, settle: settle_ms, now, state, output }
    }
}

/// Tells a Python callable of progress; what it raises, and Ctrl-C, stops the work.
pub fn told<'a>(
    watch: Option<&'a Py<PyAny>>,
    failure: &'a mut Option<PyErr>,
) -> impl FnMut(u64, u64) -> Result<()> + 'a {
    move |done, total| {
        Python::attach(|py| {
            let called = py.check_signals().and_then(|()| match watch {
                Some(watch) => watch.call1(py, (done, total)).map(drop),
                None => Ok(()),
            });
            called.map_err(|error| {
                *failure = Some(error);
                Error::Interrupted
            })
        })
    }
}

/// A writer of rounds; its lock goes with it.
#[pyclass(frozen)]
pub struct Round {
    inner: Mutex<Option<round::Round>>,
}

impl Round {
    fn held(&self) -> MutexGuard<'_, Option<round::Round>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut round::Round) -> Result<T> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| match self.held().as_mut() {
            Some(round) => work(round),
            None => Err(Error::Invalid("the round is closed".to_owned())),
        });
        raised(py, result)
    }
}

#[pymethods]
impl Round {
    #[new]
    fn new(py: Python<'_>, state: PathBuf, holder: &str, now: i64) -> PyResult<Self> {
        let round = py.detach(|| round::Round::open(&state, holder, now));
        Ok(Self { inner: Mutex::new(Some(raised(py, round)?)) })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.held().take()));
    }

    #[pyo3(signature = (input, watch=None))]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        input: &Bound<'py, PyAny>,
        watch: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = extract::<InputArguments>(input)?.into();
        let mut failure = None;
        let report = self.with(py, |round| round.ingest(&input, &mut told(watch.as_ref(), &mut failure)));
        match failure {
            Some(failure) => Err(failure),
            None => give(py, &report?),
        }
    }

    fn export<'py>(&self, py: Python<'py>, output: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let report = self.with(py, |round| round.export(&output, |_| {}))?;
        give(py, &report)
    }

    fn plan<'py>(
        &self,
        py: Python<'py>,
        options: &Bound<'py, PyAny>,
        settings: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (options, settings) = (extract(options)?, extract(settings)?);
        let plan = self.with(py, |round| round.plan(options, settings))?;
        give(py, &plan)
    }

    fn group<'py>(&self, py: Python<'py>, group: &str) -> PyResult<Bound<'py, PyAny>> {
        let view = self.with(py, |round| round.group(group))?;
        give(py, &view)
    }

    fn document<'py>(&self, py: Python<'py>, groups: Vec<String>) -> PyResult<Bound<'py, PyAny>> {
        let batch = self.with(py, |round| round.document(&groups))?;
        give(py, &batch)
    }

    fn commit<'py>(
        &self,
        py: Python<'py>,
        groups: &Bound<'py, PyAny>,
        usage: &Bound<'py, PyAny>,
        now: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (groups, usage) = (extract(groups)?, extract::<Value>(usage)?);
        let ended = self.with(py, |round| round.commit(groups, &usage, now))?;
        give(py, &ended.into_iter().map(round::Ended::from).collect::<Vec<_>>())
    }

    fn fail(&self, py: Python<'_>, group: &str, reason: &str, now: i64, counts: bool) -> PyResult<()> {
        self.with(py, |round| round.fail(group, reason, now, counts))
    }

    fn begin(&self, py: Python<'_>, now: i64) -> PyResult<()> {
        self.with(py, |round| round.begin(now))
    }

    fn finish(&self, py: Python<'_>, now: i64, report: &Bound<'_, PyAny>) -> PyResult<()> {
        let report = extract::<Value>(report)?;
        self.with(py, |round| round.finish(now, &report))
    }

    fn retry<'py>(&self, py: Python<'py>, id: i64, max_line_bytes: u64) -> PyResult<Bound<'py, PyAny>> {
        let retried = self.with(py, |round| round.retry(id, max_line_bytes))?;
        give(py, &retried)
    }

    fn discard(&self, py: Python<'_>, id: i64) -> PyResult<()> {
        self.with(py, |round| round.discard(id))
    }
}

/// Looks at what a round would send.
#[pyfunction]
#[pyo3(signature = (state, input, options, settings, limit, group=None, watch=None))]
#[allow(clippy::too_many_arguments)] // Python passes them by name
pub fn preview<'py>(
    py: Python<'py>,
    state: PathBuf,
    input: &Bound<'py, PyAny>,
    options: &Bound<'py, PyAny>,
    settings: &Bound<'py, PyAny>,
    limit: usize,
    group: Option<String>,
    watch: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let input = extract::<InputArguments>(input)?.into();
    let (options, settings) = (extract(options)?, extract(settings)?);
    let mut failure = None;
    let preview = py.detach(|| {
        let mut watch = told(watch.as_ref(), &mut failure);
        round::preview(&state, &input, &options, &settings, limit, group.as_deref(), &mut watch)
    });
    match failure {
        Some(failure) => Err(failure),
        None => give(py, &raised(py, preview)?),
    }
}
