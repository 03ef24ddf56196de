//! One place where values cross and the core's errors become Python's.

use chatproc_core::error::{Error, Result, remedy};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads a Python value as one of the core's.
pub fn extract<T: DeserializeOwned>(value: &Bound<'_, PyAny>) -> PyResult<T> {
    pythonize::depythonize(value).or_else(|error| raised(value.py(), Err(Error::Config(error.to_string()))))
}

/// Gives a value of the core to Python.
pub fn give<'py, T: Serialize>(py: Python<'py>, value: &T) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize::pythonize(py, value)?)
}

/// Gives a result of the core, its error as an exception.
pub fn raised<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, error).unwrap_or_else(|failure| failure))
}

fn exception(py: Python<'_>, error: Error) -> PyResult<PyErr> {
    let text = error.to_string();
    let (class, place, hint) = match error {
        Error::Io(error) => return os_error(py, &error),
        Error::Interrupted => return Ok(PyKeyboardInterrupt::new_err(())),
        Error::Sqlite { path, source } => ("ChatprocError", Some(path), remedy(&source)),
        Error::Database(source) => ("ChatprocError", None, remedy(&source)),
        Error::Locked { path, .. } => {
            ("StateLockedError", Some(path), "wait until it is done, or stop that process")
        }
        Error::StoreVersion { path, found, known } if (1..known).contains(&found) => (
            "StoreVersionError",
            Some(path),
            "run `chatproc once`: it brings the store up to date and keeps a copy beside it",
        ),
        Error::StoreVersion { path, .. } => {
            ("StoreVersionError", Some(path), "use the version of chatproc that wrote it, or a newer one")
        }
        Error::Taken { path } => ("ConfigError", Some(path), "choose another name, or move that file away"),
        Error::Damaged { path, .. } => (
            "ChatprocError",
            Some(path),
            "run `chatproc verify`, and keep the state file with its -wal as they are",
        ),
        Error::TaskConflict(_) => ("TaskConflict", None, "read the task again, then decide"),
        Error::Evidence(_) => ("EvidenceError", None, ""),
        Error::Config(_) => ("ConfigError", None, ""),
        Error::NotFound(_) | Error::Invalid(_) | Error::LeaseLost(_) => ("ChatprocError", None, ""),
    };
    let keywords = PyDict::new(py);
    keywords.set_item("where", place.map(|path| path.display().to_string()))?;
    keywords.set_item("hint", Some(hint).filter(|hint| !hint.is_empty()))?;
    let class = py.import("chatproc.errors")?.getattr(class)?;
    Ok(PyErr::from_value(class.call((text,), Some(&keywords))?))
}

/// An operating system's error stays one, with its number where there is one.
fn os_error(py: Python<'_>, error: &std::io::Error) -> PyResult<PyErr> {
    let text = error.to_string();
    let number = error.raw_os_error().or_else(|| number_in(&text));
    let arguments = match number {
        Some(number) => (number, text).into_bound_py_any(py)?,
        None => (text,).into_bound_py_any(py)?,
    };
    let arguments = arguments.cast_into::<pyo3::types::PyTuple>()?;
    Ok(PyErr::from_value(py.get_type::<PyOSError>().call1(arguments)?))
}

/// The number at the end of an error that was wrapped to name its path: the wrapping keeps only the words.
fn number_in(text: &str) -> Option<i32> {
    text.trim_end().strip_suffix(')')?.rsplit_once("(os error ")?.1.parse().ok()
}
