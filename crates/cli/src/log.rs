//! All that goes on inside, on standard error, for who asks for it with `-vv`.
//!
//! Much of it is said on the thread that beats, which waits for nobody: a pipe that is broken or that
//! nobody empties must not end what is well. So lines go through a queue to a thread of their own, and
//! those that find no room there are left out and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// So many lines may wait to be read.
const ROOM: usize = 4096;
/// How long the end of the program waits for lines that are still to be written.
const PATIENCE: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();

/// Says all that goes on inside from now on.
pub(crate) fn start() -> io::Result<()> {
    let queue = Queue::to(io::stderr())?;
    if QUEUE.set(queue.clone()).is_ok() {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(queue)
            // It would say so on standard error, and panic if that is broken.
            .log_internal_errors(false)
            .without_time()
            .init();
    }
    Ok(())
}

/// Waits for what was said so far, but not for long.
pub(crate) fn finish() {
    if let Some(queue) = QUEUE.get() {
        queue.finish(PATIENCE);
    }
}

/// Lines on their way.
#[derive(Clone)]
struct Queue {
    lines: SyncSender<Item>,
    left_out: Arc<AtomicU64>,
}

enum Item {
    Line(Vec<u8>),
    /// All before this was written.
    Mark(SyncSender<()>),
}

impl Queue {
    fn to(output: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, items) = sync_channel(ROOM);
        let left_out = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&left_out);
        let writing = move || write(output, &items, &count);
        std::thread::Builder::new().name("log".to_owned()).spawn(writing)?;
        Ok(Self { lines, left_out })
    }

    fn finish(&self, patience: Duration) {
        let (mark, written) = sync_channel(1);
        if self.lines.try_send(Item::Mark(mark)).is_ok() {
            let _ = written.recv_timeout(patience);
        }
    }
}

/// Each event comes in one piece, a line.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Item::Line(line.to_vec())).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Whether anybody reads it is of no interest to the one who says it.
fn write(mut output: impl Write, items: &Receiver<Item>, left_out: &AtomicU64) {
    for item in items {
        match item {
            Item::Line(line) => drop(output.write_all(&line)),
            Item::Mark(mark) => drop(mark.try_send(())),
        }
        let missing = left_out.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let _ = writeln!(
                output,
                "… {missing} lines were dropped, because nobody read them in time"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_waits_for_nobody_and_what_was_left_out_is_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut queue = Queue::to(writer).unwrap();
        // Far more than the pipe and the queue take, while nobody reads.
        let line = [b'x'; 1023].into_iter().chain([b'\n']).collect::<Vec<u8>>();
        for _ in 0..2 * ROOM {
            queue.write_all(&line).unwrap();
        }
        queue.finish(Duration::from_millis(1));
        let reading = std::thread::spawn(move || io::read_to_string(reader).unwrap());
        while queue.lines.try_send(Item::Line(line.clone())).is_err() {
            std::thread::yield_now();
        }
        drop(queue);
        let text = reading.join().unwrap();
        assert!(text.contains("lines were dropped"), "{} bytes", text.len());
    }

    #[test]
    fn a_broken_output_harms_nobody() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut queue = Queue::to(writer).unwrap();
        queue.write_all(b"a\n").unwrap();
        queue.finish(PATIENCE);
        queue.write_all(b"b\n").unwrap();
    }
}
