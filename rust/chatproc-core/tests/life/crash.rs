//! A crash in this process: at a fail point the state file and its log are copied as they are, the work is
//! unwound, and the copy takes their place. What was in memory is lost, what was written stays as torn as it was.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::rc::Rc;

use chatproc_core::failpoint::meanwhile;

/// Where a crash may come, and how often the point may be passed before.
pub const POINTS: [&str; 17] = [
    "commit.before",
    "commit.after",
    "export.assigned",
    "export.written",
    "export.synced",
    "export.renamed",
    "export.folder-synced",
    "ingest.slice",
    "ingest.commit",
    "ingest.committed",
    "lease.committed",
    "reserve.committed",
    "record.before",
    "record.committed",
    "page.before",
    "page.commit",
    "page.committed",
];

struct Crash;

const FILES: [&str; 2] = ["state.db", "state.db-wal"];

/// Does the work, unless it crashes at the `hit`-th passing of the point: then nothing is returned.
pub fn crashing<T>(folder: &Path, point: &'static str, hit: u64, work: impl FnOnce() -> T) -> Option<T> {
    let (folder, passed) = (folder.to_owned(), Rc::new(Cell::new(0)));
    let kept = folder.join("crash");
    fs_err::create_dir_all(&kept).unwrap();
    let copy = {
        let (folder, kept) = (folder.clone(), kept.clone());
        move || {
            passed.set(passed.get() + 1);
            if passed.get() == hit {
                for name in FILES {
                    let _ = fs_err::remove_file(kept.join(name));
                    let _ = fs_err::copy(folder.join(name), kept.join(name));
                }
                resume_unwind(Box::new(Crash));
            }
        }
    };
    let done = catch_unwind(AssertUnwindSafe(|| meanwhile(point, copy, work)));
    match done {
        Ok(value) => Some(value),
        Err(cause) if cause.is::<Crash>() => {
            for name in ["state.db", "state.db-wal", "state.db-shm"] {
                let _ = fs_err::remove_file(folder.join(name));
            }
            for name in FILES.iter().filter(|name| kept.join(name).exists()) {
                fs_err::rename(kept.join(name), folder.join(name)).unwrap();
            }
            None
        }
        Err(cause) => resume_unwind(cause),
    }
}
