//! Named places where a test kills the process, or does what another process might do just then. Without
//! the feature `failpoints`, which no wheel has, a fail point is nothing at all.

/// Kills the process, as a power cut would, when the environment names this point.
///
/// `CHATPROC_FAILPOINT=NAME` kills at the first hit, `NAME:K` at the K-th (from 1).
#[cfg(feature = "failpoints")]
pub fn hit(name: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static HITS: AtomicU64 = AtomicU64::new(0);
    between::hit(name);
    let Ok(wanted) = std::env::var("CHATPROC_FAILPOINT") else { return };
    let (wanted, number) = wanted.split_once(':').unwrap_or((&wanted, "1"));
    if wanted == name && HITS.fetch_add(1, Ordering::SeqCst) + 1 == number.parse().unwrap_or(1) {
        // `abort` runs no destructor and flushes nothing: to the store it is a kill.
        std::process::abort();
    }
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

/// Does nothing: fail points are compiled out.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn hit(_name: &str) {}
