//! The binding: extract, detach, call, convert. No logic.

// PyO3 extracts owned values; a reference would only add a line.
#![allow(clippy::needless_pass_by_value)]

mod connections;
mod errors;
mod round;
mod store;

use chatproc_core::zone::Zone;
use chatproc_core::{agenda, claim, timex};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use errors::{extract, give, raised};

/// Plans lines without a store.
#[pyfunction]
fn plan_events<'py>(
    py: Python<'py>,
    lines: &Bound<'py, PyAny>,
    options: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = extract(options)?;
    let lines: Vec<Vec<u8>> = lines
        .try_iter()?
        .map(|line| Ok(line?.cast::<PyBytes>()?.as_bytes().to_vec()))
        .collect::<PyResult<_>>()?;
    let plan = py.detach(|| agenda::plan_lines(lines.iter().map(Vec::as_slice), &options));
    give(py, &raised(py, plan)?)
}

/// What a text says of times, counted from `sent_at` in milliseconds.
#[pyfunction]
#[pyo3(signature = (text, sent_at, timezone, lang=None))]
fn resolve_time<'py>(
    py: Python<'py>,
    text: &str,
    sent_at: i64,
    timezone: &str,
    lang: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let zone = raised(py, Zone::named(timezone))?;
    let lang = raised(py, lang.map(timex::Lang::tagged).transpose())?;
    give(py, &py.detach(|| timex::resolve(text, sent_at, &zone, lang)))
}

/// What becomes of a model's times, held against the cited messages: `[{text, sent_at, unit}]`.
#[pyfunction]
fn judge_time<'py>(
    py: Python<'py>,
    original: Option<&str>,
    told: &Bound<'py, PyAny>,
    given: (Option<String>, Option<String>),
    timezone: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let zone = raised(py, Zone::named(timezone))?;
    let told: Vec<claim::Told> = extract(told)?;
    let given = timex::Reading { start: given.0, due: given.1 };
    give(py, &py.detach(|| claim::judge(original, &told, &given, &zone)))
}

/// The native core of chatproc.
#[pymodule]
#[pyo3(name = "_core")]
fn core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
    module.add_class::<round::Round>()?;
    module.add_class::<connections::Connections>()?;
    module.add_function(wrap_pyfunction!(connections::states, module)?)?;
    module.add_function(wrap_pyfunction!(plan_events, module)?)?;
    module.add_function(wrap_pyfunction!(resolve_time, module)?)?;
    module.add_function(wrap_pyfunction!(judge_time, module)?)?;
    module.add_function(wrap_pyfunction!(round::preview, module)?)?;
    module.add_function(wrap_pyfunction!(store::status, module)?)?;
    module.add_function(wrap_pyfunction!(store::verify, module)?)?;
    module.add_function(wrap_pyfunction!(store::backup, module)?)?;
    module.add_function(wrap_pyfunction!(store::explain, module)?)?;
    module.add_function(wrap_pyfunction!(store::coverage, module)?)?;
    module.add_function(wrap_pyfunction!(store::conversations, module)?)?;
    module.add_function(wrap_pyfunction!(store::search, module)?)?;
    module.add_function(wrap_pyfunction!(store::near, module)?)?;
    module.add_function(wrap_pyfunction!(store::task, module)?)?;
    module.add_function(wrap_pyfunction!(store::history, module)?)?;
    module.add_function(wrap_pyfunction!(store::quarantine, module)?)?;
    module.add_function(wrap_pyfunction!(store::quarantined, module)?)?;
    module.add_function(wrap_pyfunction!(store::update_status, module)?)?;
    module.add_function(wrap_pyfunction!(store::update_priority, module)?)
}
