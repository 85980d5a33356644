//! What happens in a run, drawn from its seed.

use std::time::Duration;

use incumbent::testing::{Conditions, Thread};
use incumbent_core::random::Random;

/// All that is drawn before a run begins.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) processes: usize,
    pub(crate) ttl: Duration,
    pub(crate) grace: Duration,
    pub(crate) leases: usize,
    pub(crate) duties: usize,
    /// Work, drops and placements block.
    pub(crate) blocking: bool,
    /// How many polls in a thousand come late.
    pub(crate) hesitates: u64,
    /// How often work does something else than its steps, in thousandths of a step.
    pub(crate) moody: u64,
    pub(crate) strikes: Vec<(Duration, Strike)>,
    pub(crate) calm_at: Duration,
}

/// Something that goes wrong, or is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Strike {
    Pause {
        process: usize,
        span: Duration,
    },
    Stall {
        process: usize,
        thread: Thread,
        span: Duration,
    },
    /// Both threads of incumbent's own stand still, and the application runs on.
    Deaf {
        process: usize,
        span: Duration,
    },
    Cut {
        process: usize,
        span: Duration,
    },
    CutAll {
        span: Duration,
    },
    Weather {
        process: usize,
        conditions: Conditions,
        span: Duration,
    },
    Kill {
        process: usize,
        back_after: Duration,
    },
    Leave {
        process: usize,
        back_after: Duration,
    },
    BreakDriver {
        process: usize,
    },
    /// The driver panics and the node is asked to leave, while the work can't end.
    BreakAndLeave {
        process: usize,
        span: Duration,
        back_after: Duration,
    },
    Resign {
        process: usize,
        lease: usize,
    },
    /// Resigns while the thread stands still that would end the work.
    ResignUnheard {
        process: usize,
        lease: usize,
        span: Duration,
    },
    Evict {
        process: usize,
    },
    Lose {
        process: usize,
        lease: usize,
    },
    WallJump {
        process: usize,
        by_ms: i64,
    },
}

impl Scenario {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6472_696c_6c00_0000);
        let processes = 2 + random.below(4) as usize;
        let ttl = Duration::from_millis(3_000 + random.below(4) * 1_000);
        let calm_at = Duration::from_millis(20_000 + random.below(20_000));
        let duties = if random.below(3) == 0 { 0 } else { 1 + random.below(4) as usize };
        let mut scenario = Self {
            processes,
            ttl,
            grace: Duration::from_millis(500 + random.below(3_000)),
            leases: 1 + random.below(3) as usize,
            duties,
            blocking: random.below(4) == 0,
            hesitates: one_of(&mut random, [0, 20, 100]),
            moody: one_of(&mut random, [0, 5, 20]),
            strikes: Vec::new(),
            calm_at,
        };
        for _ in 0..4 + random.below(12) {
            let at = Duration::from_millis(500 + random.below(calm_at.as_millis() as u64 - 1_000));
            let strike = scenario.strike(&mut random);
            scenario.strikes.push((at, strike));
        }
        scenario.strikes.sort_by_key(|(at, _)| *at);
        scenario
    }

    fn strike(&self, random: &mut Random) -> Strike {
        let process = random.below(self.processes as u64) as usize;
        let lease = random.below(self.leases as u64) as usize;
        let span = random.span(Duration::from_millis(50), self.ttl * 2);
        let back_after = random.span(Duration::from_millis(100), self.ttl * 2);
        match random.below(23) {
            0..=2 => Strike::Pause { process, span },
            3 | 4 => Strike::Stall { process, thread: Thread::Beats, span: span * 2 },
            5 => Strike::Stall { process, thread: Thread::Runners, span },
            6 => Strike::Stall { process, thread: Thread::Work, span },
            7 | 8 => Strike::Deaf { process, span },
            9 | 10 => Strike::Cut { process, span },
            11 => Strike::CutAll { span },
            12 | 13 => {
                Strike::Weather { process, conditions: weather(random, self.ttl), span: span * 2 }
            }
            14 => Strike::Kill { process, back_after },
            15 => Strike::Leave { process, back_after },
            16 => Strike::BreakDriver { process },
            17 => Strike::Resign { process, lease },
            18 => Strike::ResignUnheard { process, lease, span: span / 2 },
            19 => Strike::Evict { process },
            20 => Strike::Lose { process, lease },
            21 => Strike::BreakAndLeave { process, span: span / 2, back_after },
            _ => Strike::WallJump { process, by_ms: random.below(7_200_000) as i64 - 3_600_000 },
        }
    }
}

impl Strike {
    /// The same, for no longer than this.
    pub(crate) fn within(mut self, left: Duration) -> Self {
        match &mut self {
            Self::Pause { span, .. }
            | Self::Stall { span, .. }
            | Self::Deaf { span, .. }
            | Self::Cut { span, .. }
            | Self::CutAll { span }
            | Self::ResignUnheard { span, .. }
            | Self::BreakAndLeave { span, .. }
            | Self::Weather { span, .. } => *span = (*span).min(left),
            Self::Kill { .. }
            | Self::Leave { .. }
            | Self::BreakDriver { .. }
            | Self::Resign { .. }
            | Self::Evict { .. }
            | Self::Lose { .. }
            | Self::WallJump { .. } => {}
        }
        self
    }
}

fn one_of(random: &mut Random, [first, second, third]: [u64; 3]) -> u64 {
    match random.below(3) {
        0 => first,
        1 => second,
        _ => third,
    }
}

/// Bad conditions on the way to the store.
fn weather(random: &mut Random, ttl: Duration) -> Conditions {
    let mut odds = |most: u64| if random.below(2) == 0 { 0 } else { random.below(most) };
    let (lost_requests, lost_replies, late) = (odds(300), odds(300), odds(300));
    let (unavailable, panics, stale, lost_hints) = (odds(300), odds(200), odds(500), odds(1000));
    let slow = random.span(Duration::from_millis(3), ttl / 3);
    let latency = (Duration::from_millis(1), if random.below(2) == 0 { slow } else { slow / 20 });
    Conditions {
        latency,
        lost_requests,
        lost_replies,
        late,
        latest: ttl * 2,
        unavailable,
        panics,
        stale,
        stalest: ttl * 2,
        lost_hints,
        cut: false,
    }
}
