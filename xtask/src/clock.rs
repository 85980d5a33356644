//! Time for a tool: how long a step took, and waiting for a server to come up.

use std::time::{Duration, Instant};

#[allow(clippy::disallowed_methods, reason = "how long a step took; no protocol decides by it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "this tool has one thread and nothing else to do")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// A span as people read it: `0.4 s`, `12 s`, `3 min 5 s`.
pub(crate) fn show(span: Duration) -> String {
    let seconds = span.as_secs();
    if seconds < 10 {
        return format!("{:.1} s", span.as_secs_f64());
    }
    if seconds < 60 {
        return format!("{seconds} s");
    }
    format!("{} min {} s", seconds / 60, seconds % 60)
}
