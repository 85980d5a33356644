//! Lanes over a server that is made up, in virtual time.
#![allow(clippy::disallowed_methods)] // The clock is virtual.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use incumbent_core::store::{self, ErrorKind, Reply, StoreError};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::{Connect, IDLE, Lane, LaneOptions, Session};
use crate::failure::{Failure, Sent};
use crate::lanes::Lanes;
use crate::locked::locked;

const SECOND: Duration = Duration::from_secs(1);

/// A server, and what is seen there.
#[derive(Default)]
struct Server {
    /// How long it takes to connect, and to answer.
    connect: Mutex<Duration>,
    answer: Mutex<Duration>,
    /// It takes no connections.
    down: AtomicBool,
    connects: AtomicUsize,
    open: AtomicUsize,
    pings: AtomicUsize,
    /// Which job came over which connection.
    seen: Mutex<Vec<(usize, u32)>>,
    /// Connections up to this number are broken.
    broken: watch::Sender<usize>,
}

struct Road(Arc<Server>);

struct Fake {
    server: Arc<Server>,
    number: usize,
}

impl Connect for Road {
    type Session = Fake;

    async fn connect(&self) -> Result<Fake, StoreError> {
        let number = self.0.connects.fetch_add(1, Ordering::SeqCst) + 1;
        let span = *locked(&self.0.connect);
        // Its own time-out.
        if timeout(SECOND * 10, sleep(span)).await.is_err() {
            return Err(StoreError::unavailable("no connection in ten seconds"));
        }
        if self.0.down.load(Ordering::SeqCst) {
            return Err(StoreError::unavailable("refused"));
        }
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Ok(Fake { server: Arc::clone(&self.0), number })
    }

    fn server(&self) -> String {
        "fake".to_owned()
    }
}

impl Session for Fake {
    type Job = u32;

    const AT_ONCE: usize = 1;

    async fn perform(&self, job: &u32) -> Result<Reply, Failure> {
        locked(&self.server.seen).push((self.number, *job));
        let span = *locked(&self.server.answer);
        tokio::select! {
            () = sleep(span) => Ok(Reply::default()),
            () = self.ended() => Err(Failure::fatal(StoreError::unknown("broken"))),
        }
    }

    async fn answers(&self) -> bool {
        self.server.pings.fetch_add(1, Ordering::SeqCst);
        true
    }

    fn has_ended(&self) -> bool {
        *self.server.broken.borrow() >= self.number
    }

    async fn ended(&self) {
        let mut broken = self.server.broken.subscribe();
        let _ = broken.wait_for(|broken| *broken >= self.number).await;
    }
}

/// The same to a server whose connections don't tell when they end.
struct Dull(Road);

struct Unwatched(Fake);

impl Connect for Dull {
    type Session = Unwatched;

    async fn connect(&self) -> Result<Unwatched, StoreError> {
        self.0.connect().await.map(Unwatched)
    }

    fn server(&self) -> String {
        self.0.server()
    }
}

impl Session for Unwatched {
    type Job = u32;

    const AT_ONCE: usize = 1;

    const WATCHED: bool = false;

    async fn perform(&self, job: &u32) -> Result<Reply, Failure> {
        self.0.perform(job).await
    }

    async fn answers(&self) -> bool {
        self.0.answers().await
    }

    fn has_ended(&self) -> bool {
        false
    }

