//! Named places where a test kills the process, or does what another process might do just then. Without
//! the feature `failpoints`, which no wheel has, a fail point is nothing at all.

/// Kills the process, as a power cut would, when the environment names this point.
///
/// `CHATPROC_FAILPOINT=NAME` kills at the first hit, `NAME:K` at the K-th (from 1).
/// `CHATPROC_FAILPOINT_LOG=FILE` notes each hit, a line each.
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static HITS: AtomicU64 = AtomicU64::new(0);
    between::hit(name);
    if let Ok(log) = std::env::var("CHATPROC_FAILPOINT_LOG") {
        use std::io::Write as _;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        // A test that finds no log says so itself.
        let _ = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
    }
    let Ok(wanted) = std::env::var("CHATPROC_FAILPOINT") else { return };
    let (wanted, number) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == number.parse().unwrap_or(1) {
        // `abort` runs no destructor and flushes nothing: to the store it is a kill.
        std::process::abort();
    }
}

/// Whether the environment switches a protection off (`CHATPROC_WITHOUT=NAME`), so that a test can prove that
/// it would notice.
#[cfg(feature = "failpoints")]
#[must_use]
pub fn without(name: &str) -> bool {
    std::env::var("CHATPROC_WITHOUT").is_ok_and(|wanted| wanted == name)
}

/// Runs `during`, with `work` at each hit of that point in this thread: what others may do just then.
#[cfg(feature = "failpoints")]
pub fn meanwhile<T>(name: &'static str, work: impl FnMut() + 'static, during: impl FnOnce() -> T) -> T {
    between::set(Some((name, Box::new(work))));
    let value = during();
    between::set(None);
    value
}

#[cfg(feature = "failpoints")]
mod between {
    use std::cell::RefCell;

    type Work = (&'static str, Box<dyn FnMut()>);

    thread_local! {
        static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
    }

    pub fn set(work: Option<Work>) {
        WORK.with_borrow_mut(|held| *held = work);
    }

    /// What is done at a point meets no further one.
    pub fn hit(name: &str) {
        let Some((point, mut work)) = WORK.take() else { return };
        if point == name {
            work();
        }
        set(Some((point, work)));
    }
}

/// Never: protections cannot be switched off without the feature.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
#[must_use]
pub fn without(_name: &str) -> bool {
    false
}

/// Does nothing: fail points are compiled out.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
