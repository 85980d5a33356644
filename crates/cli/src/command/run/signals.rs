//! Signals that this program gets on behalf of its command.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Code;
use crate::interrupt::ignored;

const HANGUP: i32 = 1;
const INTERRUPT: i32 = 2;
const QUIT: i32 = 3;
const USER_1: i32 = 10;
const USER_2: i32 = 12;
const TERMINATE: i32 = 15;
const WINDOW: i32 = 28;

/// The signals that a program may get.
pub(crate) struct Signals(Vec<(i32, Signal)>);

impl Signals {
    /// Receives them from now on, but for those that whoever started this program wants to be
    /// ignored, as `nohup` does.
    pub(crate) fn new() -> io::Result<Self> {
        let ignored = ignored();
        let wanted = [HANGUP, INTERRUPT, QUIT, USER_1, USER_2, TERMINATE, WINDOW];
        let wanted = wanted.into_iter().filter(|number| ignored & (1 << (number - 1)) == 0);
        wanted
            .map(|number| Ok((number, signal(SignalKind::from_raw(number))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> i32 {
        poll_fn(|context| {
            let mut ready = self.0.iter_mut().filter_map(|(number, signal)| {
                signal.poll_recv(context).is_ready().then_some(*number)
            });
            ready.next().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The next signal that asks to end.
    pub(crate) async fn ending(&mut self) -> i32 {
        loop {
            let number = self.next().await;
            if ends(number) {
                return number;
            }
        }
    }
}

/// Whether a signal asks to end.
pub(crate) fn ends(number: i32) -> bool {
    matches!(number, HANGUP | INTERRUPT | QUIT | TERMINATE)
}

/// What a program ends with that a signal has ended.
pub(crate) fn code(number: i32) -> Code {
    Code::Command(u8::try_from(128 + number).unwrap_or(u8::MAX))
}

/// Reaps what others leave to the first process of a container.
pub(crate) fn reap_strangers() -> io::Result<()> {
    let mut ended = signal(SignalKind::child())?;
    Handle::current().spawn(async move {
        while ended.recv().await.is_some() {
            incumbent_supervise::reap(|_, _| {});
        }
    });
    Ok(())
}