    async fn ended(&self) {
        std::future::pending().await
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    fn new(connect: Duration, answer: Duration) -> Arc<Self> {
        let server = Self::default();
        *locked(&server.connect) = connect;
        *locked(&server.answer) = answer;
        Arc::new(server)
    }

    fn lane(self: &Arc<Self>, reserve: bool) -> Lane<Road> {
        let options = LaneOptions { patience: SECOND * 20, timeout: SECOND * 60, reserve };
        Lane::new(&Arc::new(Road(Arc::clone(self))), options, None)
    }

    /// Breaks all connections of this moment.
    fn reset(&self) {
        self.broken.send_replace(self.connects());
    }

    fn connects(&self) -> usize {
        self.connects.load(Ordering::SeqCst)
    }

    fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn seen(&self) -> Vec<(usize, u32)> {
        locked(&self.seen).clone()
    }
}

async fn send(lane: &Lane<Road>, job: u32) -> Result<(), ErrorKind> {
    lane.exchange(job, Sent::Write).await.map(drop).map_err(|error| error.kind)
}

/// Whether it was answered before its caller gave it up.
async fn within(span: Duration, lane: &Lane<Road>, job: u32) -> bool {
    timeout(span, send(lane, job)).await.is_ok_and(|done| done.is_ok())
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_replaced_before_anybody_asks() {
    let server = Server::new(SECOND * 3, SECOND);
    let lane = server.lane(false);
    assert_eq!(send(&lane, 1).await, Ok(()));
    server.reset();
    sleep(SECOND * 4).await;
    assert!(within(SECOND + SECOND / 2, &lane, 2).await, "it waited for a connection");
    assert_eq!(server.seen(), [(1, 1), (2, 2)]);
    assert_eq!(server.open(), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_over_a_connection_that_is_known_to_have_ended() {
    let server = Server::new(SECOND, SECOND);
    let lane = server.lane(true);
    assert_eq!(send(&lane, 1).await, Ok(()));
    sleep(SECOND * 3).await;
    server.reset();
    // Nobody had the time to notice.
    assert_eq!(send(&lane, 2).await, Ok(()));
    assert_eq!(server.seen(), [(1, 1), (3, 2)]);
}

#[tokio::test(start_paused = true)]
async fn connecting_takes_longer_than_any_request_and_is_done_once() {
    let server = Server::new(SECOND * 13 / 2, SECOND);
    let lane = server.lane(false);
    let mut job = 0;
    // O14: each request gives up after two seconds.
    while !within(SECOND * 2, &lane, job).await {
        job += 1;
        assert!(job < 10, "it never recovers");
    }
    assert_eq!(server.connects(), 1);
    let seen = server.seen();
    assert_eq!(seen, [(1, job)], "what was given up before it was sent is never sent");
}

#[tokio::test(start_paused = true)]
async fn what_breaks_in_the_middle_is_what_the_session_says() {
    let server = Server::new(SECOND, SECOND * 10);
    let lane = server.lane(false);
    let sending = send(&lane, 1);
    let breaking = async {
        sleep(SECOND * 3).await;
        server.reset();
    };
    let (sent, ()) = tokio::join!(sending, breaking);
    assert_eq!(sent, Err(ErrorKind::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_given_up_puts_its_connection_in_doubt() {
    let server = Server::new(SECOND, SECOND * 30);
    let lane = server.lane(false);
    assert!(!within(SECOND * 2, &lane, 1).await);
    *locked(&server.answer) = SECOND;
    // The first connection is still busy; the second was begun when that came in doubt.
    assert!(within(SECOND * 3, &lane, 2).await);
    assert_eq!(server.seen(), [(1, 1), (2, 2)]);
    sleep(SECOND).await;
    assert_eq!(server.open(), 1, "nobody waits for the first any more");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_clears_the_doubt() {
    let server = Server::new(SECOND * 8, SECOND * 3);
    let lane = server.lane(false);
    assert!(!within(SECOND * 10, &lane, 1).await, "given up after two of three seconds");
    let asked = Instant::now();
    assert_eq!(send(&lane, 2).await, Ok(()));
    assert_eq!(asked.elapsed(), SECOND * 4, "one for the late answer, three for its own");
    assert_eq!(server.seen(), [(1, 1), (1, 2)]);
    sleep(SECOND * 10).await;
    assert_eq!(server.open(), 1, "the replacement isn't needed");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_when_connected_makes_requests_unavailable() {
    let server = Server::new(SECOND * 1000, SECOND);
    let lane = server.lane(false);
    for job in 0..10 {
        assert!(!within(SECOND * 3, &lane, job).await);
    }
    assert!(server.connects() <= 4, "one attempt at a time: {}", server.connects());
    assert_eq!(send(&lane, 10).await, Err(ErrorKind::Unavailable));
    *locked(&server.connect) = SECOND;
    sleep(SECOND * 11).await;
    assert_eq!(send(&lane, 11).await, Ok(()));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_told_at_once_and_not_repeated_for_nobody() {
    let server = Server::new(SECOND, SECOND);
    let lane = server.lane(false);
    server.down.store(true, Ordering::SeqCst);
    let asked = Instant::now();
    let error = lane.exchange(1, Sent::Write).await.unwrap_err();
    assert_eq!(error, StoreError::unavailable("refused"));
    assert_eq!(asked.elapsed(), SECOND);
    sleep(SECOND * 1000).await;
    assert!(server.connects() <= 2, "{}", server.connects());
    server.down.store(false, Ordering::SeqCst);
    assert_eq!(send(&lane, 2).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn many_wait_for_one_connection_and_have_their_turns() {
    let server = Server::new(SECOND * 2, SECOND / 50);
    let lane = Arc::new(server.lane(false));
    let mut tasks = tokio::task::JoinSet::new();
    for job in 0..100 {
        let lane = Arc::clone(&lane);
        tasks.spawn_on(async move { send(&lane, job).await }, &tokio::runtime::Handle::current());
    }
    let done = tasks.join_all().await;
    assert!(done.iter().all(Result::is_ok), "{done:?}");
    assert_eq!(server.connects(), 1);
    assert_eq!(server.seen().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn who_has_no_turn_in_time_was_surely_not_sent() {
    let server = Server::new(SECOND, SECOND * 30);
    let lane = server.lane(false);
    let (first, second) = tokio::join!(send(&lane, 1), send(&lane, 2));
    let (sent, unsent) = if first.is_ok() { (1, second) } else { (2, first) };
    assert_eq!(unsent, Err(ErrorKind::Unavailable));
    assert_eq!(server.seen(), [(1, sent)]);
}

#[tokio::test(start_paused = true)]
async fn a_connection_in_reserve_makes_up_for_a_lost_one_at_once() {
    let server = Server::new(SECOND * 5, SECOND);
    let lane = server.lane(true);
    assert!(!within(SECOND, &lane, 0).await, "the first request begins it all");
    sleep(SECOND * 20).await;
    assert_eq!(server.open(), 2);
    for job in 1..6 {
        server.broken.send_replace(server.connects() - 1);
        sleep(SECOND / 10).await;
        assert!(within(SECOND + SECOND / 10, &lane, job).await, "job {job} had to wait");
        sleep(SECOND * 10).await;
        assert_eq!(server.open(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_asked_and_busy_ones_are_not() {
    let server = Server::new(SECOND, SECOND);
    let lane = server.lane(false);
    for job in 0..20 {
        assert_eq!(send(&lane, job).await, Ok(()));
        sleep(IDLE / 2).await;
    }
    assert_eq!(server.pings.load(Ordering::SeqCst), 0);
    sleep(IDLE * 10).await;
    assert!(server.pings.load(Ordering::SeqCst) >= 8);
    assert_eq!(server.connects(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_lane_closes_its_connections() {
    let server = Server::new(SECOND, SECOND);
    let lane = server.lane(true);
    assert_eq!(send(&lane, 1).await, Ok(()));
    sleep(SECOND * 5).await;
    assert_eq!(server.open(), 2);
    drop(lane);
    sleep(SECOND).await;
    assert_eq!(server.open(), 0);
}

#[test]
fn a_lane_outlives_the_runtime_it_began_on() {
    let server = Server::new(Duration::ZERO, Duration::ZERO);
    let lane = server.lane(true);
    for job in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(send(&lane, job)), Ok(()));
    }
    assert_eq!(server.seen().iter().map(|(_, job)| *job).collect::<Vec<_>>(), [0, 1, 2]);
    let error = futures_less(&lane);
    assert_eq!(error.map_err(|error| error.kind), Err(ErrorKind::Rejected));
}

/// One exchange outside of every runtime: it has to fail before it waits for anything.
fn futures_less(lane: &Lane<Road>) -> Result<Reply, StoreError> {
    let mut sending = std::pin::pin!(lane.exchange(9, Sent::Write));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match sending.as_mut().poll(&mut context) {
        std::task::Poll::Ready(done) => done,
        std::task::Poll::Pending => Ok(Reply::default()),
    }
}

#[tokio::test(start_paused = true)]
async fn o14_connections_that_do_not_tell_when_they_break_are_used_in_turn() {
    let server = Server::new(SECOND, SECOND / 2);
    let options = LaneOptions { patience: SECOND * 20, timeout: SECOND * 60, reserve: true };
    let lane = Lane::new(&Arc::new(Dull(Road(Arc::clone(&server)))), options, None);
    let send = async |job| lane.exchange(job, Sent::Write).await.map(drop);
    assert_eq!(send(1).await, Ok(()));
    sleep(SECOND * 2).await;
    // Two beats later the connection in reserve is known to be broken, and soon replaced.
    server.broken.send_replace(1);
    let answers = [send(2).await, send(3).await, send(4).await].map(|answer| answer.is_ok());
    assert_eq!(answers.iter().filter(|is_ok| **is_ok).count(), 2, "{answers:?}");
    sleep(SECOND * 2).await;
    assert_eq!(server.connects(), 3);
    server.broken.send_replace(2);
    let answers = [send(5).await, send(6).await, send(7).await].map(|answer| answer.is_ok());
    assert_eq!(answers.iter().filter(|is_ok| **is_ok).count(), 2, "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_hangs_does_not_keep_the_next_from_being_made() {
    let server = Server::new(SECOND, SECOND / 10);
    let lane = server.lane(true);
    let first = async {
        // The connection in reserve begins after the first, and its packets are lost.
        sleep(SECOND / 2).await;
        *locked(&server.connect) = SECOND * 3600;
    };
    let (answer, ()) = tokio::join!(send(&lane, 1), first);
    assert_eq!((answer, server.connects()), (Ok(()), 2));
    *locked(&server.connect) = SECOND;
    server.reset();
    assert!(within(SECOND * 2, &lane, 2).await, "it waited for the attempt that hangs");
    assert_eq!(server.seen(), [(1, 1), (3, 2)]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_in_vain_has_another_attempt_made() {
    let server = Server::new(SECOND * 3600, SECOND / 10);
    let road = Arc::new(Road(Arc::clone(&server)));
    let lane =
        Lane::new(&road, LaneOptions { reserve: true, ..LaneOptions::beat(SECOND * 5) }, None);
    let mended = async {
        sleep(SECOND / 2).await;
        *locked(&server.connect) = SECOND / 2;
    };
    let (answer, ()) = tokio::join!(send(&lane, 1), mended);
    assert_eq!(answer, Err(ErrorKind::Unavailable));
    assert_eq!(send(&lane, 2).await, Ok(()));
    assert_eq!(server.seen(), [(2, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_beat_whose_connection_was_lost_goes_over_that_for_reads_until_there_is_another() {
    let server = Server::new(SECOND * 5, SECOND / 10);
    let road = Arc::new(Road(Arc::clone(&server)));
    let lanes = Lanes::new(|_| Arc::clone(&road), SECOND * 60, None, None);
    let beat =
        async |job| timeout(SECOND, lanes.exchange(store::Lane::Beat, job, Sent::Write)).await;
    let _ = beat(0).await;
    sleep(SECOND * 10).await;
    lanes.exchange(store::Lane::Watch, 1, Sent::Nothing).await.unwrap();
    assert!(matches!(beat(2).await, Ok(Ok(_))));
    assert_eq!(server.open(), 2, "none is kept in reserve");
    server.broken.send_replace(1);
    sleep(SECOND / 10).await;
    assert!(matches!(beat(3).await, Ok(Ok(_))), "it had to wait for a connection");
    sleep(SECOND * 10).await;
    assert!(matches!(beat(4).await, Ok(Ok(_))));
    assert_eq!(server.seen(), [(2, 1), (1, 2), (2, 3), (3, 4)]);
}
