//! What is logged on incumbent's own threads, told by another.
//!
//! The subscriber of `tracing` is the application's, and may take any time: its pipe may be full.
//! So whatever is logged on those threads, by incumbent or by the clients of stores, is taken
//! down there and handed to the application on a thread that nothing hangs on (O3).

use std::cell::RefCell;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::dispatcher::{self, DefaultGuard, Dispatch, get_default};
use tracing::field::{self, Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

use crate::driver::panic;

/// So many events wait at most. What comes after that is dropped and counted.
const WAITING: usize = 4096;

/// So many fields of an event are told; nobody writes more.
const MOST_FIELDS: usize = 32;

/// The thread that tells, and the process it belongs to.
static TELLER: Mutex<Option<(u32, Dispatch)>> = Mutex::new(None);

thread_local! {
    static CAPTURED: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) };
}

/// Takes down all that is logged on this thread from now on, if anybody listens. To be called
/// again and again: as long as nobody does, nothing is changed, because then `tracing` may pass
/// on what is logged to the `log` crate, which it doesn't where any subscriber was ever set.
pub(crate) fn capture() {
    CAPTURED.with_borrow_mut(|captured| {
        if captured.is_none() && dispatcher::has_been_set() {
            *captured = Some(install());
        }
    });
}

fn install() -> DefaultGuard {
    let mut teller = TELLER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let known = teller.as_ref().filter(|(owner, _)| *owner == process).map(|(_, it)| it.clone());
    // Without a thread nothing is told; the beat matters more.
    let capture = known.unwrap_or_else(|| start().unwrap_or_else(|_| Dispatch::none()));
    *teller = Some((process, capture.clone()));
    dispatcher::set_default(&capture)
}

fn start() -> std::io::Result<Dispatch> {
    let (events, waiting) = sync_channel(WAITING);
    let dropped = Arc::new(AtomicU64::new(0));
    let capture = Capture { events, dropped: Arc::clone(&dropped) };
    std::thread::Builder::new()
        .name("incumbent-tells".to_owned())
        .spawn(move || tell(&waiting, &dropped))?;
    Ok(Dispatch::new(capture))
}

/// Hands events to the application's subscriber, for as long as the process lives.
fn tell(waiting: &Receiver<Taken>, dropped: &AtomicU64) {
    while let Ok(taken) = waiting.recv() {
        // A subscriber that panics is called again for what comes next.
        let _ = panic::contain(|| taken.tell());
        let missing = dropped.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = panic::contain(|| tell_missing(missing));
        }
    }
}

fn tell_missing(missing: u64) {
    tracing::warn!(
        missing,
        action = "log",
        "the log could not keep up: some of incumbent's messages are missing"
    );
}

/// Takes events down, and nothing else. It never waits.
struct Capture {
    events: SyncSender<Taken>,
    dropped: Arc<AtomicU64>,
}

impl Subscriber for Capture {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
    }

    /// Whether it is wanted is for the application's subscriber to say, later. Saying always would
    /// make others be asked no more.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    /// No more than others want.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::OFF)
    }

    fn event(&self, event: &Event<'_>) {
        let mut taken = Taken { metadata: event.metadata(), values: Vec::new() };
        event.record(&mut taken);
        if let Err(TrySendError::Full(_)) = self.events.try_send(taken) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// An event that was taken down.
struct Taken {
    metadata: &'static Metadata<'static>,
    values: Vec<(Field, Value)>,
}

enum Value {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Truth(bool),
    Text(String),
    Rendered(Rendered),
}

/// What a value looked like.
struct Rendered(String);

impl fmt::Debug for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Visit for Taken {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.values.push((field.clone(), Value::Float(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.values.push((field.clone(), Value::Signed(value)));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.values.push((field.clone(), Value::Unsigned(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.values.push((field.clone(), Value::Truth(value)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.values.push((field.clone(), Value::Text(value.to_owned())));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.values.push((field.clone(), Value::Rendered(Rendered(format!("{value:?}")))));
    }
}

impl Taken {
    /// Logs it anew, on this thread.
    fn tell(&self) {
        if !get_default(|subscriber| subscriber.enabled(self.metadata)) {
            return;
        }
        let shown: Vec<_> = self.values.iter().map(|(field, value)| (field, value.get())).collect();
        let fields = self.metadata.fields();
        let Some((first, _)) = shown.first() else {
            return Event::dispatch(self.metadata, &fields.value_set(&[]));
        };
        // Those that have no value are passed over.
        let mut values: [(&Field, Option<&dyn field::Value>); MOST_FIELDS] =
            [(*first, None); MOST_FIELDS];
        for (place, (field, value)) in values.iter_mut().zip(&shown) {
            *place = (*field, Some(&**value));
        }
        Event::dispatch(self.metadata, &fields.value_set(&values));
    }
}

impl Value {
    fn get(&self) -> Box<dyn field::Value + '_> {
        match self {
            Self::Signed(value) => Box::new(*value),
            Self::Unsigned(value) => Box::new(*value),
            Self::Float(value) => Box::new(*value),
            Self::Truth(value) => Box::new(*value),
            Self::Text(value) => Box::new(value.as_str()),
            Self::Rendered(value) => Box::new(field::debug(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panics at each event, and so does what it panics with.
    struct Hostile(Arc<AtomicU64>);

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as planned");
        }
    }

    impl Subscriber for Hostile {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::panic::panic_any(Bomb);
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn o3_a_log_that_panics_is_told_what_comes_next() {
        let called = Arc::new(AtomicU64::new(0));
        let hostile = Dispatch::new(Hostile(Arc::clone(&called)));
        let (events, waiting) = sync_channel(2);
        let dropped = Arc::new(AtomicU64::new(0));
        let capture = Dispatch::new(Capture { events, dropped: Arc::clone(&dropped) });
        dispatcher::with_default(&capture, || (0..3).for_each(|_| tracing::warn!("something")));
        drop(capture);
        assert_eq!(dropped.load(Ordering::Relaxed), 1, "there is room for two");
        dispatcher::with_default(&hostile, || tell(&waiting, &dropped));
        assert_eq!(called.load(Ordering::SeqCst), 3, "both, and the word that one is missing");
    }
}
